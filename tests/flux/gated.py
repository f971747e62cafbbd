# SPDX-License-Identifier: MIT
"""A provider with gates: its calls stop where a test has closed one.

A gate is a file. Whoever comes to a closed one writes `NAME.waits` beside it and goes
on once the gate is gone, so that a test can act while a daemon stands at that point.
Daemons of tests find this as any third party's provider, by its entry point.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import msgspec

from burst.config import convert
from burst.errors import NotFound
from burst.model.burst import BurstId
from burst.provider import (
    BurstSpec,
    BurstStatus,
    Offer,
    OptionalMethod,
    OwnedBurst,
    Provider,
)
from burst.provider_type import PROVIDERS

TYPE = "gated"
_LOOK_S = 0.02


class GatedSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Where the gates are, and the table of the provider behind them."""

    gates: str
    behind: Mapping[str, Any]


class GatedProvider(Provider):
    """Stops before and after the calls that change something."""

    Settings = GatedSettings

    def __init__(self, name: str, settings: GatedSettings, owner: str) -> None:
        table = dict(settings.behind)
        (point,) = entry_points(group=PROVIDERS, name=table.pop("type"))
        kind = point.load()
        self._behind: Provider = kind(name, convert(kind.Settings, table, name), owner)
        self._gates = Path(settings.gates)

    def has(self, method: OptionalMethod) -> bool:
        """Tell whether the provider has it, and it is one of those below."""
        return super().has(method) and self._behind.has(method)

    def place(self) -> str:
        """Return where the provider makes bursts."""
        return self._behind.place()

    def offers(self) -> Sequence[Offer]:
        """Return what the provider sells."""
        return self._behind.offers()

    def provision(self, spec: BurstSpec) -> None:
        """Make the burst."""
        self._pass("before-provision")
        self._behind.provision(spec)
        self._pass("after-provision")

    def resize(self, spec: BurstSpec) -> None:
        """Change how many followers the burst has."""
        self._pass("before-resize")
        self._behind.resize(spec)
        self._pass("after-resize")

    def observe(self) -> Sequence[BurstStatus]:
        """Return what the provider sees."""
        return self._behind.observe()

    def list_all(self) -> Sequence[OwnedBurst]:
        """Return what there is, of all owners."""
        return self._behind.list_all()

    def reap(self, burst_id: BurstId) -> None:
        """Delete the burst."""
        self._pass("before-reap")
        try:
            self._behind.reap(burst_id)
        except NotFound:
            self._pass("after-reap")
            raise

    def _pass(self, name: str) -> None:
        gate = self._gates / name
        if gate.exists():
            gate.with_suffix(".waits").touch()
        while gate.exists():
            time.sleep(_LOOK_S)


def install(
    directory: Path, name: str = TYPE, where: str = f"{__name__}:GatedProvider"
) -> None:
    """Offer a provider as installed, this by default, to whom has it on PYTHONPATH."""
    package = directory / f"{name}-1.dist-info"
    package.mkdir(parents=True)
    (package / "METADATA").write_text(f"Name: {name}\nVersion: 1\n")
    points = f"[burst.providers]\n{name} = {where}\n"
    (package / "entry_points.txt").write_text(points)
