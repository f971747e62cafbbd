# SPDX-License-Identifier: MIT
"""Fluxion, the scheduler of flux-sched, as it is installed beside Flux in a box.

A developer's machine may have it in a prefix of its own, where the other tests' Flux
does not find it.
"""

from __future__ import annotations

import shlex
from typing import Any

from tests.multiuser.lab import flux_etc, flux_prefix
from tests.site.box import Box
from tests.support.fluxion import PREFIX, QMANAGER, RESOURCE, find_fluxion

MODULES = (RESOURCE, "sched-fluxion-feasibility", QMANAGER)
POLICIES = ("easy", "conservative", "fcfs")
INSTALLED = find_fluxion() is not None


def install(box: Box) -> None:
    """Install it beside the Flux of the box."""
    prefix = flux_prefix()
    places = {"etc": flux_etc().parents[1], "lib": prefix, "libexec": prefix}
    for part, place in places.items():
        there = shlex.quote(str(PREFIX / part))
        box.run("root", "sh", "-c", f"[ ! -e {there} ] || cp -a {there} {place}")


def remove(box: Box) -> None:
    """Have the Flux of the box without it, wherever the machine has one beside Flux."""
    places = [
        *(flux_prefix() / f"lib/flux/modules/{name}.so" for name in MODULES),
        *(flux_etc() / f"rc{number}.d/01-sched-fluxion" for number in (1, 3)),
        *(
            flux_etc() / "modprobe" / part
            for part in ("modprobe.d/fluxion.toml", "rc1.d/fluxion.py")
        ),
    ]
    box.run("root", "rm", "-f", *map(str, places))


def tables(policy: str) -> dict[str, Any]:
    """Return what sites configure of it, flux-config-sched-fluxion-*(5)."""
    return {
        "sched-fluxion-qmanager": {"queue-policy": policy},
        "sched-fluxion-resource": {"match-format": "rv1_nosched"},
    }
