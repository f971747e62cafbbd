# SPDX-License-Identifier: MIT
"""When a refusal holds from one tick to the next, and when the job is looked at again.

First what refusals rest on, a test for each part of it; then whole ticks, in which a
decision that still holds is the very object of the tick before.
"""

from __future__ import annotations

import math
from typing import Literal

import msgspec
import pytest

from burst.config import Settings
from burst.core.placement.refusal_cache import (
    JobDecisions,
    RefusalCache,
    cache_refusals,
    lasting_refusals,
    unchanged_jobs_refusals,
    valid_refusals,
)
from burst.core.placement.refusal_inputs import (
    CapacityPhase,
    RefusalInputs,
    refusal_inputs,
)
from burst.core.placement.slots import find_slots
from burst.core.provider_health import Health, OfferHealth, RefusedCall
from burst.core.records import Records, Transaction
from burst.core.tick import run_tick
from burst.core.worth.estimate import StartEstimate
from burst.core.worth.ledger import open_entry
from burst.core.worth.money import Money
from burst.core.worth.rules import RuleSet
from burst.model.burst import BurstId
from burst.model.decision import Decision
from burst.model.event import Event
from burst.model.hold import Hold, HoldState
from burst.model.jobid import JobId
from burst.model.reason import Reason
from burst.model.request import BurstPreferences
from burst.model.shape import Shape
from burst.provider import Offer
from tests.builders import (
    NODE,
    OWN,
    T0,
    identity,
    job,
    offer,
    settings,
    view,
    whole,
    world,
)
from tests.lifecycles import LEASE, WHOLE_WAY, run

SETTINGS = settings()
LEAD = identity()
ID = LEASE.id
OTHER = BurstId("burst-1-bbbbbb")
ONE, TWO = JobId(1), JobId(2)
REFUSED = Decision(Reason.TOO_LARGE, {"need": 9, "most": 8})
FIRST, SECOND = (frozenset(slot.ranks) for slot in find_slots(LEAD))
BEFORE = RefusalInputs(
    health={},
    settings=SETTINGS,
    identity=LEAD,
    slots=find_slots(LEAD),
    offers={"local": (offer(),)},
    free_in_time=FIRST | SECOND,
    free_ranks=SECOND,
    bursts={ID: (CapacityPhase.UP, frozenset({ONE}))},
    free={0: OWN, 2: Shape(2)},
    unreadable=frozenset(),
    until=math.inf,
    reserved={ID: Money(5)},
)


def but(**changes: object) -> RefusalInputs:
    return msgspec.structs.replace(BEFORE, **changes)


@pytest.mark.parametrize(
    "now",
    [
        pytest.param(but(), id="all as it was"),
        pytest.param(but(free_ranks=frozenset()), id="a slot was taken"),
        pytest.param(
            but(bursts={**BEFORE.bursts, OTHER: (CapacityPhase.GOING, frozenset())}),
            id="a burst is on record to be taken down",
        ),
        pytest.param(
            but(bursts={ID: (CapacityPhase.GOING, frozenset())}),
            id="a burst is taken down",
        ),
        pytest.param(but(free={0: OWN}), id="a rank went away"),
        pytest.param(but(free={0: OWN, 2: Shape(1)}), id="a rank is busier"),
        pytest.param(
            but(offers={"local": (offer(),)}), id="the same offers, read again"
        ),
        pytest.param(but(reserved={ID: Money(6), OTHER: Money(1)}), id="more is paid"),
    ],
)
def test_a_refusal_stands_where_nothing_got_better(now: RefusalInputs) -> None:
    assert now.no_better(BEFORE)


