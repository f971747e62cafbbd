# SPDX-License-Identifier: MIT
"""Reads a systemd unit, for a lab to do what systemd would: none runs there."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path
from typing import IO

import msgspec

from tests.multiuser.lab import OWNER, Lab


class Unit(msgspec.Struct):
    """A unit that was written, as far as a lab does what systemd would."""

    environment: dict[str, str]
    command: list[str]
    directories: dict[str, str]
    """Below /run, made for the owner before it starts; with their modes."""

    @classmethod
    def read(cls, path: Path) -> Unit:
        """Return what a unit of the owner starts, and with which variables."""
        lines = path.read_text().replace("\\\n", " ").splitlines()
        pairs = [line.split("=", 1) for line in lines if "=" in line]
        texts = [shlex.split(value)[0] for key, value in pairs if key == "Environment"]
        assert ["User", OWNER] in pairs
        (command,) = [value for key, value in pairs if key == "ExecStart"]
        made = dict(pairs)
        directory, mode = made.get("RuntimeDirectory"), made.get("RuntimeDirectoryMode")
        return cls(
            dict(text.split("=", 1) for text in texts),
            shlex.split(command),
            {f"/run/{directory}": mode} if directory and mode else {},
        )

    def start(self, lab: Lab, log: IO[bytes]) -> subprocess.Popen[bytes]:
        """Start it in a lab as systemd does: directories, user, environment."""
        for path, mode in self.directories.items():
            # Those above it are root's.
            lab.run("root", "install", "-d", "-m", "755", str(Path(path).parent))
            owner = ("-o", OWNER, "-g", OWNER)
            lab.run("root", "install", "-d", *owner, "-m", mode, path)
        return lab.start(OWNER, *self.command, log=log, env=self.environment)
