# SPDX-License-Identifier: MIT
"""The local provider with faults: each of its calls can be made to fail, by a file.

`NAME.json` in the directory `faults` maps a method's name, or `*` for all, to what it
does instead: an error of burst.errors, `OSError`, or `slow`. Daemons of tests find this
as any third party's provider, by its entry point.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from burst_local.provider import LocalProvider, LocalSettings

from burst.errors import InsufficientCapacity, Refused, Transient
from burst.model.burst import BurstId
from burst.provider import BurstSpec, BurstStatus, Offer, Provider

TYPE = "faulty"
METHODS = ("offers", "provision", "observe", "reap", "*")
_SLOW_S = 1.0
_ERRORS: Mapping[str, Callable[[], Exception]] = {
    "Transient": lambda: Transient("down for a moment", retry_after=0.5),
    "InsufficientCapacity": lambda: InsufficientCapacity("sold out"),
    "Refused": lambda: Refused("the password has expired", "renew it"),
    "OSError": lambda: OSError("a bug of the provider"),
}
FAULTS = (*_ERRORS, "slow")


class FaultySettings(LocalSettings, frozen=True, kw_only=True):
    """Those of the local provider, and where the faults are."""

    faults: str


class FaultyProvider(Provider):
    """Looks at its file in each call."""

    Settings = FaultySettings

    def __init__(self, name: str, settings: FaultySettings, owner: str) -> None:
        self._local = LocalProvider(name, settings, owner)
        self._file = Path(settings.faults) / f"{name}.json"

    def offers(self) -> Sequence[Offer]:
        """Return what the local provider sells."""
        self._suffer("offers")
        return self._local.offers()

    def provision(self, spec: BurstSpec) -> None:
        """Make the burst."""
        self._suffer("provision")
        self._local.provision(spec)

    def observe(self) -> Sequence[BurstStatus]:
        """Return what the local provider sees."""
        self._suffer("observe")
        return self._local.observe()

    def reap(self, burst_id: BurstId) -> None:
        """Delete the burst."""
        self._suffer("reap")
        self._local.reap(burst_id)

    def _suffer(self, method: str) -> None:
        try:
            faults = json.loads(self._file.read_bytes())
        except FileNotFoundError:
            return
        fault = faults.get(method) or faults.get("*")
        if fault == "slow":
            time.sleep(_SLOW_S)
        elif fault:
            raise _ERRORS[fault]()


def install(directory: Path) -> None:
    """Make the directory, put on PYTHONPATH, offer the provider as installed."""
    package = directory / "faulty-1.dist-info"
    package.mkdir(parents=True)
    (package / "METADATA").write_text("Name: faulty\nVersion: 1\n")
    (package / "entry_points.txt").write_text(
        f"[burst.providers]\n{TYPE} = {__name__}:{FaultyProvider.__name__}\n"
    )