@pytest.mark.parametrize(
    "now",
    [
        pytest.param(
            but(health={"local": Health(failed={"provision": 1})}), id="health"
        ),
        pytest.param(but(settings=settings()), id="settings were read again"),
        pytest.param(but(identity=identity()), id="another lead"),
        pytest.param(but(slots=find_slots(LEAD)), id="other slots"),
        pytest.param(but(offers={"local": (offer(price=2.0),)}), id="an offer"),
        pytest.param(but(offers={**BEFORE.offers, "new": ()}), id="a provider"),
        pytest.param(but(free_ranks=FIRST | SECOND), id="a slot became free"),
        pytest.param(but(free_ranks=FIRST), id="another slot is free instead"),
        pytest.param(but(bursts={}), id="a burst is gone, and its nodes count no more"),
        pytest.param(
            but(bursts={**BEFORE.bursts, OTHER: (CapacityPhase.COMING, frozenset())}),
            id="a burst was requested",
        ),
        pytest.param(
            but(bursts={ID: (CapacityPhase.UP, frozenset())}),
            id="a job of a burst ended",
        ),
        pytest.param(
            but(bursts={ID: (CapacityPhase.COMING, frozenset({ONE}))}),
            id="a burst is at another stage",
        ),
        pytest.param(but(free={**BEFORE.free, 3: Shape(1)}), id="a rank came up"),
        pytest.param(but(free={0: OWN, 2: Shape(3)}), id="cores of a rank became free"),
        pytest.param(but(free={0: OWN, 2: Shape(2, 1)}), id="its GPU became free"),
        pytest.param(but(reserved={ID: Money(4)}), id="a burst costs less than before"),
        pytest.param(but(reserved={}), id="what a burst cost is settled"),
    ],
)
def test_a_refusal_falls_with_what_it_rests_on(now: RefusalInputs) -> None:
    assert not now.no_better(BEFORE)


def test_what_is_impossible_stays_so_when_a_burst_that_was_going_is_gone() -> None:
    going = but(bursts={ID: (CapacityPhase.GOING, frozenset())})
    gone = but(bursts={}, free_ranks=FIRST | SECOND)
    assert gone.no_larger(going)
    assert not gone.no_better(going)
    assert not gone.no_larger(BEFORE), "it was up"
    assert not but(free={**BEFORE.free, 3: Shape(1)}).no_larger(BEFORE)


def test_a_burst_that_was_going_and_is_gone_no_longer_counts_against_the_limits() -> (
    None
):
    going = but(bursts={ID: (CapacityPhase.GOING, frozenset())})
    assert going.no_better(going)
    assert not but(bursts={}).no_better(going)


LARGE, WAITING = job(1, whole(9), urgency=0), job(2, whole(4), urgency=0)
LEAD_VIEW = view(LARGE, WAITING)
VERDICTS = {ONE: REFUSED, TWO: Decision(Reason.TURNED_DOWN)}
HOLDS = {j: Hold(urgency=16, state=HoldState.HELD, since=T0) for j in (ONE, TWO)}


def standing(**changes: object) -> RefusalCache:
    return RefusalCache(
        inputs=but(**changes), jobs=LEAD_VIEW.jobs, holds=HOLDS, decisions=VERDICTS
    )


def still_refused(
    before: RefusalCache | None, now: RefusalInputs, at: float = T0
) -> object:
    return valid_refusals(before, VERDICTS, now, LEAD_VIEW, at)


def test_on_the_same_grounds_all_refusals_stand() -> None:
    assert still_refused(standing(), but()) is VERDICTS


def test_what_waits_for_a_forecast_stands_until_it_is_there_or_late() -> None:
    # ONE is refused for another reason by now, and job 9 is gone.
    waiting = dict.fromkeys((ONE, TWO, JobId(9)), T0)
    before = msgspec.structs.replace(standing(), unforecast=waiting)
    late = Decision(Reason.NOT_FORECAST, {"rule": "r", "until": T0 + 60})
    same = {ONE: REFUSED, TWO: late}
    told = StartEstimate(expected=T0, earliest=T0, latest=T0)
    for forecasts, at, left in (
        ({}, T0, {ONE, TWO}),
        ({}, T0 + 60, {ONE}),
        ({TWO: told}, T0, {ONE}),
    ):
        found = valid_refusals(before, same, but(forecasts=forecasts), LEAD_VIEW, at)
        assert found.keys() == left


def test_on_larger_grounds_none_does() -> None:
    assert still_refused(standing(), but(bursts={})) == {}


def test_none_does_where_a_job_with_own_nodes_got_a_burst_that_it_waits_for() -> None:
    before = msgspec.structs.replace(standing(), here=frozenset({ONE}))
    assert still_refused(before, but()) == {}
    going = but(bursts={ID: (CapacityPhase.GOING, frozenset({ONE}))})
    assert still_refused(before, going) is VERDICTS


