# SPDX-License-Identifier: MIT
"""The kind provider: bursts are pods, and the cluster comes and goes with them."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from burst.errors import (
    InsufficientCapacity,
    NotFound,
    ProviderError,
    Refused,
    Transient,
)
from burst.kits.atomic_file import write_atomically
from burst.kits.kube import Cluster, Kubeconfig
from burst.kits.pods import (
    Bursts,
    PodBursts,
    Tags,
    check_burst,
    offers,
)
from burst.kits.private_dir import (
    PrivateDirectory,
    default_base,
    disk_errors,
    is_safe_name,
    load_json,
)
from burst.model.burst import BurstId
from burst.model.finding import Finding, note, wrong
from burst.model.lead import LeadIdentity
from burst.provider import BurstSpec, BurstStatus, FollowerStatus, Offer, Phase
from burst_kind.cluster import ClusterState, ClusterView, KindCluster
from burst_kind.examine import examine_address, examine_cluster, examine_images
from burst_kind.programs import Programs
from burst_kind.settings import KindSettings


class Claim(msgspec.Struct, frozen=True):
    """A burst that needs the cluster. It is written before anything else is done."""

    hosts: tuple[str, ...] = ()
    ending: bool = False


class KindProvider:
    """Followers as pods of a kind cluster on this host."""

    Settings = KindSettings

    def __init__(
        self,
        name: str,
        settings: KindSettings,
        owner: str,
        *,
        environment: Mapping[str, str] | None = None,
        reach: Callable[[Path], Bursts] | None = None,
    ) -> None:
        if not settings.cluster:
            if not settings.create:
                raise Refused(
                    f"providers.{name}: which kind cluster is not set",
                    "set cluster to one of `kind get clusters`, or create = true",
                )
            settings = msgspec.structs.replace(settings, cluster=name)
        base = Path(settings.dir) if settings.dir else default_base()
        self._settings = settings
        self._tags = Tags(owner, name)
        self._reach = reach or self._reach_cluster
        self._directory = PrivateDirectory(base.absolute(), owner, name)
        self._programs = Programs(settings.kind, environment)
        tags = f"{owner} {name}"
        self._cluster = KindCluster(
            settings, self._programs, self._directory.path, tags
        )
        self._reached: tuple[str, Bursts] | None = None
        """The bursts in the cluster, and the id of its control plane."""

    def offers(self) -> Sequence[Offer]:
        """Return what the settings' tables sell."""
        return offers(self._settings)

    def place(self) -> str:
        """Return the cluster on this host, and the namespace."""
        host = socket.gethostname()
        return f"{host}:{self._settings.cluster} namespace {self._settings.namespace}"

    def provision(self, spec: BurstSpec) -> None:
        """Make the cluster, then the burst in it; Transient until there is one."""
        # A burst that no cluster could have is refused before one is made.
        check_burst(spec, self._settings, self._tags)
        self._directory.open()
        claim = self._claims().get(spec.burst_id)
        if claim and claim.ending:
            raise Transient(f"{spec.burst_id} is being reaped", "wait for its end")
        with disk_errors(self._directory.path, writing=True):
            self._write_claim(spec.burst_id, Claim(spec.hosts))
        view = self._cluster.ensure()
        if spec.program is None:
            spec = msgspec.structs.replace(spec, lead=self._locate(spec.lead))
        self._bursts(view).provision(spec)

    def observe(self) -> Sequence[BurstStatus]:
        """Return the bursts in the cluster, and those that wait for it."""
        self._directory.check()
        claims, view = self._claims(), self._cluster.look()
        found = self._inside(view)
        for burst_id, claim in claims.items():
            found.setdefault(burst_id, _waiting(burst_id, claim, view))
        if not found and self._cluster.ours and view.nodes:
            # Its burst is not known any more. Under the cluster's own name it is an
            # orphan, which can be reaped.
            why = f"the kind cluster {self._cluster.name} has no burst in it"
            name = BurstId(self._cluster.name)
            found[name] = BurstStatus(burst_id=name, phase=Phase.PENDING, why=why)
        return [found[burst_id] for burst_id in sorted(found)]

    def reap(self, burst_id: BurstId) -> None:
        """Delete the burst's pods, and with the last burst the cluster."""
        self._directory.check()
        gone = NotFound(f"nothing of {burst_id} is left")
        claims, view = self._claims(), self._cluster.look()
        inside, ours = self._inside(view), self._cluster.ours
        is_cluster = ours and burst_id == self._cluster.name
        if not (is_cluster or burst_id in claims or burst_id in inside):
            raise gone
        self._mark_ending(burst_id, claims.pop(burst_id, Claim()))
        inside.pop(burst_id, None)
        # Also where the list does not have it: a list may be late.
        if view.open and not self._is_gone_inside(burst_id, view):
            return
        others = inside or any(not claim.ending for claim in claims.values())
        if view.state is ClusterState.BROKEN and (others or not ours):
            raise Transient(
                f"the kind cluster {self._cluster.name} {view.text}",
                "its pods end with the cluster; or `docker start` the node",
            )
        if not others and not self._cluster.take_down():
            return
        self._claim_path(burst_id).unlink(missing_ok=True)
        self._directory.close()
        raise gone

    def examine(self, lead: LeadIdentity | None) -> Sequence[Finding]:
        """Look at docker, kind, the cluster, and how followers find the lead."""
        self._directory.check()
        view = self._cluster.look()
        found = [
            *examine_cluster(self._cluster, view),
            *examine_images(self._programs, self._settings.images),
        ]
        try:
            there = self._locate(lead) if lead else None
        except ProviderError as error:
            # Also where docker has no network yet for the first cluster.
            there = None
            found.append(wrong(error.what, error.advice or "set lead otherwise"))
        found += examine_address(self._settings.lead, there)
        return [*found, *self._bursts(view).examine(there)] if view.open else found

    def probe(
        self, lead: LeadIdentity, tell: Callable[[str], None]
    ) -> Sequence[Finding]:
        """Have a pod try whether it reaches the lead, where there is a cluster."""
        self._directory.check()
        view = self._cluster.look()
        if view.state is not ClusterState.READY:
            what = f"no pod can try it: the kind cluster {self._cluster.name}"
            advice = "try again while there is a burst, or make the cluster by hand"
            return [note(f"{what} {view.text}", advice)]
        return self._bursts(view).probe(self._locate(lead), tell)

    def _reach_cluster(self, kubeconfig: Path) -> Bursts:
        access = Kubeconfig(str(kubeconfig))
        cluster = Cluster(access, timeout=self._settings.timeout)
        create = self._settings.create
        return PodBursts(cluster, self._settings, self._tags, own_cluster=create)

    def _locate(self, lead: LeadIdentity) -> LeadIdentity:
        """Return the lead as followers find it in kind's docker network."""
        if not self._settings.lead:
            return lead
        port = urlsplit(lead.endpoint).port
        if not port:
            raise Refused("the lead's port is not known", "set port under [lead]")
        if self._settings.lead == "host":
            address = self._programs.host_address()
        else:
            address = self._programs.address(self._settings.lead)
        return msgspec.structs.replace(lead, endpoint=f"tcp://{address}:{port}")

    def _bursts(self, view: ClusterView) -> Bursts:
        """Return the bursts in the cluster, which is there."""
        control_plane = view.nodes[0].id
        if self._reached is None or self._reached[0] != control_plane:
            self._directory.open()
            self._cluster.export_kubeconfig()
            bursts = self._reach(self._cluster.kubeconfig)
            self._reached = control_plane, bursts
        return self._reached[1]

    def _inside(self, view: ClusterView) -> dict[BurstId, BurstStatus]:
        """Return the bursts that have objects in the cluster, if it can be asked."""
        listed = self._bursts(view).observe() if view.open else ()
        return {status.burst_id: status for status in listed}

    def _is_gone_inside(self, burst_id: BurstId, view: ClusterView) -> bool:
        """Reap in the cluster; return whether nothing is left there."""
        try:
            self._bursts(view).reap(burst_id)
        except NotFound:
            return True
        return False

    def _claims(self) -> dict[BurstId, Claim]:
        # Not the hidden file of a write that did not end.
        paths = [
            p for p in self._directory.path.glob("*.claim") if is_safe_name(p.stem)
        ]
        # A damaged one is a burst too, which has to be reaped.
        return {BurstId(p.stem): load_json(p, Claim) or Claim() for p in sorted(paths)}

    def _write_claim(self, burst_id: BurstId, claim: Claim) -> None:
        content = msgspec.json.encode(claim)
        write_atomically(self._claim_path(burst_id), content, private=True)

    def _mark_ending(self, burst_id: BurstId, claim: Claim) -> None:
        """Write that the burst is being reaped, if that can be written.

        It keeps a later daemon from making it again. A full disk must not keep pods and
        the cluster from being deleted, which cost.
        """
        with contextlib.suppress(OSError, InsufficientCapacity):
            self._directory.open()
            self._write_claim(burst_id, Claim(claim.hosts, ending=True))

    def _claim_path(self, burst_id: BurstId) -> Path:
        return self._directory.path / f"{burst_id}.claim"


def _waiting(burst_id: BurstId, claim: Claim, view: ClusterView) -> BurstStatus:
    """Return the status of a burst that has nothing in the cluster."""
    failed = view.state in (ClusterState.FAILED, ClusterState.BROKEN)
    phase = Phase.FAILED if failed else Phase.PENDING
    phase = Phase.ENDING if claim.ending else phase
    ready = view.state is ClusterState.READY
    return BurstStatus(
        burst_id=burst_id,
        phase=phase,
        followers=tuple(FollowerStatus(host, phase) for host in claim.hosts),
        why="its pods are not made yet" if ready else f"the kind cluster {view.text}",
    )
