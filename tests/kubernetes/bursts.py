# SPDX-License-Identifier: MIT
"""One burst of burst_kube in a namespace of its own, and what a test does with it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from burst_kube.provider import KubeProvider, KubeSettings

from burst.errors import NotFound, ProviderError, Transient
from burst.kits.pods import MultiUserTable, OfferTable
from burst.model.lead import GuestAccess, LeadIdentity
from burst.model.ranks import parse_hostlist
from burst.provider import BurstSpec, BurstStatus, Phase
from burst.testing import example_lead, example_spec
from tests.kubelab.cluster import Cluster
from tests.kubernetes.api import Api
from tests.support.waiting import HANG_S, wait_until


class Bursts:
    """A namespace, and providers of one owner that burst into it."""

    def __init__(self, lab: Cluster, api: Api, namespace: str, place: Path) -> None:
        self.lab = lab
        self.api = api
        self.namespace = namespace
        self.lead = example_lead(place, f"owner-{namespace[-6:]}")
        self.spec = example_spec(self.lead, 0, "nodes")
        self.settings = KubeSettings(
            kubeconfig=str(lab.kubeconfig),
            namespace=namespace,
            image="local.test/flux:v0.88.0",
            user=1000,
            one_per_node=False,
            offers={"nodes": OfferTable(cores=1, max_nodes=4)},
        )

    def provider(self, *, timeout: float = HANG_S, **changes: Any) -> KubeProvider:
        """Return a provider with other settings."""
        settings = msgspec.structs.replace(self.settings, **changes)
        return KubeProvider("here", settings, self.lead.owner, timeout=timeout)

    def objects(self, kind: str) -> list[Any]:
        """Return what there is of a kind, such as `pods`."""
        group = "/apis/batch/v1" if kind == "jobs" else "/api/v1"
        return self.api.items(f"{group}/namespaces/{self.namespace}/{kind}")

    def make_quota(self, **hard: str) -> None:
        """Make a ResourceQuota, and wait until it holds."""
        self.api.make_quota(self.namespace, "small", hard)

    def bind(self, pod: str, node: str) -> None:
        """Put a pod on a node, as the scheduler would, whether there is one or not."""
        binding = {
            "metadata": {"name": pod},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        path = f"/api/v1/namespaces/{self.namespace}/pods/{pod}/binding"
        self.api.create(path, binding)

    def job(self, name: str) -> str:
        """Return the path of a Job."""
        return f"/apis/batch/v1/namespaces/{self.namespace}/jobs/{name}"

    def end_pod(
        self, pod: Any, status: int, message: str = "", container: str = "broker"
    ) -> None:
        """Have its container end so, as its kubelet would tell it."""
        ended = {"exitCode": status, "message": message}
        state = {"terminated": {**ended, "finishedAt": "2026-01-01T00:00:00Z"}}
        told = {"name": container, "restartCount": 0, "state": state}
        entry = {**told, "image": "i", "imageID": "i", "ready": False}
        phase = "Failed" if status else "Succeeded"
        self.patch_pod(pod, {"phase": phase, "containerStatuses": [entry]})

    def patch_pod(self, pod: Any, status: dict[str, Any]) -> None:
        """Write a pod's status, as its kubelet would."""
        name = pod["metadata"]["name"]
        path = f"/api/v1/namespaces/{self.namespace}/pods/{name}/status"
        self.api.patch(path, {"status": status}, "strategic-merge-patch")


def with_guests(lead: LeadIdentity, place: Path) -> tuple[LeadIdentity, dict[str, Any]]:
    """Return a lead that lets guests in, and settings for followers of many users."""
    key = place / "munge.key"
    key.write_bytes(bytes(64))
    access = GuestAccess(allow_guest_user=True, imp="/usr/libexec/flux/flux-imp")
    users = MultiUserTable(users={"flux": "1000:1000", "ann": "1001:1001"})
    settings = {"security": "baseline", "munge_key": str(key), "multi_user": users}
    return msgspec.structs.replace(lead, access=access), settings


def sized(bursts: Bursts, hosts: str) -> BurstSpec:
    """Return the spec of the burst with these hosts of its rank slot."""
    named = parse_hostlist(hosts)
    ranks = tuple(bursts.lead.hosts.index(host) for host in named)
    return msgspec.structs.replace(bursts.spec, hosts=named, ranks=ranks)


def wait_for_number(bursts: Bursts, kind: str, number: int) -> None:
    """Wait until there are so many of a kind: controllers are late."""
    wait_until(
        lambda: len(bursts.objects(kind)) == number,
        lambda: f"{number} of {kind}: {bursts.objects(kind)}",
    )


def wait_status(
    provider: KubeProvider, holds: Callable[[BurstStatus], bool]
) -> BurstStatus:
    """Observe until the one burst's status is such; return it."""
    seen: list[BurstStatus] = []

    def done() -> bool:
        try:
            seen[:] = provider.observe()
        except Transient:
            return False  # as a daemon does, which asks again
        return len(seen) == 1 and holds(seen[0])

    wait_until(done, lambda: seen)
    return seen[0]


def bring_up(provider: KubeProvider, spec: BurstSpec) -> BurstStatus:
    """Provision a burst, and return its status once all its followers run."""
    provider.provision(spec)
    return wait_status(provider, runs(*spec.hosts))


def finds_no_nodes(status: BurstStatus) -> bool:
    """Tell whether each of two followers has a pod for which there is no node.

    A Job makes its pods one after the other.
    """
    whys = [follower.why for follower in status.followers]
    return len(whys) == 2 and all("finds no node" in why for why in whys)


def attempt(call: Callable[[], object]) -> ProviderError | None:
    """Return what it raises of the taxonomy."""
    try:
        call()
    except ProviderError as error:
        return error
    return None


def runs(*hosts: str) -> Callable[[BurstStatus], bool]:
    """Return what tells of a status that these followers run, and there is no other."""

    def holds(status: BurstStatus) -> bool:
        found = {each.host: each.phase for each in status.followers}
        return found == dict.fromkeys(hosts, Phase.RUNNING)

    return holds


def resize_all(provider: KubeProvider, spec: BurstSpec) -> None:
    """Resize as the daemon does, until it is done."""

    def done() -> bool:
        error = attempt(lambda: provider.resize(spec))
        assert error is None or isinstance(error, Transient), error
        (status,) = provider.observe()
        return error is None and runs(*spec.hosts)(status)

    wait_until(done, provider.observe)


def reap_all(provider: KubeProvider, spec: BurstSpec) -> None:
    """Reap as the daemon does, until nothing is left."""

    def gone() -> bool:
        error = attempt(lambda: provider.reap(spec.burst_id))
        assert error is None or isinstance(error, NotFound | Transient), error
        return isinstance(error, NotFound)

    wait_until(gone, provider.observe)
