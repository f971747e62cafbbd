# SPDX-License-Identifier: MIT
"""What the provider contract needs for SlurmProvider, on a fake Slurm or a real one.

Its followers are those of an embedded lead.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import pytest

from burst.lead import Lead
from burst.provider import BurstSpec, Provider
from burst.testing import Backend
from burst.testing.backend import Moment
from burst.testing.fixtures import Count, MakeProvider
from tests.plugins.slurm import slurm_programs
from tests.support.contract_lead import LeadBackend, WithLead, files_of
from tests.support.interrupted import Interrupted
from tests.support.waiting import wait_until


class Cluster(Protocol):
    """A Slurm whose nodes are this host."""

    dir: Path

    def provider(self, owner: str, name: str = ..., **changes: Any) -> Provider: ...
    def unreachable(self) -> contextlib.AbstractContextManager[object]: ...
    def stalled(self) -> contextlib.AbstractContextManager[object]: ...
    def full(self, owner: str) -> Provider: ...
    def crash(
        self, *, submitted: bool
    ) -> contextlib.AbstractContextManager[object]: ...
    def public(self) -> str: ...
    def tasks(self, spec: BurstSpec) -> int: ...


def dying(cluster: Cluster, owner: str, *, submitted: bool) -> Provider:
    """Return a provider whose first provision finds no controller, or no answer."""
    provider = cluster.provider(owner)
    return Interrupted(provider, lambda: cluster.crash(submitted=submitted))


class SlurmBackend(LeadBackend):
    def __init__(self, cluster: Cluster, lead: Lead) -> None:
        super().__init__(lead)
        self.cluster = cluster

    def unreachable(self) -> contextlib.AbstractContextManager[object]:
        return self.cluster.unreachable()

    def stalled(self) -> contextlib.AbstractContextManager[object]:
        return self.cluster.stalled()

    def full(self, owner: str) -> Provider:
        return self.cluster.full(owner)

    def crashing(self, owner: str, when: Moment) -> Provider:
        return dying(self.cluster, owner, submitted=when == "after")

    def named(self, owner: str, name: str) -> Provider:
        return self.cluster.provider(owner, name)

    def kill(self, spec: BurstSpec, host: str) -> None:
        self._signal(spec, host, signal.SIGKILL)

    def end(self, spec: BurstSpec, host: str) -> None:
        self._signal(spec, host, signal.SIGTERM)

    def _signal(self, spec: BurstSpec, host: str, number: signal.Signals) -> None:
        def found() -> list[int]:
            lines = followers(spec).items()
            return [pid for pid, line in lines if f"--hostname {host} " in line]

        # The job runs by its word before its tasks have begun, and one that has not
        # joined may not heed a signal.
        wait_until(lambda: bool(found()), f"the task {host}")
        rank = spec.ranks[spec.hosts.index(host)]
        wait_until(lambda: rank in self.lead.observe().online, f"{host} to join")
        for pid in found():
            slurm_programs.kill(pid, number)

    def public(self, spec: BurstSpec) -> str:
        return "\n".join([*followers(spec).values(), self.cluster.public()])

    def given(self, spec: BurstSpec) -> str:
        [config] = self.cluster.dir.rglob("broker.toml")
        return config.read_text()

    def left(self, spec: BurstSpec) -> Sequence[str]:
        return files_of(spec, self.cluster.dir)


def followers(spec: BurstSpec) -> dict[int, str]:
    """Return the command lines of a burst's followers, by pid."""
    found = {}
    for pid, _ in slurm_programs.processes():
        with contextlib.suppress(OSError):
            words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
            line = " ".join(words)
            if words[1:4] == ["-m", "burst_embedded", "follower"] and (
                f"/{spec.owner}." in line and f"/{spec.burst_id}/" in line
            ):
                found[pid] = line
    return found


class WithSlurmProvider(WithLead):
    """Give it a fixture `cluster`."""

    patience = 90.0
    pause = 0.1
    ends_leases = True
    lease = 12.0

    @pytest.fixture
    def backend(self, cluster: Cluster, lead: Lead) -> Backend:
        return SlurmBackend(cluster, lead)

    @pytest.fixture
    def make_provider(self, cluster: Cluster) -> MakeProvider:
        return cluster.provider

    @pytest.fixture
    def make_interrupted(self, cluster: Cluster) -> MakeProvider:
        return lambda owner: dying(cluster, owner, submitted=False)

    @pytest.fixture
    def misconfigured(self, cluster: Cluster) -> Callable[[], Provider]:
        return lambda: cluster.provider("owner-a", dir="/dev/null")

    @pytest.fixture
    def count(self, cluster: Cluster) -> Count | None:
        return cluster.tasks
