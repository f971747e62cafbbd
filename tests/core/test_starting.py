# SPDX-License-Identifier: MIT
"""A job that may be starting while the lead is read is no demand."""

import pytest

from burst.core.actions import HoldJobs, ProvisionBurst
from burst.core.records import Records
from burst.core.tick import run_tick
from burst.model.hold import Hold, HoldState
from burst.model.jobid import JobId
from burst.model.reason import Reason
from burst.model.request import BurstPreferences
from burst.model.shape import Shape
from tests.builders import T0, but, job, settings, view, whole, world

ONE, TWO = JobId(1), JobId(2)
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
    """One for an isolated burst has no own nodes, and none can have another's burst."""
    held = Records(holds={TWO: Hold(urgency=16, state=HoldState.HELD, since=T0)})
    lent = {"online": (0, 1, 2, 3), "busy": (0, 2, 3)}
    for request, wish, ranks in (
        (whole(1), BurstPreferences(mode="isolated"), (0,)),
        (whole(2), BurstPreferences(), (2, 3)),
    ):
        second = job(2, request, urgency=0, preferences=wish)
        made = tick_once(granting(view(job(1, whole(1)), second, **lent), *ranks), held)

        assert made.decisions[ONE].reason is Reason.LOCAL
        assert made.decisions[TWO].reason is not Reason.STARTING


def test_a_job_in_the_stopped_queue_cannot_be_starting():
    parked = job(1, whole(1), queue="burst")

    made = tick_once(granting(view(parked, busy=(0, 1)), 1), mode="queue")

    assert made.decisions[ONE].reason is Reason.PROPOSED


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