def test_only_the_impossible_stand_when_a_slot_is_free_or_a_time_is_over() -> None:
    free = but(free_ranks=FIRST | SECOND)
    assert still_refused(standing(), free) == {ONE: REFUSED}
    assert still_refused(standing(until=T0), but(), T0 - 0.1) is VERDICTS
    assert still_refused(standing(until=T0), but(), T0) == {ONE: REFUSED}


def test_only_the_impossible_stand_where_the_first_job_is_less_urgent() -> None:
    """What is refused for the slots that were kept for it may be the first now."""
    before = msgspec.structs.replace(standing(), reordered=True)
    assert still_refused(before, but()) == {ONE: REFUSED}


def test_a_refusal_by_the_users_limit_may_fall_where_a_live_burst_has_room() -> None:
    """Of nodes that somebody requested it would bear none."""
    over = Decision(Reason.OVER_LIMIT, {"key": "k", "limit": 4, "need": 5})
    for has_room, left in ((False, {ONE}), (True, set())):
        found = lasting_refusals({ONE: over}, LEAD_VIEW, has_room=has_room)
        assert found.keys() == left


def test_in_the_first_tick_none_stands_yet() -> None:
    assert still_refused(None, but()) == {}
    assert unchanged_jobs_refusals(None, Records(), LEAD_VIEW) == {}
    assert unchanged_jobs_refusals(standing(), Records(holds=HOLDS), None) == {}


def test_unchanged_is_where_job_and_hold_are_the_same() -> None:
    before = standing()
    assert unchanged_jobs_refusals(before, Records(holds=HOLDS), LEAD_VIEW) is VERDICTS
    assert (
        unchanged_jobs_refusals(before, Records(holds=dict(HOLDS)), LEAD_VIEW)
        is VERDICTS
    )
    moved = {**HOLDS, ONE: HOLDS[ONE].then(HoldState.RELEASING, T0)}
    assert set(unchanged_jobs_refusals(before, Records(holds=moved), LEAD_VIEW)) == {
        TWO
    }
    other = view(LARGE, job(2, whole(4), urgency=0))
    assert set(unchanged_jobs_refusals(before, Records(holds=HOLDS), other)) == {ONE}


def grounds(
    records: Records | None = None, its: Settings = SETTINGS, **changes: object
) -> RefusalInputs:
    seen = world(view(**changes))
    rules = RuleSet(its.rules)
    return refusal_inputs(Transaction(records or Records(), T0), seen, its, rules)


@pytest.mark.parametrize(
    ("names", "stage"),
    [
        ((), CapacityPhase.COMING),
        (WHOLE_WAY[:1], CapacityPhase.COMING),
        (WHOLE_WAY[:2], CapacityPhase.COMING),
        (WHOLE_WAY[:4], CapacityPhase.UP),
        (WHOLE_WAY[:8], CapacityPhase.GOING),
        (WHOLE_WAY[:9], CapacityPhase.GOING),
        (("provision-start", "drained"), CapacityPhase.GOING),
    ],
)
def test_a_burst_is_coming_or_up_or_going(
    names: tuple[str, ...], stage: CapacityPhase
) -> None:
    found = grounds(Records(bursts={ID: run(*names)}))
    assert found.bursts[ID][0] is stage


def test_of_a_bursts_jobs_those_count_that_have_not_started() -> None:
    waiting = Records(bursts={ID: run(*WHOLE_WAY[:4])})
    started = Records(bursts={ID: run(*WHOLE_WAY[:5])})
    assert grounds(waiting).bursts[ID][1] == {ONE}
    assert grounds(started).bursts[ID][1] == frozenset()


def test_what_is_reserved_for_a_burst_is_a_ground_where_there_are_budgets() -> None:
    entry = open_entry(LEASE, T0 + 3600, {}, T0)
    records = Records(bursts={ID: run()}, entries={ID: entry})
    budgeted = settings(budget=[{"limit": 8.0}])
    assert grounds(records, budgeted).reserved == {ID: entry.reserved}
    assert grounds(records).reserved == {}


def test_a_burst_that_is_gone_is_no_ground_and_its_slot_is_free() -> None:
    found = grounds(Records(bursts={ID: run(*WHOLE_WAY)}))
    assert found.bursts == {}
    assert found.free_ranks == FIRST | SECOND


def test_the_slot_of_a_burst_or_of_an_unreadable_record_is_not_free() -> None:
    records = Records(bursts={ID: run()}, unreadable={"burst/burst-1-torn": "torn"})
    assert grounds(records).free_ranks == FIRST.difference(LEASE.ranks)


