# SPDX-License-Identifier: MIT
"""What an engine does for a scheduler that starts jobs by itself, and for queues."""

import pytest

from burst.model.lead import LeasedRanks
from tests.builders import whole
from tests.sim import Sim


def sim(mode, **tables):
    return Sim(intake={"mode": mode}, **tables)


def test_the_scheduler_is_told_whose_the_leased_ranks_are_when_that_changes():
    s = sim("scheduler")
    s.tick()
    assert s.lead.lent == [LeasedRanks()]
    job = s.lead.submit(whole(4))
    s.joins = False
    s.tick(3)
    ranks = frozenset({2, 3, 4, 5})
    assert s.lead.lent[1:] == [LeasedRanks({job: frozenset()}, ranks)]
    s.joins = True
    s.tick(3)
    assert LeasedRanks({job: ranks}, ranks) in s.lead.lent
    assert s.lead.lent[-1] == LeasedRanks({}, ranks)
    assert s.lead.jobs[job].urgency == 16


def test_it_is_told_again_now_and_then_as_it_may_be_another_by_then():
    s, other = sim("scheduler"), sim("hold")
    for one in s, other:
        one.tick()
        one.tick(2, seconds=10.0)
    assert s.lead.lent == [LeasedRanks()] * 3
    assert other.lead.lent == [], "other schedulers are not told"


def test_a_scheduler_that_is_back_is_told_at_the_next_tick(caplog):
    s = sim("scheduler")
    s.tick()
    s.lead.scheduler = "sched-simple"
    s.joins = False
    job = s.lead.submit(whole(4))
    s.tick(4)
    assert caplog.text.count("sched-burst is not loaded any more") == 1
    assert s.lead.lent == [LeasedRanks()]
    s.lead.scheduler = "sched-burst"
    s.tick()
    assert s.lead.lent[1:] == [LeasedRanks({job: frozenset()}, frozenset({2, 3, 4, 5}))]


@pytest.mark.parametrize(("mode", "times"), [("queue", 2), ("scheduler", 0)])
def test_queues_are_seen_to_now_and_then(mode, times):
    s = sim(mode)
    s.tick(4)
    assert s.lead.prepared == []
    s.tick(4, seconds=5.0)
    assert s.lead.prepared == [s.settings.intake] * times


def test_queues_that_are_gone_are_said_and_the_tick_goes_on(caplog):
    s = sim("queue")
    s.lead.scheduler = "sched-simple"
    s.tick(1, seconds=10.0)
    assert "there is no such queue" in caplog.text


def test_a_released_job_keeps_its_place_by_urgency_then_by_submission():
    """The rule of docs/intake.md: it starves nobody, and nobody starves it."""
    s = Sim()
    busy = s.lead.submit(whole(2))
    s.tick(2)
    ahead = s.lead.submit(whole(2, constraint='{"properties":["local"]}'))
    burst = s.lead.submit(whole(4))
    behind = s.lead.submit(whole(1, constraint='{"properties":["local"]}'))
    s.until(lambda: s.lead.jobs[burst].urgency == 16 and len(s.lead.online) == 6)
    s.tick()
    assert s.lead.running() == [busy], "each waits for the one ahead"
    s.lead.finish(busy)
    s.tick(2)
    assert s.lead.running() == [ahead, burst]
    s.lead.finish(ahead)
    s.tick(2)
    assert s.lead.running() == [burst, behind]
