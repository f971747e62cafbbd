# SPDX-License-Identifier: MIT
import itertools

import pytest

from burst.core.observation import (
    Observation,
    ProviderPhase,
    RanksOnline,
    is_made,
    look_up,
    provider_message,
    provider_phase,
    rank_count,
)
from burst.core.provider_health import Outcome, Verb
from burst.core.world import LastCall, ProviderView, after_observation
from burst.model.burst import State
from burst.provider import BurstStatus, Phase
from tests.builders import T0, but, view, world
from tests.lifecycles import LEASE, WHOLE_WAY, leased, run

ID = LEASE.id


def status(phase=Phase.RUNNING, burst=ID):
    return BurstStatus(burst_id=burst, phase=phase)


def told(*statuses, **changes):
    fields = {"statuses": {s.burst_id: s for s in statuses}, "read_at": T0, **changes}
    return ProviderView(**fields)


def in_world(its_view, call=None, lead=None):
    found = world(lead or view())
    calls = {ID: call} if call else {}
    return but(found, providers={"local": its_view}, calls=calls)


def test_every_combination_has_a_meaning_but_that_of_a_burst_never_asked_for():
    without = {
        combination
        for combination in itertools.product(State, ProviderPhase, RanksOnline)
        if look_up(*combination) is None
    }

    assert {state for state, _, _ in without} == {State.NEW}
    assert (State.NEW, ProviderPhase.RUNNING, RanksOnline.NONE) in without
    assert (State.NEW, ProviderPhase.ABSENT, RanksOnline.ALL) in without


UNREAD = RanksOnline.UNREAD


@pytest.mark.parametrize(
    ("state", "word", "ranks", "expected"),
    [
        (State.NEW, ProviderPhase.UNREAD, RanksOnline.NONE, Observation.WAIT),
        (State.PROVISION, ProviderPhase.PENDING, RanksOnline.SOME, Observation.WAIT),
        (State.PROVISION, ProviderPhase.UNREAD, RanksOnline.SOME, Observation.WAIT),
        (State.PROVISION, ProviderPhase.PENDING, RanksOnline.ALL, Observation.STARTED),
        (State.PROVISION, ProviderPhase.RUNNING, RanksOnline.SOME, Observation.STARTED),
        (State.PROVISION, ProviderPhase.FAILED, RanksOnline.SOME, Observation.BROKE),
        (State.PROVISION, ProviderPhase.FAILED, UNREAD, Observation.WAIT),
        (State.PROVISION, ProviderPhase.RUNNING, UNREAD, Observation.STARTED),
        (State.PROVISION, ProviderPhase.FAILED, RanksOnline.NONE, Observation.BROKE),
        (State.PROVISION, ProviderPhase.ENDING, RanksOnline.NONE, Observation.ENDED),
        (State.PROVISION, ProviderPhase.ABSENT, RanksOnline.NONE, Observation.VANISHED),
        (State.PROVISION, ProviderPhase.ABSENT, UNREAD, Observation.WAIT),
        (State.JOIN, ProviderPhase.FAILED, RanksOnline.ALL, Observation.ONLINE),
        (State.JOIN, ProviderPhase.FAILED, RanksOnline.SOME, Observation.BROKE),
        (State.JOIN, ProviderPhase.ABSENT, RanksOnline.SOME, Observation.WAIT),
        (State.JOIN, ProviderPhase.RUNNING, UNREAD, Observation.WAIT),
        (State.ONLINE, ProviderPhase.ABSENT, RanksOnline.ALL, Observation.WHOLE),
        (State.ONLINE, ProviderPhase.RUNNING, RanksOnline.SOME, Observation.LOST),
        (State.ONLINE, ProviderPhase.ABSENT, RanksOnline.NONE, Observation.VANISHED),
        (State.ONLINE, ProviderPhase.ENDING, RanksOnline.SOME, Observation.ENDED),
        (State.ONLINE, ProviderPhase.FAILED, UNREAD, Observation.WAIT),
        (State.DRAIN, ProviderPhase.ABSENT, RanksOnline.NONE, Observation.LOST),
        (State.DRAIN, ProviderPhase.ENDING, RanksOnline.SOME, Observation.LOST),
        (State.DRAIN, ProviderPhase.ENDING, RanksOnline.ALL, Observation.WHOLE),
        (State.DRAIN, ProviderPhase.RUNNING, UNREAD, Observation.WAIT),
        (State.REAP, ProviderPhase.RUNNING, RanksOnline.ALL, Observation.WAIT),
        (State.INACTIVE, ProviderPhase.RUNNING, RanksOnline.ALL, Observation.WAIT),
    ],
)
def test_the_lead_is_believed_before_the_provider(state, word, ranks, expected):
    assert look_up(state, word, ranks) is expected