def test_free_is_what_is_free_of_ranks_that_can_run_jobs() -> None:
    found = grounds(
        online=range(6),
        free=dict.fromkeys([0, 1, 2, 3, 4], NODE),
        drained={1: "bad"},
        excluded=frozenset({2}),
        torpid=frozenset({3}),
    )
    assert found.free == {0: NODE, 4: NODE}


@pytest.mark.parametrize(
    ("reason", "state", "still_refused"),
    [
        (Reason.TOO_LARGE, HoldState.HELD, True),
        (Reason.TURNED_DOWN, HoldState.HELD, True),
        (Reason.NO_OFFERS, HoldState.HELD, True),
        (Reason.NO_ROOM, HoldState.HELD, True),
        # Not seen to be held yet: the lead may have to be asked again.
        (Reason.TOO_LARGE, HoldState.HOLDING, False),
        (Reason.TOO_LARGE, None, False),
        # Helped: how far it is changes from tick to tick.
        (Reason.COMING, HoldState.HELD, False),
        (Reason.PROPOSED, HoldState.HELD, False),
    ],
)
def test_what_stands_is_a_refusal_of_a_job_that_is_held(
    reason: Reason, state: HoldState | None, still_refused: bool
) -> None:
    one = job(1, whole(9))
    holds = {ONE: Hold(urgency=16, state=state, since=T0)} if state else {}
    fresh = {ONE: Decision(reason)}
    judged = JobDecisions(
        left=RefusalCache(inputs=BEFORE, jobs={ONE: one}), still_refused={}, fresh=fresh
    )
    made = cache_refusals(judged, Records(holds=holds))
    assert made.decisions == (fresh if still_refused else {})


@pytest.mark.parametrize(("mode", "still_refused"), [("", True), ("isolated", False)])
def test_in_our_scheduler_a_job_may_wait_unless_it_is_to_run_elsewhere(
    mode: Literal["", "isolated"], still_refused: bool
) -> None:
    one = job(1, whole(4), preferences=BurstPreferences(mode=mode))
    fresh = {ONE: Decision(Reason.TURNED_DOWN)}
    in_scheduler = but(settings=settings(intake={"mode": "scheduler"}))
    judged = JobDecisions(
        left=RefusalCache(inputs=in_scheduler, jobs={ONE: one}),
        still_refused={},
        fresh=fresh,
    )
    assert cache_refusals(judged, Records()).decisions == (
        fresh if still_refused else {}
    )


@pytest.mark.parametrize(
    ("health", "until"),
    [
        ({}, math.inf),
        (
            {"local": Health(refused={"provision": RefusedCall("quota", T0 + 9)})},
            T0 + 9,
        ),
        ({"local": Health(failed={"provision": 3}, until=T0 + 5)}, T0 + 5),
        ({"local": Health(offers={"a": OfferHealth(1, T0 + 7)})}, T0 + 7),
        ({"local": Health(offers={"a": OfferHealth(1, T0 - 7)})}, math.inf),
        (
            {
                "local": Health(until=T0 + 9, offers={"a": OfferHealth(1, T0 + 8)}),
                "gke": Health(offers={"b": OfferHealth(1, T0 + 10)}),
            },
            T0 + 8,
        ),
    ],
)
def test_it_stands_until_the_next_time_something_may_be_tried_again(
    health: dict[str, Health], until: float
) -> None:
    assert grounds(Records(health=health)).until == until


class Ticks:
    """Turns over one world that the test changes between them."""

    def __init__(
        self,
        *jobs: JobId,
        bursts: tuple[str, ...] | None = None,
        offers: tuple[Offer, ...] = (offer(),),
    ) -> None:
        self.records = Records(
            bursts={} if bursts is None else {ID: run(*bursts)},
            holds={j: Hold(urgency=16, state=HoldState.HELD, since=T0) for j in jobs},
        )
        self.jobs = [job(int(j), whole(9), urgency=0) for j in jobs]
        self.seen = world(view(*self.jobs), local=offers)
        self.now = T0 + 100
        self.made = run_tick(self.records, self.seen, SETTINGS, self.now)

    def tick_once(self, **lead: object) -> None:
        picture = msgspec.structs.replace(view(*self.jobs), **lead)
        self.seen = msgspec.structs.replace(self.seen, lead=picture)
        self.made = run_tick(
            self.made.records, self.seen, SETTINGS, self.now, self.made.refusal_cache
        )

    @property
    def verdict(self) -> Decision:
        return self.made.decisions[ONE]


