# SPDX-License-Identifier: MIT
"""Kind providers over a docker and a kind that are scripts, and clusters in memory."""

from __future__ import annotations

import contextlib
import shlex
import sys
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from burst_kind.provider import KindProvider
from burst_kind.settings import KindSettings

from burst.errors import Transient
from burst.kits.kube import Cluster, Endpoint
from burst.kits.pods import OfferTable
from burst.model.burst import BurstId
from burst.model.event import Event
from burst.model.finding import Finding, ok
from burst.model.lead import LeadIdentity
from burst.provider import BurstSpec, BurstStatus
from burst.testing import (
    FakeCloud,
    FakeProvider,
    FakeSettings,
    example_lead,
    example_spec,
)
from tests.plugins.kind import programs
from tests.support.fluxlead import short_directory
from tests.support.reaping import reap_until_gone
from tests.support.waiting import wait_until

# A provider lists containers at each call, so no Python is started for it.
_PROGRAM = """\
#!/bin/sh
cd {world}
if [ "$1" = ps ] && ! [ -e docker-error ]; then
    echo "docker $*" >> calls
    for word; do case $word in label=*) cluster=${{word##*=}} ;; esac; done
    for box in containers/*; do
        read -r its 2> /dev/null < "$box/cluster"
        [ "$its" = "$cluster" ] || continue
        read -r id < "$box/id"
        read -r state < "$box/state"
        echo "${{box#containers/}} $id $state"
    done
    exit
fi
exec {python} -IS {script} {world} {name} "$@"
"""


class Pods(FakeProvider):
    """Bursts in one cluster."""

    cluster = Cluster(Endpoint("http://127.0.0.1:1", "", str))
    given: LeadIdentity | None = None
    told: tuple[str, ...] = ()

    def provision(self, spec: BurstSpec) -> None:
        self.given = spec.lead
        super().provision(spec)

    def reap(self, burst_id: BurstId, *, force: bool = False) -> None:
        if force and (found := self._mine().get(burst_id)):
            found.ends_in = 1
        super().reap(burst_id)

    def expect(self, burst_id: BurstId, *, anew: bool = False) -> None:
        """Nothing is late here."""

    def record_event(self, burst_id: BurstId, event: Event, text: str) -> None:
        self.told = (*self.told, f"{burst_id} {event.name} {text}")

    def examine(self, lead: LeadIdentity | None) -> Sequence[Finding]:
        return [ok("the cluster answers")]

    def probe(
        self, lead: LeadIdentity, tell: Callable[[str], None], user: str = ""
    ) -> Sequence[Finding]:
        found = [ok(f"a pod there reaches {lead.endpoint}")]
        return [*found, ok(f"{user} is known there")] if user else found


class KindHarness:
    """Providers of one owner, as before and after restarts."""

    def __init__(self, directory: Path) -> None:
        self.path = directory
        self.world = directory / "world"
        self.owner = f"owner-{uuid.uuid4().hex[:8]}"
        self.clouds: dict[str, FakeCloud] = {}
        """What is in each cluster, by the id of its control plane."""
        self.pods: list[Pods] = []
        """Each made by a provider that reached its cluster, the last last."""
        self.stalled = self.full = False
        """Of the clusters: whether no pod starts, whether there is no node for one."""
        bin_ = directory / "bin"
        bin_.mkdir()
        self.world.mkdir()
        for name in ("docker", "kind"):
            script = _PROGRAM.format(
                python=shlex.quote(sys.executable),
                script=shlex.quote(programs.__file__),
                world=shlex.quote(str(self.world)),
                name=name,
            )
            (bin_ / name).write_text(script)
            (bin_ / name).chmod(0o755)
        self.environment = {"PATH": f"{bin_}:/usr/bin:/bin"}
        self.settings = KindSettings(
            image="local.test/flux:1",
            offers={"nodes": OfferTable(cores=2, max_nodes=4)},
            create=True,
            cluster="far",
        )

    def provider(self, owner: str = "", **changes: Any) -> KindProvider:
        """Return a new provider object."""
        owner = owner or self.owner
        return KindProvider(
            "far",
            msgspec.structs.replace(self.settings, **changes),
            owner,
            environment=self.environment,
            reach=lambda kubeconfig: self.reach(kubeconfig, owner),
            base=self.path / "run",
        )

    def without_programs(self) -> KindProvider:
        """Return a provider that finds neither docker nor kind."""
        nowhere = {"PATH": str(self.path / "nowhere")}
        return KindProvider(
            "far",
            self.settings,
            self.owner,
            environment=nowhere,
            base=self.path / "run",
        )

    def reach(self, kubeconfig: Path, owner: str) -> Any:
        """Return the `Pods` in the cluster that a kubeconfig is for."""
        cloud = self.clouds.setdefault(kubeconfig.read_text(), FakeCloud())
        self.tell()
        settings = FakeSettings(shape=self.shape, modes=("joined", "isolated"))
        pods = Pods("far", settings, owner, cloud)
        self.pods.append(pods)
        return pods

    def tell(self) -> None:
        """Have all clusters be as the kind says."""
        for cloud in self.clouds.values():
            cloud.stalled, cloud.full = self.stalled, self.full

    @property
    def shape(self) -> Any:
        """Return that of a follower."""
        return example_lead(self.path).shapes[0]

    def spec(self, number: int = 0, owner: str = "") -> BurstSpec:
        """Return a burst of an example lead."""
        return example_spec(
            example_lead(self.path, owner or self.owner), number, "nodes"
        )

    def containers(self) -> dict[str, Path]:
        """Return what docker has."""
        found = (self.world / "containers").glob("*")
        return {path.name: path for path in sorted(found)}

    def count(self, burst_id: BurstId) -> int:
        """Return how many followers of a burst are in clusters that exist."""
        ids = [(box / "id").read_text() for box in self.containers().values()]
        return sum(self.clouds[i].count(burst_id) for i in ids if i in self.clouds)

    def calls(self) -> list[str]:
        """Return all that docker and kind were asked."""
        return (self.world / "calls").read_text().splitlines()

    def set(self, knob: str, text: str = "") -> None:
        """Have docker or kind misbehave."""
        (self.world / knob).write_text(text)

    def unset(self, knob: str) -> None:
        """Have them behave again."""
        (self.world / knob).unlink()

    def make_cluster(self, name: str, nodes: int = 1) -> None:
        """Make a cluster as a person would."""
        world = programs.World(self.world)
        world.make(name, "control-plane")
        for number in range(1, nodes):
            world.make(name, "worker", str(number))

    def status(self, provider: KindProvider) -> BurstStatus:
        """Return the status of the only burst."""
        (status,) = provider.observe()
        return status

    def provision(self, provider: KindProvider, spec: BurstSpec) -> None:
        """Provision until the burst's pods are made."""

        def done() -> bool:
            try:
                provider.provision(spec)
            except Transient:
                return False
            return True

        wait_until(done, f"the provision of {spec.burst_id}")

    def reap_all(self, provider: KindProvider, burst_id: BurstId) -> None:
        """Reap until nothing is left."""
        reap_until_gone(provider, burst_id)


@contextlib.contextmanager
def open_desk() -> Iterator[KindHarness]:
    """Give a kind, and end whatever was begun at it."""
    with short_directory() as directory:
        kind = KindHarness(directory)
        try:
            yield kind
        finally:
            for knob in ("gate", "docker-error", "create-error"):
                (kind.world / knob).unlink(missing_ok=True)
            provider = kind.provider()
            for status in provider.observe():
                kind.reap_all(provider, status.burst_id)
