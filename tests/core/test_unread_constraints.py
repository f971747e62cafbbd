# SPDX-License-Identifier: MIT
"""Thousands of constraints of one user take no more of a tick than others can bear."""

from burst.model.lead import JobState
from burst.model.reason import Reason
from tests.builders import LENT, whole
from tests.sim import Sim


def flood(**tables):
    """One user's jobs, each of which names another 2,000 hosts, and one of another."""
    sim = Sim(**tables)
    sim.tick(2)
    asked = [f'{{"hostlist":["flood{i}-[0-1999]"]}}' for i in range(150)]
    many = [sim.lead.submit(whole(1, constraint=text), userid=1) for text in asked]
    other = sim.lead.submit(whole(2, constraint=LENT), userid=2)
    return sim, many, other


def reasons(sim, jobs):
    return [sim.decision(job).reason for job in jobs]


def test_jobs_of_others_are_served_in_the_first_tick():
    sim, many, other = flood()
    sim.now += 1.0
    due = sim.engine.tick(sim.now)

    assert reasons(sim, [other]) == [Reason.PROPOSED]
    found = reasons(sim, many)
    assert 90 < found.count(Reason.NOT_YET_READ) < 130
    # The oldest first; and the next tick is soon.
    assert found == sorted(found, key=lambda reason: reason is Reason.NOT_YET_READ)
    assert sim.now < due <= sim.now + 0.1
    text = sim.decision(many[-1]).text()
    assert text.startswith("its constraint is evaluated in a later tick")


def test_they_are_held_as_long_and_judged_in_later_ticks():
    sim, many, other = flood(intake={"mode": "hold"})
    sim.tick()
    assert {sim.lead.jobs[job].urgency for job in many} == {0}

    sim.until(lambda: Reason.NOT_YET_READ not in reasons(sim, many), ticks=6)
    assert set(reasons(sim, many)) == {Reason.EXCLUDED}
    sim.until(lambda: sim.lead.jobs[other].state is JobState.RUN, ticks=10)
    # No memo was written of what was over so soon.
    assert "evaluated in a later tick" not in str(sim.lead.memos)
