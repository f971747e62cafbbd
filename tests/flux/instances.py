# SPDX-License-Identifier: MIT
"""A provider whose isolated bursts are real: each is a Flux instance on this machine.

Daemons of tests find it as any third party's provider, by its entry point. Its brokers
are processes of one session, that of the shell script that starts them.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from importlib.resources import files
from pathlib import Path

import msgspec

from burst.errors import NotFound
from burst.model.burst import BurstId
from burst.provider import (
    BurstMode,
    BurstSpec,
    BurstStatus,
    FollowerStatus,
    InstanceStatus,
    Offer,
    Phase,
    Provider,
    Shape,
)

TYPE = "instances"
_RUNNER = files("burst") / "flux_setup" / "files" / "run-isolated.py"
# Its first line makes a second start end at once: the program begins once.
_SCRIPT = """set -C; echo $$ > pid || exit 1
exec {flux} start -s{nodes} {flux} python {runner} {flux} jobspec result > output 2>&1
"""


class InstancesSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Where bursts are, and what runs them."""

    dir: str
    flux: str
    price: float = 0.0
    modes: tuple[BurstMode, ...] = ("isolated",)


class InstancesProvider(Provider):
    """Each burst is a directory, with the files of its instance."""

    Settings = InstancesSettings

    def __init__(self, name: str, settings: InstancesSettings, owner: str) -> None:
        self._home = Path(settings.dir)
        self._settings = settings

    @classmethod
    def modes(cls, settings: InstancesSettings) -> tuple[BurstMode, ...]:
        """Return those of the settings."""
        return settings.modes

    def offers(self) -> Sequence[Offer]:
        """Return one kind of nodes, of this machine."""
        known = self._settings
        return [
            Offer(
                name="nodes",
                shape=Shape(1),
                max_nodes=4,
                price=known.price,
                modes=known.modes,
            )
        ]

    def provision(self, spec: BurstSpec) -> None:
        """Start the instance, unless it was."""
        assert spec.program
        place = self._home / spec.burst_id
        place.mkdir(parents=True, exist_ok=True)
        (place / "hosts").write_text(json.dumps(spec.hosts))
        (place / "jobspec").write_text(spec.program.jobspec)
        script = _SCRIPT.format(
            flux=self._settings.flux, nodes=len(spec.hosts), runner=_RUNNER
        )
        plain = {k: v for k, v in os.environ.items() if not k.startswith("FLUX_")}
        subprocess.Popen(
            ["sh", "-c", script],
            cwd=place,
            env={**plain, "SHELL": "/bin/sh"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def observe(self) -> Sequence[BurstStatus]:
        """Return what the files of each burst say."""
        places = sorted(self._home.iterdir()) if self._home.exists() else []
        return [self._status(place) for place in places]

    def reap(self, burst_id: BurstId) -> None:
        """End the brokers, and delete the directory."""
        place = self._home / burst_id
        if not place.exists():
            raise NotFound(f"there is no {burst_id}")
        pid = _read(place / "pid")
        if pid:
            with suppress(ProcessLookupError):
                os.killpg(int(pid), signal.SIGKILL)
        shutil.rmtree(place)

    def _status(self, place: Path) -> BurstStatus:
        result = _read(place / "result")
        up = bool(_read(place / "pid"))
        phase = Phase.RUNNING if up else Phase.PENDING
        return BurstStatus(
            burst_id=BurstId(place.name),
            phase=phase,
            followers=tuple(
                FollowerStatus(host, phase)
                for host in json.loads(_read(place / "hosts") or "[]")
            ),
            instance=InstanceStatus(
                online=up,
                exit_status=json.loads(result)["exit_status"] if result else None,
                output=_read(place / "output") if result else "",
            ),
        )


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except FileNotFoundError:
        return ""


def install(site: Path) -> None:
    """Make it known to a process that has `site` on its PYTHONPATH."""
    info = site / "instances-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Name: instances\nVersion: 1\n")
    point = f"{TYPE} = {__name__}:{InstancesProvider.__name__}"
    (info / "entry_points.txt").write_text(f"[burst.providers]\n{point}\n")
