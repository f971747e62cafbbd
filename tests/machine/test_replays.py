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