def test_a_job_that_is_as_it_was_keeps_its_verdict() -> None:
    ticks = Ticks(ONE)
    first = ticks.verdict
    ticks.tick_once()
    assert first.reason is Reason.TOO_LARGE
    assert ticks.verdict is first


def test_a_job_for_which_no_slots_are_large_enough_is_not_planned_anew() -> None:
    ticks = Ticks(ONE, offers=(offer(max_nodes=100),))
    first = ticks.verdict
    assert first.reason is Reason.NO_ROOM
    ticks.tick_once()
    assert ticks.verdict is first
    # Nor when a slot is free again: all of them together would not do.
    ticks.tick_once(drained={2: "bad"})
    ticks.tick_once()
    assert ticks.verdict is first


def test_a_job_that_is_another_is_looked_at_again_and_the_others_are_not() -> None:
    ticks = Ticks(ONE, TWO)
    first = dict(ticks.made.decisions)
    ticks.jobs[0] = job(1, whole(4), urgency=0)
    ticks.tick_once()
    assert ticks.verdict.reason is Reason.PROPOSED
    assert ticks.made.decisions[TWO] is first[TWO]


def test_a_job_that_is_gone_has_no_verdict() -> None:
    ticks = Ticks(ONE, TWO)
    ticks.jobs.pop(0)
    ticks.tick_once()
    assert set(ticks.made.decisions) == {TWO}


def test_a_job_whose_user_freed_it_is_looked_at_again() -> None:
    ticks = Ticks(ONE)
    first = ticks.verdict
    ticks.jobs[0] = job(1, whole(9), urgency=20)
    ticks.tick_once()
    assert ticks.verdict is not first


def test_a_job_waiting_for_a_slot_is_placed_once_that_is_free() -> None:
    busy = dict.fromkeys((*range(2, 6), *range(6, 10)), "bad")
    ticks = Ticks(ONE)
    ticks.jobs[0] = job(1, whole(4), urgency=0)
    ticks.tick_once(drained=busy)
    first = ticks.verdict
    assert first.reason is Reason.TURNED_DOWN
    ticks.tick_once(drained=busy)
    assert ticks.verdict is first
    ticks.tick_once(drained=dict.fromkeys(range(6, 10), "bad"))
    assert ticks.verdict.reason is Reason.PROPOSED


def test_the_picture_of_a_lead_that_cannot_be_read_changes_nothing_that_stands() -> (
    None
):
    ticks = Ticks(ONE)
    still_refused = ticks.made.refusal_cache
    unread = msgspec.structs.replace(ticks.seen, lead=None)
    made = run_tick(ticks.made.records, unread, SETTINGS, ticks.now, still_refused)
    assert made.refusal_cache is still_refused
    assert made.decisions == {}


def test_a_burst_that_ends_frees_the_verdicts_that_rested_on_it() -> None:
    ticks = Ticks(ONE, bursts=WHOLE_WAY[:9])
    ticks.jobs[0] = job(1, whole(4), urgency=0)
    ticks.tick_once(drained=dict.fromkeys(range(6, 10), "bad"))
    first = ticks.verdict
    gone = Event(T0 + 100, "reaped", {})
    ended = msgspec.structs.replace(run(*WHOLE_WAY), since=gone.timestamp)
    ticks.made = msgspec.structs.replace(
        ticks.made,
        records=msgspec.structs.replace(ticks.made.records, bursts={ID: ended}),
    )
    ticks.tick_once(drained=dict.fromkeys(range(6, 10), "bad"))
    assert ticks.verdict is not first


def test_without_its_refusals_a_standing_says_the_same_of_the_jobs() -> None:
    ticks = Ticks(ONE)
    ticks.jobs[0] = job(1, whole(9), urgency=0)
    ticks.tick_once()
    still_refused = ticks.made.refusal_cache
    assert still_refused is not None
    assert still_refused.decisions
    fewer = still_refused.without_refusals()
    assert fewer == msgspec.structs.replace(still_refused, decisions={})
    again = run_tick(ticks.made.records, ticks.seen, SETTINGS, ticks.now, fewer)
    assert again.decisions == ticks.made.decisions
