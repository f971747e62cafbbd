# SPDX-License-Identifier: MIT
"""Whatever waits names who acts next, and when or on what event."""

import string

import pytest

from burst.model.burst import State
from burst.model.decision import Decision, OfferRejection
from burst.model.next_step import BURST_STEPS, NEXT_STEPS, QUARANTINED, Actor
from burst.model.reason import JobReason, Reason

OVER = {Reason.RUNNING, Reason.ENDED}


def fields(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def test_each_reason_and_each_state_of_a_burst_has_a_next_step():
    assert NEXT_STEPS.keys() == set(Reason)
    assert BURST_STEPS.keys() == set(State)


@pytest.mark.parametrize("reason", Reason)
def test_it_says_who_and_when_by_the_facts_that_the_reason_has(reason):
    step = NEXT_STEPS[reason]
    assert (step.who is Actor.NOBODY) == (reason in OVER)
    assert len(step.what.split()) > 2
    # Of those that wait for what was released, by when is a fact of their own.
    assert fields(step.what) <= fields(reason.value.text) | {"by"}


@pytest.mark.parametrize("reason", Reason)
def test_it_is_part_of_what_is_told(reason):
    facts = dict.fromkeys(fields(reason.value.text) | {"by", "more"}, 0.0)
    if isinstance(reason.value, JobReason):
        told: Decision | OfferRejection = Decision(reason, facts)
    else:
        told = OfferRejection("local/nodes", reason, facts)
    step = told.next_step()
    assert step.startswith(NEXT_STEPS[reason].who.value)
    assert "{" not in step
    assert "{" not in told.text()
    assert ("{next}" in reason.value.text) == (step in told.text())


@pytest.mark.parametrize("state", State)
def test_a_burst_that_waits_has_somebody_to_act(state):
    step = BURST_STEPS[state]
    assert (step.who is Actor.NOBODY) == (state is State.INACTIVE)
    assert fields(step.what) <= {"until", "provider"}
    assert QUARANTINED.who is Actor.ADMINISTRATOR


@pytest.mark.parametrize(
    ("reasons", "acts"),
    [
        ([Reason.BUDGET_SMALL, Reason.OTHER_PROVIDER], Actor.USER),
        ([Reason.SLOTS_DRAINED], Actor.USER),
        ([Reason.BUDGET_SMALL, Reason.SLOTS_BUSY], Actor.DAEMON),
        ([Reason.OFFERS_UNKNOWN], Actor.DAEMON),
        ([], Actor.DAEMON),
    ],
)
def test_who_waits_for_no_offer_in_vain_is_told(reasons, acts):
    refusals = tuple(OfferRejection("a/b", reason) for reason in reasons)
    told = Decision(Reason.TURNED_DOWN, {}, refusals).next_step()
    assert told.startswith(acts.value)
    assert ("an administrator changes the settings" in told) == (acts is Actor.USER)
