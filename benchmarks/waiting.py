# SPDX-License-Identifier: MIT
"""The CPU time of a tick at a site where many burst jobs wait and cannot burst.

The engine has a fake lead and a fake cloud, a limit of one burst that is in use, and
jobs of 32 shapes. All of a tick is measured except reading the lead, which
benchmarks/intake.py measures. A refusal stays valid until its cause changes.

    python benchmarks/waiting.py [--json]
"""

from __future__ import annotations

import logging
import time

from benchmarks.table import Goal, Measure, main_of
from burst.model.lead import LeadView
from burst.model.reason import Reason
from tests.builders import whole
from tests.fakes import FakeLead
from tests.sim import Sim

GOAL_S = 0.05
SETTLES = 15
"""Ticks until the first job has its burst and, in modes that hold, others are held."""
RUNS = 7


class Still(FakeLead):
    """A lead on which nothing happens once `seen` is set."""

    seen: LeadView | None = None

    def observe(self) -> LeadView:
        """Return `seen` if it is set."""
        return self.seen or super().observe()


def waiting(mode: str, jobs: int) -> Sim:
    """Return an engine with `jobs` jobs, one of which has a burst."""
    lead = Still()
    intake = {"mode": mode}
    # Offers have the nodes of the largest jobs, which would fail otherwise.
    sim = Sim(lead, nodes=16, intake=intake, limits={"max_bursts": 1})
    queue = "burst" if mode == "queue" else ""
    for number in range(jobs):
        request = whole(3 + number % 8, cores_per_slot=1 + number % 4)
        lead.submit(request, queue=queue)
    sim.tick(SETTLES)
    decisions = sim.engine.snapshot.decisions.values()
    refused = sum(each.reason is Reason.TURNED_DOWN for each in decisions)
    assert refused > jobs // 2, refused
    return sim


def time_turn(sim: Sim) -> float:
    """Return the CPU seconds of a tick without news: the least of several."""
    assert isinstance(sim.lead, Still)
    sim.lead.seen = sim.lead.observe()
    times = []
    for _ in range(RUNS):
        sim.now += 1
        began = time.process_time()
        sim.engine.tick(sim.now)
        times.append(time.process_time() - began)
    return min(times)


def measure() -> list[Measure]:
    """Return all measures."""
    logging.getLogger("burst").setLevel(logging.ERROR)
    found = []
    for mode in ("hold", "queue", "scheduler"):
        for jobs in (2_000, 10_000):
            took = time_turn(waiting(mode, jobs))
            what = f"{jobs:,} jobs wait in mode {mode}"
            found.append(Measure(what, took * 1e3, "ms", Goal("<", GOAL_S * 1e3)))
    return found


if __name__ == "__main__":
    main_of(__doc__, measure)
