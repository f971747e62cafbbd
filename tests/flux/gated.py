# SPDX-License-Identifier: MIT
"""The local provider with gates: its calls stop where a test has closed one.

A gate is a file. Whoever comes to a closed one writes `NAME.waits` beside it and goes
on once the gate is gone, so that a test can act while a daemon stands at that point.
Daemons of tests find this as any third party's provider, by its entry point.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from burst_local import LocalProvider, LocalSettings

from burst.errors import NotFound
from burst.model.burst import BurstId
from burst.provider import BurstSpec, BurstStatus, Offer, Provider

TYPE = "gated"
_LOOK_S = 0.02


class GatedSettings(LocalSettings, frozen=True, kw_only=True):
    """Those of the local provider, and where the gates are."""

    gates: str


class GatedProvider(Provider):
    """Stops before and after the calls that change something."""

    Settings = GatedSettings

    def __init__(self, name: str, settings: GatedSettings, owner: str) -> None:
        self._local = LocalProvider(name, settings, owner)
        self._gates = Path(settings.gates)

    def offers(self) -> Sequence[Offer]:
        """Return what the local provider sells."""
        return self._local.offers()

    def provision(self, spec: BurstSpec) -> None:
        """Make the burst."""
        self._pass("before-provision")
        self._local.provision(spec)
        self._pass("after-provision")

    def resize(self, spec: BurstSpec) -> None:
        """Change how many followers the burst has."""
        self._pass("before-resize")
        self._local.resize(spec)
        self._pass("after-resize")

    def observe(self) -> Sequence[BurstStatus]:
        """Return what the local provider sees."""
        return self._local.observe()

    def reap(self, burst_id: BurstId) -> None:
        """Delete the burst."""
        self._pass("before-reap")
        try:
            self._local.reap(burst_id)
        except NotFound:
            self._pass("after-reap")
            raise

    def _pass(self, name: str) -> None:
        gate = self._gates / name
        if gate.exists():
            gate.with_suffix(".waits").touch()
        while gate.exists():
            time.sleep(_LOOK_S)


def install(directory: Path) -> None:
    """Make the directory, put on PYTHONPATH, offer the provider as installed."""
    package = directory / "gated-1.dist-info"
    package.mkdir(parents=True)
    (package / "METADATA").write_text("Name: gated\nVersion: 1\n")
    (package / "entry_points.txt").write_text(
        f"[burst.providers]\n{TYPE} = {__name__}:{GatedProvider.__name__}\n"
    )
