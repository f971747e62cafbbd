# SPDX-License-Identifier: MIT
"""What the provider contract needs for SlurmProvider, on a fake Slurm or a real one.

Its followers are those of an embedded lead.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import pytest

from burst.lead import Lead
from burst.provider import BurstSpec, Provider
from burst.testing import Backend
from burst.testing.backend import Moment
from burst.testing.fixtures import Count, MakeProvider
from tests.support.contract_lead import WithLead, files_of
from tests.support.follower_processes import ProcessBackend, followers
from tests.support.interrupted import Interrupted


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


class SlurmBackend(ProcessBackend):
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
        provider = self.cluster.provider(owner)
        submitted = when == "after"
        return Interrupted(provider, lambda: self.cluster.crash(submitted=submitted))

    def named(self, owner: str, name: str) -> Provider:
        return self.cluster.provider(owner, name)

    def public(self, spec: BurstSpec) -> str:
        return "\n".join([*followers(spec).values(), self.cluster.public()])

    def given(self, spec: BurstSpec) -> str:
        [config] = self.cluster.dir.rglob("broker.toml")
        return config.read_text()

    def left(self, spec: BurstSpec) -> Sequence[str]:
        return files_of(spec, self.cluster.dir)


class WithSlurmProvider(WithLead):
    """Give it a fixture `cluster`."""

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
    def misconfigured(self, cluster: Cluster) -> Callable[[], Provider]:
        return lambda: cluster.provider("owner-a", dir="/dev/null")

    @pytest.fixture
    def count(self, cluster: Cluster) -> Count | None:
        return cluster.tasks
