# SPDX-License-Identifier: MIT
"""This host as the backend of LocalProvider: its processes and its files."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path

import msgspec
from burst_local.launch import Command
from burst_local.processes import Process, scan
from burst_local.provider import LocalProvider, LocalSettings

from burst.kits.process_environs import read_environs
from burst.provider import BurstSpec, Provider
from burst.testing import Backend
from burst.testing.backend import Moment, missing
from tests.support.waiting import wait_until


class AnswerLost(LocalProvider):
    """The daemon dies when all is started."""

    def provision(self, spec: BurstSpec) -> None:
        super().provision(spec)
        raise RuntimeError("the process died")


class LocalBackend(Backend):
    """Where followers are processes of the test's host."""

    def __init__(
        self,
        settings: LocalSettings,
        command: Command,
        online: Callable[[], AbstractSet[int]] | None,
    ) -> None:
        self.settings = settings
        self.command = command
        self._online = online

    @contextlib.contextmanager
    def unreachable(self) -> Iterator[None]:
        """Others may write in its base directory, which followers still find."""
        base = Path(self.settings.dir)
        mode = base.stat().st_mode
        base.chmod(0o777)
        yield
        base.chmod(mode)

    def full(self, owner: str) -> Provider:
        settings = msgspec.structs.replace(self.settings, max_nodes=1)
        return LocalProvider("here", settings, owner, command=self.command)

    def crashing(self, owner: str, when: Moment) -> Provider:
        def die(spec: BurstSpec, host: str, config: Path, rundir: Path) -> list[str]:
            raise RuntimeError("the process died")

        if when == "before":
            return LocalProvider("here", self.settings, owner, command=die)
        return AnswerLost("here", self.settings, owner, command=self.command)

    def named(self, owner: str, name: str) -> Provider:
        return LocalProvider(name, self.settings, owner, command=self.command)

    def kill(self, spec: BurstSpec, host: str) -> None:
        self._signal(spec, host, signal.SIGKILL)

    def end(self, spec: BurstSpec, host: str) -> None:
        self._signal(spec, host, signal.SIGTERM)

    def _signal(self, spec: BurstSpec, host: str, signum: signal.Signals) -> None:
        for pid in self._leaders(spec, host):
            os.kill(pid, signum)

    def _leaders(self, spec: BurstSpec, host: str) -> list[int]:
        def leaders() -> list[int]:
            found = processes(spec, host)
            return [each.pid for each in found if each.pid == each.session]

        # While it begins to run a program it may not be told by its environment.
        wait_until(leaders, f"{host} of {spec.burst_id}")
        return leaders()

    def public(self, spec: BurstSpec) -> str:
        found = [each for host in spec.hosts for each in processes(spec, host)]
        told = [Path(f"/proc/{each.pid}/cmdline") for each in found]
        return "\n".join(_text(path) for path in told + self._files(0o044))

    def given(self, spec: BurstSpec) -> str:
        return "\n".join(_text(p) for p in self._files() if p.name == "broker.toml")

    def environment(self, spec: BurstSpec) -> str:
        pids = [pid for host in spec.hosts for pid in self._leaders(spec, host)]
        found = b"".join(read_environs(pids).values())
        return found.decode(errors="replace").replace("\0", "\n")

    def left(self, spec: BurstSpec) -> Sequence[str]:
        base = Path(self.settings.dir)
        return [str(path) for path in base.rglob("*") if spec.burst_id in str(path)]

    def online(self, spec: BurstSpec) -> AbstractSet[int]:
        if self._online is None:
            missing("online", "followers that join a lead")
        return self._online()

    def _files(self, mode: int = 0o777) -> list[Path]:
        found = (p for p in Path(self.settings.dir).rglob("*") if p.is_file())
        return [p for p in found if p.stat().st_mode & mode]


def _text(path: Path) -> str:
    """Return what is in it; nothing if it is gone by now."""
    try:
        return path.read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def processes(spec: BurstSpec, host: str) -> list[Process]:
    """Return the process of a follower, and all that it started."""
    tags = {"BURST_OWNER": spec.owner, "BURST_ID": spec.burst_id, "BURST_HOST": host}
    found = scan().values()
    return [each for each in found if tags.items() <= each.environ.items()]
