# SPDX-License-Identifier: MIT
"""A job that may be starting while the lead is read is no demand."""

from typing import Any

import pytest

from burst.core.actions import HoldJobs, ProvisionBurst
from burst.core.records import Records
from burst.core.tick import run_tick
from burst.model.hold import Hold, HoldState
from burst.model.jobid import JobId
from burst.model.reason import Reason
from burst.model.request import BurstPreferences
from burst.model.shape import Shape
from tests.builders import NODE, T0, but, job, settings, view, whole, world
from tests.core.ticks import ID, recorded
from tests.lifecycles import WHOLE_WAY, run

ONE, TWO = JobId(1), JobId(2)
_KEPT_BACK: dict[str, dict[str, Any]] = {
    "queue": {"queue": "burst"},
    "hold": {"urgency": 0},
}
NOW = T0 + 5


def tick_once(seen, records=None, now=NOW, **intake):
    return run_tick(records or Records(), world(seen), settings(intake=intake), now)


def kinds(made):
    return [type(action) for action in made.actions]


def granting(seen, *ranks):
    """The view when these ranks, which are taken in it, are known to be nobody's."""
    given = dict.fromkeys(ranks, Shape(2))
    return but(seen, granting=given)


def test_a_job_that_changed_while_the_ranks_were_read_is_looked_at_again():
    seen = view(job(1, whole(2)), busy=(0, 1), changed=frozenset({ONE}))

    made = tick_once(seen)

    assert made.decisions[ONE].reason is Reason.STARTING
    assert made.actions == ()
    assert made.unsettled


def test_a_job_for_which_there_is_no_node_and_that_did_not_change_is_a_demand():
    made = tick_once(view(job(1, whole(2)), busy=(0, 1), changed=frozenset({TWO})))

    assert made.decisions[ONE].reason is Reason.PROPOSED
    assert kinds(made) == [ProvisionBurst, HoldJobs]
    assert not made.unsettled


@pytest.mark.parametrize(
    ("need", "reason"), [(1, Reason.STARTING), (2, Reason.PROPOSED)]
)
def test_what_is_being_given_away_may_be_the_jobs_where_it_would_do(need, reason):
    """Of two jobs that ask for the same, either may have it."""
    seen = view(job(1, whole(need)), job(2, whole(need)), busy=(0, 1))

    made = tick_once(granting(seen, 1))

    assert {made.decisions[each].reason for each in (ONE, TWO)} == {reason}
    assert made.unsettled is (reason is Reason.STARTING)


def test_a_job_that_is_held_cannot_be_starting():
    held = Records(holds={ONE: Hold(urgency=16, state=HoldState.HELD, since=T0)})
    seen = view(job(1, whole(1), urgency=0), busy=(0, 1))

    made = tick_once(granting(seen, 1), held)

    assert made.decisions[ONE].reason is Reason.PROPOSED


def test_a_held_job_may_have_what_the_job_before_it_does_not_take():
    """The first may be the job that is being given the other node."""
    held = Records(holds={TWO: Hold(urgency=16, state=HoldState.HELD, since=T0)})
    seen = view(job(1, whole(1)), job(2, whole(1), urgency=0), busy=(0,))

    made = tick_once(granting(seen, 0), held)

    assert made.decisions[ONE].reason is Reason.LOCAL
    assert made.decisions[TWO].reason is Reason.STARTING
    assert made.unsettled


def test_a_held_job_waits_for_no_node_that_is_not_for_it():
    """A job for an isolated burst never runs on own nodes."""
    held = Records(holds={TWO: Hold(urgency=16, state=HoldState.HELD, since=T0)})
    wish = BurstPreferences(mode="isolated")
    second = job(2, whole(1), urgency=0, preferences=wish)

    made = tick_once(granting(view(job(1, whole(1)), second, busy=(0,)), 0), held)

    assert made.decisions[ONE].reason is Reason.LOCAL
    assert made.decisions[TWO].reason is not Reason.STARTING


def test_a_job_in_the_stopped_queue_cannot_be_starting_on_own_nodes():
    parked = job(1, whole(1), queue="burst")

    made = tick_once(granting(view(parked, busy=(0, 1)), 1), now=T0, mode="queue")

    assert made.decisions[ONE].reason is Reason.PROPOSED


@pytest.mark.parametrize(("lasts", "counts"), [(0.0, 1.0), (12.5, 12.5)])
@pytest.mark.parametrize("mode", ["queue", "hold"])
def test_the_job_that_was_given_the_idle_nodes_of_a_burst_may_have_ended(
    mode, lasts, counts
):
    """It started and ended since the scheduler was asked: the next may have them.

    A scheduler that takes long to answer is asked less often than once in a second.
    """
    since = T0 + 10
    second = job(2, whole(2), t_submit=since, **_KEPT_BACK[mode])
    held = Hold(urgency=16, state=HoldState.HELD, since=since)
    idle = run(*WHOLE_WAY[:4], "job-leave", "idle")
    records = recorded(idle, holds={TWO: held} if mode == "hold" else {})
    seen = view(second, online=(0, 1, 2, 3), busy=(0, 1, 2, 3))
    known = but(seen, granting={2: NODE, 3: NODE}, granting_lasts=lasts)
    free = view(second, online=(0, 1, 2, 3), busy=(0, 1))

    asked_before = tick_once(known, records, now=since + counts - 0.1, mode=mode)
    asked_again = tick_once(free, records, now=since + counts - 0.1, mode=mode)
    still_taken = tick_once(known, records, now=since + counts, mode=mode)

    assert asked_before.decisions[TWO].reason is Reason.STARTING
    assert ProvisionBurst not in kinds(asked_before)
    assert asked_before.unsettled
    assert ProvisionBurst not in kinds(asked_again)
    assert TWO in asked_again.records.bursts[ID].jobs
    assert ProvisionBurst in kinds(still_taken)


@pytest.mark.parametrize(
    ("local_wait", "waited", "reason"),
    [
        ("10s", 9, Reason.STARTING),
        ("10s", 10, Reason.PROPOSED),
        ("0s", 0.9, Reason.STARTING),
        ("0s", 1, Reason.PROPOSED),
    ],
)
def test_a_flow_of_jobs_of_others_does_not_keep_a_job_waiting(
    local_wait, waited, reason
):
    """Where nodes are given away at each look, it has `local_wait`, or a second."""
    seen = granting(view(job(0, whole(1)), busy=(0, 1)), 1)

    made = tick_once(seen, now=T0 + waited, local_wait=local_wait)

    assert made.decisions[JobId(0)].reason is reason


def test_a_job_that_started_elsewhere_right_after_its_release_gets_no_burst():
    """What is being given away is the job's own; then the job manager shows it."""
    released = Hold(urgency=16, state=HoldState.RELEASED, since=NOW - 0.01)
    records = Records(holds={ONE: released})
    seen = granting(view(job(1, whole(1), preferences="local"), busy=(0, 1)), 1)

    made = tick_once(seen, records)

    assert made.decisions[ONE].reason is Reason.STARTING
    assert made.actions == ()
