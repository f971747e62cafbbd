# SPDX-License-Identifier: MIT
"""A simulated site where bursts cost money."""

from burst.core.money.money import UNIT
from burst.core.resize_request import WantedSize, resize_burst
from tests.builders import LENT, whole
from tests.sim import Sim

PROVISION = "60s"
DEADLINES = {
    **dict.fromkeys(("join", "release", "idle", "reap"), "60s"),
    "run": "1h",
    "drain": "60s",
}
BOUND = 300.0
"""What these limits add to the time limit of a job, in seconds."""


def sim(limit, modes=("joined",), nodes=8, **fields):
    """Where a node costs one unit for a second."""
    tables = {"prices": {"local.nodes": 3600.0}, "budget": [{"limit": limit, **fields}]}
    tables["deadlines"] = DEADLINES
    return Sim(modes=modes, nodes=nodes, provision=PROVISION, **tables)


def submit(its, nodes=1, duration=100.0, **fields):
    request = whole(nodes, constraint=LENT)
    return its.lead.submit(request, duration=duration, **fields)


def resize(its, nodes):
    """Have the one burst grow or shrink, as `burst resize` does."""
    wanted = WantedSize(its.burst.id, nodes)
    return its.ask(lambda tx: resize_burst(tx, wanted))


def used(its):
    return sum(e.reserved for e in its.records.entries.values()) / UNIT


def refusal(its, job):
    (found,) = its.decision(job).refusals
    return found
