# SPDX-License-Identifier: MIT
"""What Flux answers when it is asked for ranks, as tests play it."""

from __future__ import annotations

from typing import Any


def resources(*groups: tuple[str, str, str], **properties: str) -> dict[str, Any]:
    """Return R of groups of ranks, cores and GPUs."""
    lite = [
        {"rank": ranks, "children": {"core": cores, **({"gpu": gpus} if gpus else {})}}
        for ranks, cores, gpus in groups
    ]
    return {"version": 1, "execution": {"R_lite": lite, "properties": properties}}


ALL = resources(("0", "0-1", ""), ("1-3", "0-3", "0"))
NOTHING = resources()


def status(**more: Any) -> dict[str, Any]:
    own = {"online": "0-1", "offline": "2-3", "exclude": "", "torpid": "", "drain": {}}
    return {"R": ALL, **own, **more}
