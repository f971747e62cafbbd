# SPDX-License-Identifier: MIT
"""The kind provider: bursts are pods of a cluster that it can make and delete."""

from __future__ import annotations

import contextlib
import shlex
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
from burst.kits.kube import Cluster, Kubeconfig
from burst.kits.pods import (
    PodBursts,
    PodSettingsProvider,
    check_burst,
)
from burst.kits.pods.made_places import ReachedClusters
from burst.kits.pods.names import pods_command
from burst.kits.private_dir import PrivateDirectory, default_base, disk_errors
from burst.model.burst import BurstId
from burst.model.event import Event
from burst.model.finding import Finding, note, wrong
from burst.model.lead import LeadIdentity
from burst.provider import BurstSpec, BurstStatus, OwnedBurst, Phase
from burst_kind.cluster import ClusterState, ClusterView, KindCluster
from burst_kind.examine import examine_address, examine_cluster, examine_programs
from burst_kind.programs import Programs
from burst_kind.settings import KindSettings

# Suffixes of files that are named by a burst's id. A claim is written before anything
# is made for the burst, and has the end of its lease; an empty file with the other
# suffix says that the burst is being reaped.
_CLAIM, _ENDING = ".claim", ".ending"


class KindProvider(PodSettingsProvider):
    """Followers as pods of a kind cluster on this host."""

    Settings = KindSettings

    def __init__(  # noqa: PLR0913 - what tests pass in has a name
        self,
        name: str,
        settings: KindSettings,
        owner: str,
        *,
        environment: Mapping[str, str] | None = None,
        reach: Callable[[Path], PodBursts] | None = None,
        base: Path | None = None,
    ) -> None:
        if not settings.cluster:
            if not settings.create:
                raise Refused(
                    f"providers.{name}: which kind cluster is not set",
                    "set cluster to one of `kind get clusters`, or create = true",
                )
            settings = msgspec.structs.replace(settings, cluster=name)
        super().__init__(name, settings, owner)
        self._settings = settings
        self._reach = reach or self._reach_cluster
        self._base = base or default_base()
        self._directory = PrivateDirectory(self._base, owner, name, has_key=False)
        self._programs = Programs(environment)
        tags = f"{owner} {name}"
        self._cluster = KindCluster(
            settings, self._programs, self._directory.path, tags
        )
        self._reached = ReachedClusters[PodBursts]()
        """The bursts in the cluster; a new control plane gets a new connection."""

    def place(self) -> str:
        """Return the cluster on this host, and the namespace."""
        host = socket.gethostname()
        return f"{host}:{self._settings.cluster} namespace {self._settings.namespace}"

    def access(self, burst_id: BurstId) -> Sequence[str]:
        """Return a kind command for a kubeconfig, and one that lists the pods."""
        name = self._cluster.name
        words = ["kind", "export", "kubeconfig", f"--name={name}"]
        flags = [f"--context=kind-{name}"]
        namespace = self._settings.namespace
        listed = pods_command(namespace, self.tags, burst_id, flags)
        return [shlex.join(words), listed]

    def provision(self, spec: BurstSpec) -> None:
        """Make the cluster; raise Transient until it is ready; then make the burst."""
        # A burst that no cluster could run is refused before one is made.
        check_burst(spec, self._settings, self.tags)
        self._directory.open()
        if self._claims().get(spec.burst_id) == _ENDING:
            raise Transient(f"{spec.burst_id} is being reaped", "wait for its end")
        with disk_errors(self._directory.path, writing=True):
            self._claim(spec.burst_id, _CLAIM).write_text(f"{spec.lease_end:.0f}")
        view = self._cluster.ensure()
        if spec.program is None:
            spec = msgspec.structs.replace(spec, lead=self._locate(spec.lead))
        self._bursts(view).provision(spec)

    def resize(self, spec: BurstSpec) -> None:
        """Add pods to the burst, or delete the last ones."""
        self._directory.check()
        claim, view = self._claims().get(spec.burst_id), self._cluster.look()
        if claim == _ENDING:
            raise Transient(f"{spec.burst_id} is being reaped", "wait for its end")
        if not view.open:
            if claim is None:
                raise NotFound(f"nothing of {spec.burst_id} is on this host")
            raise Transient(f"the kind cluster {self._cluster.name} {view.text}")
        lead = self._locate(spec.lead)
        self._bursts(view).resize(msgspec.structs.replace(spec, lead=lead))

    def observe(self) -> Sequence[BurstStatus]:
        """Return the bursts in the cluster, and those that wait for it."""
        self._directory.check()
        claims, view = self._claims(), self._cluster.look()
        found = self._inside(view)
        for burst_id, suffix in claims.items():
            found.setdefault(burst_id, _waiting(burst_id, suffix, view))
        if not found and self._cluster.ours and view.nodes:
            # The files of its bursts are lost. The cluster is listed as a burst with
            # the cluster's name, so that it is an orphan and can be reaped.
            why = f"the kind cluster {self._cluster.name} has no burst in it"
            name = BurstId(self._cluster.name)
            found[name] = BurstStatus(burst_id=name, phase=Phase.PENDING, why=why)
        return [found[burst_id] for burst_id in sorted(found)]

    def list_all(self) -> Sequence[OwnedBurst]:
        """Return the bursts of all owners that have a file on this host."""
        return [
            OwnedBurst(
                owner=owner,
                provider=provider,
                burst_id=BurstId(path.stem),
                lease_end=_lease_end(path),
            )
            for owner, provider in PrivateDirectory.owners(self._base, has_key=False)
            for path in sorted((self._base / f"{owner}.{provider}").iterdir())
            if path.suffix in (_CLAIM, _ENDING)
        ]

    def delete(self, burst_id: BurstId, *, force: bool) -> None:
        """Delete the burst's pods, and with the last burst the cluster."""
        self._directory.check()
        gone = NotFound(f"nothing of {burst_id} is left")
        claims, view = self._claims(), self._cluster.look()
        inside, ours = self._inside(view), self._cluster.ours
        is_cluster = ours and burst_id == self._cluster.name
        if not (is_cluster or burst_id in claims or burst_id in inside):
            raise gone
        # Pods and cluster must be deleted even if the disk is full.
        with contextlib.suppress(OSError, InsufficientCapacity):
            self._directory.open()
            self._claim(burst_id, _ENDING).touch()
            self._claim(burst_id, _CLAIM).unlink(missing_ok=True)
        # Even if the list does not have it, because lists are eventually consistent.
        if view.open and not self._is_gone_inside(burst_id, view, force=force):
            return
        waiting = {known for known, suffix in claims.items() if suffix == _CLAIM}
        others = (waiting | inside.keys()) - {burst_id}
        if view.state is ClusterState.STOPPED and (others or not ours):
            raise Transient(
                f"the kind cluster {self._cluster.name} {view.text}",
                "its pods end with the cluster; or `docker start` the node",
            )
        if not others:
            if not self._cluster.take_down():
                return
            # A connection reads its kubeconfig again now and then, and it is gone.
            self._reached.close_others(())
        for suffix in (_CLAIM, _ENDING):
            self._claim(burst_id, suffix).unlink(missing_ok=True)
        self._directory.close()
        raise gone

    def examine(self, lead: LeadIdentity | None) -> Sequence[Finding]:
        """Check docker, kind, the cluster, and the lead's address."""
        self._directory.check()
        view = self._cluster.look()
        found = [
            examine_cluster(self._cluster, view),
            *examine_programs(self._programs, self._settings),
        ]
        try:
            lead = self._locate(lead) if lead else None
        except ProviderError as error:
            # Also raised if docker has no network `kind` yet, before the first cluster.
            lead = None
            found.append(wrong(error.what, error.advice or "set lead to another value"))
        if lead:
            found += examine_address(self._settings.lead, lead)
        return [*found, *self._bursts(view).examine(lead)] if view.open else found

    def probe(
        self, lead: LeadIdentity, tell: Callable[[str], None], user: str = ""
    ) -> Sequence[Finding]:
        """Run a pod that tries to connect to the lead, if there is a cluster."""
        self._directory.check()
        view = self._cluster.look()
        if view.state is not ClusterState.READY:
            what = f"no pod can try it: the kind cluster {self._cluster.name}"
            advice = "try again while there is a burst, or make the cluster by hand"
            return [note(f"{what} {view.text}", advice)]
        return self._bursts(view).probe(self._locate(lead), tell, user)

    def record_event(self, burst_id: BurstId, event: Event, text: str) -> None:
        """Write an event for the burst's Job or MiniCluster.

        It uses the last connection to the cluster: no program is called for an event.
        Raises NotFound if there was none yet.
        """
        pods = self._reached.last_in(self._cluster.name)
        pods.record_event(burst_id, event, text)

    def _reach_cluster(self, kubeconfig: Path) -> PodBursts:
        access = Kubeconfig(str(kubeconfig))
        cluster = Cluster(access)
        create = self._settings.create
        return PodBursts(cluster, self._settings, self.tags, own_cluster=create)

    def _locate(self, lead: LeadIdentity) -> LeadIdentity:
        """Return the lead with the address that it has in kind's docker network."""
        if not self._settings.lead:
            return lead
        port = urlsplit(lead.endpoint).port
        if not port:
            raise Refused("the lead's port is not known", "set port under [lead]")
        address = self._programs.address(self._settings.lead)
        return msgspec.structs.replace(lead, endpoint=f"tcp://{address}:{port}")

    def _bursts(self, view: ClusterView) -> PodBursts:
        """Return the bursts in the cluster, which must exist."""

        def reach() -> PodBursts:
            self._directory.open()
            self._cluster.export_kubeconfig()
            return self._reach(self._cluster.kubeconfig)

        return self._reached.bursts(self._cluster.name, view.nodes[0].id, reach)

    def _inside(self, view: ClusterView) -> dict[BurstId, BurstStatus]:
        """Return the bursts with objects in the cluster; none if it is not open."""
        listed = self._bursts(view).observe() if view.open else ()
        return {status.burst_id: status for status in listed}

    def _is_gone_inside(
        self, burst_id: BurstId, view: ClusterView, *, force: bool
    ) -> bool:
        """Reap the burst in the cluster; return whether nothing of it is left there."""
        try:
            self._bursts(view).reap(burst_id, force=force)
        except NotFound:
            return True
        return False

    def _claims(self) -> dict[BurstId, str]:
        """Return the suffix of each burst's file; _ENDING if it has both."""
        found = sorted(self._directory.path.glob("*"))
        known = (_CLAIM, _ENDING)
        return {BurstId(p.stem): p.suffix for p in found if p.suffix in known}

    def _claim(self, burst_id: BurstId, suffix: str) -> Path:
        return self._directory.path / f"{burst_id}{suffix}"


def _lease_end(claim: Path) -> float:
    """Return the end of the lease in a burst's file; 0 for none."""
    try:
        return float(claim.read_text())
    except (FileNotFoundError, ValueError):
        return 0.0


def _waiting(burst_id: BurstId, suffix: str, view: ClusterView) -> BurstStatus:
    """Return the status of a burst that has nothing in the cluster."""
    failed = view.state in (ClusterState.FAILED, ClusterState.STOPPED)
    phase = Phase.FAILED if failed else Phase.PENDING
    ready = view.state is ClusterState.READY
    return BurstStatus(
        burst_id=burst_id,
        phase=Phase.ENDING if suffix == _ENDING else phase,
        why="its pods are not made yet" if ready else f"the kind cluster {view.text}",
    )
