# SPDX-License-Identifier: MIT
"""What an interleaving begins with: the lead's hosts, the settings, the providers."""

from __future__ import annotations

from random import Random
from typing import Any

_TWO_SLOTS = "lead-[0-1],burst-0-[0-3],burst-1-[0-3]"
_HOSTS = (
    _TWO_SLOTS,
    _TWO_SLOTS,
    "lead-[0-1],burst-0-[0-3],burst-1-[0-3],burst-2-[0-1]",
)
_SITES: tuple[dict[str, dict[str, Any]], ...] = (
    {"a": {"max_nodes": 4}},
    {"a": {"max_nodes": 8}},
    {"a": {"max_nodes": 4, "capacity": 6}},
    {"a": {"max_nodes": 4, "price": 2.0}, "b": {"max_nodes": 4}},
    {"a": {"max_nodes": 3}, "b": {"max_nodes": 4, "place": "a"}},
)
_Table = dict[str, Any]
_LIMITS: tuple[_Table, ...] = (
    {},
    {},
    {"max_nodes": 6},
    {"max_nodes": 4, "max_bursts": 1},
    {"max_nodes_per_user": 4},
    {"max_nodes_per_burst": 3},
)
_PLANS: tuple[_Table, ...] = (
    {},
    {},
    {"share_users": True},
    {"share": False},
    {"spread": False},
    {"partial": "keep"},
)
_INTAKES: tuple[_Table, ...] = (
    {},
    {},
    {"mode": "queue"},
    {"mode": "scheduler"},
    {"release_urgency": 20},
    {"impossible": "fail"},
)


def draw(random: Random) -> dict[str, Any]:
    """Return a scenario: what differs from the tables in `world.py`."""
    sites = {name: dict(site) for name, site in random.choice(_SITES).items()}
    if random.random() < 0.25:
        for site in sites.values():
            site["modes"] = ["joined", "isolated"]
    scenario: dict[str, Any] = {
        "providers": sites,
        "hosts": random.choice(_HOSTS),
        "limits": random.choice(_LIMITS),
        "plan": random.choice(_PLANS),
        "intake": random.choice(_INTAKES),
    }
    if random.random() < 0.2:
        scenario["deadlines"] = {"lease": "300s"}
    kind = random.random()
    if kind < 0.35:
        scenario["serve"] = True
        scenario["stream"] = kind < 0.1
    if random.random() < 0.3:
        scenario["standing"] = True
    return scenario
