# SPDX-License-Identifier: MIT
"""Jobspecs that Flux accepts from any user, and that are made to harm a daemon."""

from __future__ import annotations

from typing import Any


def _jobspec(constraint: Any = None, **system: Any) -> dict[str, Any]:
    """Return a jobspec of one whole node (RFC 14, RFC 25)."""
    slot = {
        "type": "slot",
        "count": 1,
        "label": "task",
        "with": [{"type": "core", "count": 1}],
    }
    node = {"type": "node", "count": 1, "exclusive": True, "with": [slot]}
    if constraint is not None:
        system["constraints"] = constraint
    return {
        "version": 1,
        "resources": [node],
        "tasks": [{"command": ["x"], "slot": "task", "count": {"per_slot": 1}}],
        "attributes": {"system": {"burstable": True, **system}},
    }


def _nested(depth: int) -> Any:
    found: Any = {"properties": ["burst"]}
    for _ in range(depth):
        found = {"and": [found]}
    return found


JOBSPECS: dict[str, Any] = {
    "constraint is deep": _jobspec(_nested(60)),
    "constraint is deeper": _jobspec(_nested(900)),
    "constraint is long": _jobspec(
        {"or": [{"hostlist": [f"h{i}"]} for i in range(900)]}
    ),
    "constraint is wide": _jobspec({"hostlist": ["h[0-99999]"]}),
    "constraint is a number": _jobspec(7),
    "constraint has no sense": _jobspec({"hostlist": ["burst-0-["]}),
    "constraint names ranks": _jobspec({"ranks": ["0-999999999"]}),
    "wish is a list": _jobspec(burst=["a"]),
    "wish has a long provider": _jobspec(burst={"provider": "x" * 10_000}),
    "wish has odd numbers": _jobspec(burst={"max-price": -1, "wait": 1e308}),
    "environment is a list": _jobspec(burst={"mode": "isolated"}, environment=["A=b"]),
    "environment is large": _jobspec(
        burst={"mode": "isolated"}, environment={"A": "x" * 100_000}
    ),
    "no tasks": {**_jobspec(burst={"mode": "isolated"}), "tasks": None},
    "duration is text": _jobspec(duration="long"),
    "duration has no end": _jobspec(duration=1e308),
    "resources are a word": {**_jobspec(), "resources": "all"},
}
