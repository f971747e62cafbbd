# SPDX-License-Identifier: MIT
"""Isolated bursts for jobs with a tag: what requests of one moment come to.

What the service answers is in `tests/runtime/test_service_api.py`.
"""

from __future__ import annotations

from burst.core.tagged_jobs import IsolatedJobs
from burst.model.burst import Tag
from burst.model.request import BurstPreferences
from tests.builders import whole
from tests.core.isolation import BOTH
from tests.sim import Sim


def test_a_job_that_has_a_burst_already_gets_no_other() -> None:
    """The decisions of the last tick do not tell of one that was made since."""
    sim = Sim(modes=BOTH)
    job = sim.lead.submit(
        whole(1),
        userid=0,
        urgency=0,
        held_at_submit=True,
        preferences=BurstPreferences(tag="night", urgency=16),
    )
    sim.tick(2)
    seen = sim.engine.snapshot
    jobs = IsolatedJobs(tag=Tag("night", 0), nodes=4, provider="local")
    of_seen = seen.world, seen.settings, [job], seen.now
    first, why = jobs.start(seen.records, *of_seen)
    assert (len(first.records.live), why) == (1, "")
    again, why = jobs.start(first.records, *of_seen)
    assert (again.records.bursts, why) == (first.records.bursts, "")
    assert again.actions == ()
