# SPDX-License-Identifier: MIT
"""A site whose nodes are processes of this host, by a program in sh."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from burst_command.provider import CommandProvider
from burst_command.settings import CommandSettings

PROGRAM = Path(__file__).with_name("site")


class Site:
    """Its program, and what it has begun."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.bursts = path / "bursts"
        self.bursts.mkdir()
        self.settings = CommandSettings(
            program=(str(PROGRAM), str(path)),
            dir=str(path / "shared"),
            cores=4,
            max_nodes=4,
        )

    def provider(
        self, owner: str, name: str = "site", **changes: Any
    ) -> CommandProvider:
        """Return a provider of that owner."""
        settings = msgspec.structs.replace(self.settings, **changes)
        return CommandProvider(name, settings, owner)

    @contextlib.contextmanager
    def knob(self, name: str) -> Iterator[None]:
        """Have the program misbehave."""
        (self.path / name).touch()
        try:
            yield
        finally:
            (self.path / name).unlink()

    def nodes(self, burst: str) -> dict[str, int]:
        """Return the pid of each node of a burst that runs, by host."""
        files = self.bursts.glob(f"*.{burst}/[!.]*")
        found = {file.name: int(file.read_text()) for file in files}
        return {host: pid for host, pid in found.items() if self._runs(pid)}

    def close(self) -> None:
        """End what runs."""
        for file in self.bursts.glob("*/[!.]*"):
            if self._runs(pid := int(file.read_text())):
                kill(pid)

    def _runs(self, pid: int) -> bool:
        """Tell whether a node runs. Its pid may be that of another program by now."""
        try:
            words = Path(f"/proc/{pid}/cmdline").read_text()
        except OSError:
            return False
        return str(self.path) in words


def kill(pid: int) -> None:
    """End a node with all that it runs, as a machine that fails."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
