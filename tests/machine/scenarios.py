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
BEFORE_MIDNIGHT = 36_700.0
"""Some seconds before a day ends, from T0 on."""
# A node costs a unit for an hour; reserved are 240 s with the longest time limit of
# the jobs that have one, and an hour of those that have none.
_BUDGETS: tuple[list[_Table], ...] = (
    [{"limit": 1.0, "per": "day"}],
    [{"limit": 8.0}, {"limit": 0.6, "per": "day", "match": {"provider": "a"}}],
    [{"limit": 4.5, "per": "week"}],
    [{"limit": 0, "match": {"provider": "a"}}],
    [
        {"limit": 4.4, "match": {"user": "1"}},
        {"limit": 6, "match": {"user": ["2", "3"]}},
    ],
    [{"limit": 3.0, "per": "day", "match": {"user": ["1", "2"]}}, {"limit": 8}],
    [
        {"limit": 4.4, "match": {"bank": "physics"}},
        {"limit": 5, "per": "week", "match": {"bank": "maths"}},
    ],
    [
        {"limit": 1.2, "per": "day", "match": {"bank": "maths", "user": "2"}},
        {"limit": 3.0, "match": {"bank": ["physics", "maths"], "provider": "a"}},
    ],
)
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
    {"mode": "hold"},  # the default, so that the other seeds draw what they drew
    {"mode": "queue"},
)


def draw(random: Random) -> dict[str, Any]:
    """Return a scenario: what differs from the tables in `world.py`."""
    scenario = _draw(random)
    # Not by `random`, from which the steps of each seed come, too.
    other = Random(repr(scenario))
    scenario["guests"] = other.random() < 0.4
    scenario["fans"] = other.random() < 0.5
    for site in scenario["providers"].values():
        if "capacity" not in site:
            continue
        if other.random() < 0.5:
            site["total"] = site["capacity"]
        else:
            # Longer than what was asked for in vain is in use.
            scenario["limits"] = {**scenario["limits"], "cooldown": "120s"}
    if not scenario.get("serve") and other.random() < 0.25:
        kept = other.choice(sorted(scenario["providers"]))
        scenario["providers"][kept]["keeps"] = other.randint(1, 4)
    return scenario


def _draw(random: Random) -> dict[str, Any]:
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
    for site in sites.values():
        site.setdefault("price", 1.0)
    kind = random.random()
    # Where all that can be served must be, nothing is refused for want of money.
    if kind < 0.35:
        scenario["serve"] = True
        scenario["stream"] = kind < 0.1
    elif kind < 0.75:
        scenario["budget"] = random.choice(_BUDGETS)
        scenario["banks"] = kind < 0.55
        scenario["begins"] = random.choice((0.0, BEFORE_MIDNIGHT))
    if random.random() < 0.3:
        scenario["standing"] = True
    if len(sites) > 1 and random.random() < 0.6:
        _start_apart(sites, random)
    return scenario


def _start_apart(sites: dict[str, _Table], random: Random) -> None:
    """Have bursts of one provider not always be online in the tick of the other's."""
    for site in sites.values():
        site["starts_after"] = random.choice((0, 0, 2, 5))
