# SPDX-License-Identifier: MIT
"""What the provider contract needs for LocalProvider, with any program as follower."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path

import msgspec
import pytest
from burst_local.launch import Command
from burst_local.processes import scan
from burst_local.provider import LocalProvider, LocalSettings

from burst.provider import BurstSpec, Provider
from burst.testing import Backend, example_lead, example_spec
from burst.testing.fixtures import ContractFixtures, Count, MakeProvider, MakeSpec
from tests.contract.local_backend import LocalBackend
from tests.support.fluxlead import short_directory


def sleeper(spec: BurstSpec, host: str, config: Path, rundir: Path) -> list[str]:
    """Stand in for a follower."""
    return ["sleep", "1000"]


def _directory(pid: int) -> Sequence[Path]:
    try:
        return Path(f"/proc/{pid}/cwd").readlink().parents
    except OSError:  # it has ended, or is not ours to look at
        return ()


class WithLocalProvider(ContractFixtures):
    patience = 600.0
    pause = 0.1
    ends_leases = True
    command: Command = staticmethod(sleeper)

    @pytest.fixture
    def place(self) -> Iterator[Path]:
        with short_directory() as path:
            yield path

    @pytest.fixture
    def settings(self, place: Path) -> LocalSettings:
        return LocalSettings(dir=str(place / "run"), cores=64, gpus=1, max_nodes=6)

    @pytest.fixture
    def make_provider(self, settings: LocalSettings) -> MakeProvider:
        return lambda owner: LocalProvider(
            "here", settings, owner, command=self.command
        )

    @pytest.fixture
    def make_interrupted(self, settings: LocalSettings) -> MakeProvider:
        def half(spec: BurstSpec, host: str, config: Path, rundir: Path) -> list[str]:
            good = host == spec.hosts[0]
            return self.command(spec, host, config, rundir) if good else ["/no/such"]

        return lambda owner: LocalProvider("here", settings, owner, command=half)

    @pytest.fixture
    def make_spec(self, place: Path) -> MakeSpec:
        def make(owner: str, number: int) -> BurstSpec:
            return example_spec(example_lead(place, owner), number, "local")

        return make

    @pytest.fixture
    def misconfigured(self, settings: LocalSettings) -> Callable[[], Provider]:
        wrong = msgspec.structs.replace(settings, dir="/dev/null")
        return lambda: LocalProvider("here", wrong, "owner-a")

    @pytest.fixture
    def online(self) -> Callable[[], AbstractSet[int]] | None:
        return None

    @pytest.fixture
    def backend(
        self,
        settings: LocalSettings,
        online: Callable[[], AbstractSet[int]] | None,
    ) -> Backend:
        return LocalBackend(settings, self.command, online)

    @pytest.fixture
    def count(self, settings: LocalSettings) -> Count | None:
        """Count leaders of sessions that were started in a directory of the burst.

        Not by their tags: while a process begins to run a program, its environment
        cannot be seen for a moment.
        """

        def leaders(spec: BurstSpec) -> int:
            return sum(
                any(place.name == spec.burst_id for place in _directory(process.pid))
                for process in scan().values()
                if process.pid == process.session
            )

        return leaders
