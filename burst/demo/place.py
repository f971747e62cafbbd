# SPDX-License-Identifier: MIT
"""The demo's private directory, and the files that it writes there."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import tomli_w

from burst.demo.parts import OWN, SLOTS
from burst.demo.processes import MARK
from burst.lead_setup.lead_files import LeadFiles, write_lead
from burst.lead_setup.lead_plan import LeadPlan, PlannedSlot
from burst.model.ranks import parse_hostlist
from burst.model.shape import Shape

PROVIDER = "local"
# A socket's path may have 107 bytes; those of followers have 60 after the directory.
_ROOM = 46
_PREFIX = "burst-demo-"
_SHAPE = Shape(1)
_LENT = sum(len(parse_hostlist(hosts)) for hosts in SLOTS)


class Place(msgspec.Struct, frozen=True):
    """Where everything is. Short names: see unix(7) on paths of sockets."""

    directory: Path

    @property
    def lead(self) -> Path:
        """Directory of the lead's files."""
        return self.directory / "lead"

    @property
    def settings(self) -> Path:
        """The daemon's settings file."""
        return self.directory / "burst.toml"

    @property
    def followers(self) -> Path:
        """Where the provider keeps its bursts."""
        return self.directory / "f"

    @property
    def signal(self) -> Path:
        """The file for which the job on the lead's own nodes waits."""
        return self.directory / "others-are-done"

    def write_lead(self) -> LeadFiles:
        """Write a lead of two nodes and two rank slots, on a port that is free now."""
        plan = LeadPlan(
            hosts=OWN,
            shape=_SHAPE,
            slots=tuple(PlannedSlot(hosts=hosts, shape=_SHAPE) for hosts in SLOTS),
            address="127.0.0.1",
            port=_free_port(),
        )
        return write_lead(self.lead, plan, replace=True)

    def write_settings(self, uri: str, mode: str) -> None:
        """Write burst.toml for the daemon of the lead at that URI."""
        self.settings.write_text(tomli_w.dumps(self._tables(uri, mode)))

    def remove(self) -> None:
        """Remove everything."""
        shutil.rmtree(self.directory)

    def _tables(self, uri: str, mode: str) -> dict[str, Any]:
        return {
            "lead": {"uri": uri},
            # What can never be served is to be seen waiting, in each mode.
            "intake": {"mode": mode, "impossible": "hold"},
            # Reaped at the end of the story in any case; this is for its failure.
            "daemon": {"on_stop": "reap"},
            "deadlines": {
                "provision": "20s",
                "join": "20s",
                "idle": "2s",
                "reap": "10s",
            },
            "providers": {
                PROVIDER: {
                    "type": "local",
                    "dir": str(self.followers),
                    "cores": _SHAPE.cores,
                    "max_nodes": _LENT,
                    "grace": "5s",
                    "environment": {MARK: str(self.directory)},
                }
            },
        }


def make_place() -> Place:
    """Make the directory, open to nobody else."""
    base = tempfile.gettempdir()
    if len(os.fsencode(base)) + len(f"/{_PREFIX}12345678") > _ROOM:
        base = "/tmp"  # noqa: S108 - mkdtemp makes it private
    return Place(Path(tempfile.mkdtemp(prefix=_PREFIX, dir=base)).resolve())


def count_below(directory: Path) -> int:
    """Return how many files and directories there are in it."""
    return sum(1 for _ in directory.rglob("*")) if directory.exists() else 0


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
