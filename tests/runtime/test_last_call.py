# SPDX-License-Identifier: MIT
"""Pauses between calls for one burst."""

from __future__ import annotations

import pytest

from burst.core.provider_health import Outcome, Verb, pause_after
from burst.core.world import LastCall
from burst.runtime.last_call import next_call

FAILS = (
    Outcome.TRANSIENT,
    Outcome.UNEXPECTED,
    Outcome.REFUSED,
    Outcome.CAPACITY,
    Outcome.SPEC,
)


@pytest.mark.parametrize("outcome", FAILS)
def test_each_call_that_fails_is_made_again_after_a_longer_pause(
    outcome: Outcome,
) -> None:
    call, pauses = LastCall(verb=Verb.REAP), []
    for _ in range(4):
        pauses.append(pause_after(outcome, call.attempts, None))
        before = LastCall(verb=Verb.REAP, outcome=outcome, attempts=call.attempts)
        call = next_call(before, Verb.REAP)
    assert pauses == [1, 2, 4, 8]


@pytest.mark.parametrize(
    ("verb", "outcome"),
    [(Verb.PROVISION, Outcome.TRANSIENT), (Verb.REAP, Outcome.NOT_FOUND)],
)
def test_another_call_and_one_after_the_end_count_anew(
    verb: Verb, outcome: Outcome
) -> None:
    before = LastCall(verb=verb, outcome=outcome, attempts=5)
    assert next_call(before, Verb.REAP).attempts == 1