@pytest.mark.parametrize(
    ("phase", "word"),
    [
        (Phase.PENDING, ProviderPhase.PENDING),
        (Phase.RUNNING, ProviderPhase.RUNNING),
        (Phase.FAILED, ProviderPhase.FAILED),
        (Phase.ENDING, ProviderPhase.ENDING),
    ],
)
def test_the_providers_word_is_its_phase(phase, word):
    assert provider_phase(run(), in_world(told(status(phase)))) is word


def call(outcome=Outcome.OK, verb=Verb.PROVISION, done_at=T0):
    return LastCall(verb=verb, done_at=done_at, outcome=outcome)


@pytest.mark.parametrize(
    "seen",
    [
        in_world(ProviderView()),
        in_world(told(status(), trouble="timeout")),
        in_world(told(status()), call(Outcome.PENDING)),
        in_world(told(status()), call(Outcome.TRANSIENT)),
        in_world(told(status()), call(done_at=T0 + 1)),
        in_world(told(absent={ID: 2})),
        but(in_world(told(status())), providers={}),
    ],
)
def test_what_was_read_too_early_or_not_at_all_says_nothing(seen):
    assert provider_phase(run(), seen) is ProviderPhase.UNREAD


def test_a_provider_that_is_elsewhere_by_now_says_nothing():
    there = leased(run(), place="here")
    seen = in_world(told(status()))
    for place, word in (
        ("here", ProviderPhase.RUNNING),
        ("elsewhere", ProviderPhase.UNREAD),
    ):
        now = but(seen, places={"local": place})
        assert provider_phase(there, now) is word


def test_what_was_missed_often_enough_is_absent():
    seen = in_world(told(absent={ID: 3}), call())

    assert provider_phase(run(), seen) is ProviderPhase.ABSENT


@pytest.mark.parametrize(
    ("last", "made"),
    [
        (None, False),
        (call(), True),
        (call(Outcome.TRANSIENT), False),
        (call(verb=Verb.REAP), False),
    ],
)
def test_only_what_the_provider_took_is_made(last, made):
    assert is_made(run(), in_world(told(status()), last)) is made


def test_while_it_is_reaped_the_providers_word_counts():
    seen = in_world(told(status(Phase.ENDING)), call(Outcome.TRANSIENT, Verb.REAP))

    assert provider_phase(run(), seen) is ProviderPhase.ENDING


def test_misses_are_counted_in_a_row():
    seen = ProviderView(offers=())
    seen = after_observation(seen, [], [ID], T0)
    seen = after_observation(seen, [], [ID], T0 + 1)
    assert seen.absent == {ID: 2}

    seen = after_observation(seen, [status()], [ID], T0 + 2)

    assert seen.absent == {}
    assert seen.statuses == {ID: status()}
    assert seen.read_at == T0 + 2
    assert seen.offers == ()


@pytest.mark.parametrize(
    ("online", "count"),
    [
        ([0, 1], RanksOnline.NONE),
        ([0, 2], RanksOnline.SOME),
        ([2, 3], RanksOnline.ALL),
        (None, RanksOnline.UNREAD),
    ],
)
def test_ranks_are_counted_at_the_lead(online, count):
    lead = None if online is None else view(online=online)
    seen = but(in_world(told()), lead=lead)

    assert rank_count(run(), seen) is count


def test_of_a_burst_that_went_online_in_part_only_those_count():
    burst = run("provision-start", "provision-finish")
    burst = but(burst, expected=frozenset({3}))

    assert rank_count(burst, in_world(told(), lead=view(online=[3]))) is RanksOnline.ALL


INCOMPLETE, REFUSING = "is not complete", "a webhook refuses"


@pytest.mark.parametrize(
    ("events", "reported", "error", "message"),
    [
        (["provision-start"], "", REFUSING, REFUSING),
        (["provision-start"], INCOMPLETE, "", INCOMPLETE),
        (["provision-start"], INCOMPLETE, REFUSING, f"{INCOMPLETE}; {REFUSING}"),
        (["provision-start"], f"no: {REFUSING}", REFUSING, f"no: {REFUSING}"),
        (WHOLE_WAY[:4], INCOMPLETE, REFUSING, INCOMPLETE),
    ],
)
def test_a_message_has_what_is_seen_and_why_the_call_failed(
    events, reported, error, message
):
    call = LastCall(verb=Verb.PROVISION, outcome=Outcome.TRANSIENT, note=error)
    its_view = told(but(status(), why=reported))

    found = provider_message(leased(run(*events)), in_world(its_view, call))

    assert found == message
