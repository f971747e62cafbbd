# SPDX-License-Identifier: MIT
"""Interleavings that the state machine found to break an invariant, and shortened."""

from __future__ import annotations

from burst.model.reason import Reason
from tests.machine.explore import replay
from tests.machine.steps import Steps

ONE = {"providers": {"a": {"max_nodes": 4}}}


def test_ranks_drained_by_a_record_that_was_lost_are_undrained() -> None:
    replay(
        ONE,
        [
            ("request", {"nodes": 2, "provider": ""}),
            ("turn", {"seconds": 40.0}),
            ("down", {"burst": 0}),
            ("turn", {"seconds": 40.0}),
            ("record_is_spoiled", {"burst": 0, "text": "{"}),
        ],
    )


def test_jobs_that_run_elsewhere_do_not_prolong_the_idleness_of_a_burst() -> None:
    replay(
        {**ONE, "intake": {"mode": "queue"}},
        [
            ("request", {"nodes": 2, "provider": "a"}),
            ("turn", {"seconds": 1.0}),
            ("turn", {"seconds": 40.0}),
            ("turn", {"seconds": 1.0}),
            ("submit", {"nodes": 2, "user": 1, "duration": 300.0}),
            ("turn", {"seconds": 40.0}),
        ],
    )


def test_a_refusal_does_not_stand_where_a_job_gives_back_a_part() -> None:
    """Its burst has room for others then, and in the tick before it had not."""
    part = {"nodes": 8, "user": 1, "wish": 4, "constraint": 1}
    other = {"nodes": 1, "user": 2, "wish": 2, "constraint": 1}
    replay(
        {
            "plan": {"share_users": True},
            "providers": {"a": {"capacity": 6, "max_nodes": 4}},
            "serve": True,
            "standing": True,
        },
        [
            ("submit", part),
            ("person_drains", {"rank": 3, "drains": True}),
            ("request", {"nodes": 1, "provider": "a"}),
            ("turn", {"seconds": 0.1}),
            ("turn", {"seconds": 7.0}),
            ("turn", {"seconds": 40.0}),
            ("submit", other),
            ("time_passes", {"turns": 5}),
        ],
    )


def test_a_job_that_limits_keep_waiting_is_served_while_smaller_ones_come() -> None:
    """The burst that the limits allow is kept by jobs that it is large enough for."""
    replay(
        {
            "limits": {"max_bursts": 1, "max_nodes": 4},
            "providers": {"a": {"capacity": 6, "max_nodes": 4}},
            "serve": True,
            "stream": True,
        },
        [
            ("request", {"nodes": 1, "provider": "a"}),
            (
                "submit",
                {"nodes": 3, "user": 1, "wish": 1, "constraint": 1, "duration": 30.0},
            ),
        ],
    )


def test_a_job_that_may_have_no_offer_is_not_told_that_it_runs_too_long() -> None:
    machine = Steps({**ONE, "standing": True})
    wish = 3  # for a provider that there is not
    machine.take("submit", {"nodes": 4, "user": 1, "wish": wish, "duration": 300.0})
    machine.take("turn", {"seconds": 1.0})
    machine.take("submit", {"nodes": 4, "user": 1, "wish": wish})
    machine.take("turn", {"seconds": 1.0})
    verdicts = machine.world.engine.snapshot.verdicts.values()
    assert [v.reason for v in verdicts] == [Reason.TURNED_DOWN] * 2
    found = {refusal.reason for v in verdicts for refusal in v.refusals}
    assert found == {Reason.WISHED_OTHER}
