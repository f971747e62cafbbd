# SPDX-License-Identifier: MIT
"""A `flux` program that prints what a test says, and keeps how it was called."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from burst_flux.provider import FluxProvider
from burst_flux.settings import FluxSettings

from burst.config import Seconds
from burst.model.shape import Shape
from burst.testing import example_lead, example_spec

_SCRIPT = """#!/bin/sh
cd {place} || exit 9
echo "$*" >> calls
env > environment
[ ! -e "$1.error" ] || {{ cat "$1.error" >&2; exit 1; }}
case "$*" in *--name=*) named=.named ;; esac
[ ! -e "$1$named" ] || cat "$1$named"
"""
_ANSWERS = {
    "getattr": "0.88.0",
    "queue": "enabled|started",
    "uri": "local:///resolved",
    "resource": json.dumps(
        {
            "version": 1,
            "execution": {
                "R_lite": [
                    {"rank": "0-2", "children": {"core": "0-3", "gpu": "0"}},
                    {"rank": "3,5", "children": {"core": "0-7"}},
                ],
                "starttime": 0,
                "expiration": 0,
                "nodelist": ["n[0-4]"],
            },
        }
    ),
}


class FluxProgram:
    """It answers by files named after its first word; `jobs` says which jobs exist."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self.path = place / "flux"
        self.path.write_text(_SCRIPT.format(place=place))
        self.path.chmod(0o755)
        for word, text in _ANSWERS.items():
            self.answer(word, text)
        self.jobs()

    def answer(self, word: str, text: str) -> None:
        (self._place / word).write_text(text)

    def fail(self, word: str, text: str) -> None:
        """Have that command fail and say so."""
        (self._place / f"{word}.error").write_text(text)

    def jobs(self, *jobs: dict[str, Any], ended: Sequence[dict[str, Any]] = ()) -> None:
        """Say which jobs live, and which are over."""
        self.answer("jobs", json.dumps({"jobs": jobs}))
        self.answer("jobs.named", json.dumps({"jobs": [*jobs, *ended]}))

    def calls(self, word: str) -> list[str]:
        """Return the words of each call of that command."""
        path = self._place / "calls"
        lines = path.read_text().splitlines() if path.exists() else []
        return [line for line in lines if line.split(" ")[0] == word]

    def environment(self) -> str:
        """Return the variables that it had when it was last called."""
        return (self._place / "environment").read_text()


def job(name: str, state: str, **fields: Any) -> dict[str, Any]:
    """Return a job as flux-jobs(1) prints it."""
    return {"jobid": "f1", "name": name, "state": state, "t_submit": 1.0, **fields}


class Other:
    """A provider by such a program, and the spec of a burst of two nodes."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.flux = FluxProgram(place)
        spec = example_spec(example_lead(place), 0, "nodes")
        self.spec = msgspec.structs.replace(spec, shape=Shape(4), lease_end=0.0)
        self.name = f"burst.{self.spec.owner}.other.{self.spec.burst_id}"

    def provider(
        self, clock: Callable[[], float] = time.time, **changes: Any
    ) -> FluxProvider:
        settings = FluxSettings(
            uri="local:///other",
            dir=str(self.place / "files"),
            cores=4,
            max_nodes=4,
            time=Seconds(3600),
            flux=str(self.flux.path),
        )
        settings = msgspec.structs.replace(settings, **changes)
        return FluxProvider("other", settings, self.spec.owner, clock=clock)
