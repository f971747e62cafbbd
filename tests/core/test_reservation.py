# SPDX-License-Identifier: MIT
"""The first job that waits for busy slots gets them, whatever else is submitted."""

from burst.model.jobid import JobId
from burst.model.reason import Reason
from tests.sim import Sim

HOUR = 3600.0


def sim(**tables):
    s = Sim(deadlines={"idle": "1m", **tables.pop("deadlines", {})}, **tables)
    s.tick(2)
    return s


def running(s, nodes, **changes):
    job = s.submit_lent(nodes, **changes)
    s.until(lambda: job in s.lead.running())
    return job


def test_a_job_that_needs_both_slots_runs_while_small_ones_keep_coming():
    s = sim()
    first = running(s, 1)
    big = s.submit_lent(8)
    since: dict[JobId, int] = {}
    for minute in range(24 * 60):
        s.submit_lent(1)
        s.tick(seconds=60)
        assert minute < 30
        if big in s.lead.running():
            break
        for job in s.lead.running():
            if minute - since.setdefault(job, minute) >= 3:
                s.lead.finish(job)
    assert big in s.lead.running()
    assert first < big
    # Those that came later are served once it is done.
    s.lead.finish(big)
    s.until(lambda: len(s.lead.running()) >= 4)


def test_jobs_behind_get_idle_nodes_for_a_while_and_no_longer():
    """As many as the first waits for, where nobody knows for how long it waits."""
    s = sim(deadlines={"idle": "1h"})
    running(s, 1)
    other = running(s, 7)
    s.lead.finish(other)
    s.tick(2)
    big = s.submit_lent(8)
    s.tick(2)
    overtaken = []
    for _ in range(6):
        small = s.submit_lent(2)
        s.tick(3)
        if small in s.lead.running():
            overtaken.append(small)
            s.lead.finish(small)
        s.tick(2)
    assert len(overtaken) == 4
    # Not counted are those that end before the first is given up.
    brief = s.submit_lent(2, duration=HOUR)
    s.tick(5)
    assert brief in s.lead.running()
    assert s.decision(big).reason is Reason.RESERVED
