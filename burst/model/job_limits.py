# SPDX-License-Identifier: MIT
"""Limits of the instance and of each queue on what a job may ask for.

Flux rejects a job that exceeds them when it is submitted or changed. Source:
flux-config-policy(5), and flux-core's limit-job-size.c and limit-duration.c.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import msgspec

from burst.model.fsd import format_fsd, parse_fsd
from burst.model.request import ResourceRequest

UNLIMITED = -1
_SIZES = ("nnodes", "ncores", "ngpus")


class JobLimits(msgspec.Struct, frozen=True):
    """Limits of one queue; limits that it does not set are those of the instance."""

    most: Mapping[str, int] = {}
    """`job-size.max` by `nnodes`, `ncores` and `ngpus`; without keys of no limit."""
    least: Mapping[str, int] = {}
    """`job-size.min`, as `most`."""
    duration: float = 0.0
    """The longest time limit of a job in seconds, 0 for no limit. A job without a time
    limit exceeds any other limit."""

    @property
    def most_nodes(self) -> int:
        """The most nodes a job may ask for; 0 for no limit."""
        return max(self.most.get("nnodes", 0), 0)

    def why_over(self, request: ResourceRequest, duration: float) -> str:
        """Return why Flux would reject such a job; empty if it would not.

        `duration` is in seconds, 0 for no limit.
        """
        asked = {
            "nnodes": request.nodes,
            "ncores": request.slots * request.cores_per_slot,
            "ngpus": request.slots * request.gpus_per_slot,
        }
        for name, count in asked.items():
            if count > self.most.get(name, count):
                return f"{name} {count} is over the limit of {self.most[name]}"
            if count < self.least.get(name, count):
                return f"{name} {count} is under the limit of {self.least[name]}"
        if self.duration and (duration or math.inf) > self.duration:
            run = format_fsd(duration) if duration else "an unlimited run time"
            return f"{run} is over the limit of {format_fsd(self.duration)}"
        return ""

    def __str__(self) -> str:
        """Return the limits in words; empty if there are none."""
        said = [f"{name} at most {count}" for name, count in self.most.items()]
        said += [f"{name} at least {count}" for name, count in self.least.items()]
        if self.duration:
            said.append(f"duration at most {format_fsd(self.duration)}")
        return ", ".join(said)


def parse_limits(config: Mapping[str, Any]) -> dict[str, JobLimits]:
    """Return the limits of each named queue, and those of the instance by the name "".

    Invalid values are ignored: Flux would not have started with them.
    """
    general = _table(config, "policy", "limits")
    found = {"": _limits(general, {})}
    for name, queue in _table(config, "queues").items():
        found[name] = _limits(general, _table(queue, "policy", "limits"))
    return found


def _limits(general: Mapping[str, Any], own: Mapping[str, Any]) -> JobLimits:
    sizes: dict[str, dict[str, int]] = {}
    for bound in ("max", "min"):
        table = {
            **_table(general, "job-size", bound),
            **_table(own, "job-size", bound),
        }
        sizes[bound] = {
            name: table[name]
            for name in _SIZES
            if isinstance(table.get(name), int) and table[name] != UNLIMITED
        }
    try:
        text = str(own.get("duration", general.get("duration", "0")))
        duration = parse_fsd(text)
    except ValueError:
        duration = 0.0
    # An identity is written as JSON, which has no infinity.
    unlimited = math.isinf(duration)
    return JobLimits(sizes["max"], sizes["min"], 0.0 if unlimited else duration)


def _table(tables: Any, *keys: str) -> Mapping[str, Any]:
    """Return a table inside tables; empty if there is none."""
    for key in keys:
        tables = tables.get(key, {}) if isinstance(tables, Mapping) else {}
    return tables if isinstance(tables, Mapping) else {}
