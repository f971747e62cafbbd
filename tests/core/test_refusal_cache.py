# SPDX-License-Identifier: MIT
"""When a refusal holds from one tick to the next, and when the job is looked at again.

First what refusals rest on, a test for each part of it; then whole ticks, in which a
decision that still holds is the very object of the tick before.
"""

import math
from collections.abc import Mapping
from typing import Any, Literal

import pytest

from burst.config import Settings
from burst.core.jobs.refusal_cache import (
    AT_ONCE,
    FEW,
    JobDecisions,
    RefusalCache,
    cache_refusals,
    refusals,
    standing_refusals,
    unchanged_jobs_refusals,
)
from burst.core.jobs.refusal_inputs import RefusalInputs, refusal_inputs
from burst.core.jobs.rules import RuleSet
from burst.core.money.ledger import open_entry
from burst.core.plan.demands import Promise
from burst.core.plan.leasable import LeasableRanks
from burst.core.plan.slots import find_slots
from burst.core.records import Records, Transaction
from burst.core.tick import run_tick
from burst.model.burst import State
from burst.model.decision import Decision
from burst.model.hold import Hold, HoldState
from burst.model.jobid import JobId
from burst.model.lead import LeadView, QueueView
from burst.model.reason import Reason
from burst.model.request import BurstPreferences
from burst.provider import Offer
from tests.builders import (
    NODE,
    OWN,
    T0,
    but,
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
ONE, TWO = JobId(1), JobId(2)
REFUSED = Decision(Reason.TOO_LARGE, {"need": 9, "most": 8})
FIRST, SECOND = (frozenset(slot.ranks) for slot in find_slots(LEAD))
BEFORE = RefusalInputs(settings=SETTINGS, identity=LEAD, slots=find_slots(LEAD))


def with_inputs(**changes: object) -> RefusalInputs:
    return but(BEFORE, **changes)


LARGE, WAITING = job(1, whole(9), urgency=0), job(2, whole(4), urgency=9)
LEAD_VIEW = view(LARGE, WAITING)
VERDICTS = {ONE: REFUSED, TWO: Decision(Reason.TURNED_DOWN)}
HOLDS = {j: Hold(urgency=16, state=HoldState.HELD, since=T0) for j in (ONE, TWO)}


def standing(inputs: RefusalInputs = BEFORE, **changes: Any) -> RefusalCache:
    fields = {"jobs": LEAD_VIEW.jobs, "holds": HOLDS, "decisions": VERDICTS, **changes}
    return RefusalCache(inputs=inputs, **fields)


def stand(
    before: RefusalCache, now: RefusalInputs = BEFORE, at: float = T0
) -> RefusalCache:
    return standing_refusals(before, VERDICTS, now, LEAD_VIEW, at)


def test_while_nothing_changes_all_refusals_stand() -> None:
    found = stand(standing())
    assert found == standing()
    assert found.decisions is VERDICTS
    again = with_inputs(offers={})
    assert stand(standing(), again).decisions is VERDICTS


PROMISE = Promise(job=JobId(3), ranks=(2,), start=0.0)
WITH_THREE = {**LEAD_VIEW.jobs, JobId(3): LARGE}


@pytest.mark.parametrize(
    ("before", "now", "at"),
    [
        (standing(), with_inputs(offers={"new": ()}), T0),
        (standing(), with_inputs(forecast_late=True), T0),
        (standing(), with_inputs(queues={"a": QueueView(started=False)}), T0),
        (standing(), with_inputs(free={0: OWN}), T0),
        (standing(), with_inputs(ranks=LeasableRanks(free=frozenset({2}))), T0),
        (standing(), with_inputs(settings=settings(limits={"max_nodes": 1})), T0),
        (standing(with_inputs(until=T0)), with_inputs(until=T0), T0),
        (standing(changed=True), BEFORE, T0),
        # A job ahead, which room was counted for, or ranks were promised to, is gone.
        (standing(here={TWO}, jobs={**LEAD_VIEW.jobs, TWO: LARGE}), BEFORE, T0),
        (standing(promises=(PROMISE,), jobs=WITH_THREE), BEFORE, T0),
    ],
)
def test_all_are_judged_anew_once_something_changed(before, now, at):
    found = stand(before, now, at)
    assert found.decisions == {}
    assert found.pause == at
    # So few are judged in each tick until all have been.
    paused = but(before, pause=at + 1)
    assert stand(paused, now, at) == but(paused, decisions={}, changed=True)


def test_where_leases_end_with_the_lead_they_are_judged_anew_each_minute() -> None:
    def until(ends: float, now: float) -> float:
        seen, rules = world(LEAD_VIEW, identity(ends=ends)), RuleSet(())
        tx = Transaction(Records(), seen, SETTINGS, now)
        return refusal_inputs(tx, rules).until

    for seconds in (0, 1, 59):
        assert until(T0 + 200, T0 + 21 + seconds) == T0 + 80
    assert until(T0 + 200, T0 + 81) == T0 + 140
    assert until(T0 + 200, T0 + 201) == T0 + 260
    assert until(0.0, T0) == math.inf


@pytest.mark.parametrize("urgency", [0, 9], ids=["held", "not held"])
def test_the_first_are_judged_in_each_tick_until_all_have_been(urgency: int) -> None:
    """The most urgent first; the urgency of a held job is that before its hold."""
    last = FEW + 1
    jobs = [job(n, whole(1), urgency=urgency) for n in range(1, last + 1)]
    seen = view(*jobs)
    same = dict.fromkeys(seen.jobs, REFUSED)
    hold = Hold(urgency=9, state=HoldState.HELD, since=T0)
    holds = dict.fromkeys(seen.jobs, hold) if not urgency else {}
    fields = {"jobs": seen.jobs, "decisions": same, "pause": T0 + 1, "changed": True}
    before = standing(**fields, holds=holds)
    found = standing_refusals(before, same, BEFORE, seen, T0)
    assert found == but(before, decisions={JobId(last): REFUSED})
    # One that its user made more urgent is before all others.
    if urgency:
        seen = view(*jobs[:-1], job(last, whole(1), urgency=16))
    else:
        urgent = Hold(urgency=16, state=HoldState.HELD, since=T0)
        before = standing(**fields, holds={**holds, JobId(last): urgent})
    found = standing_refusals(before, same, BEFORE, seen, T0)
    assert found.decisions.keys() == {FEW}


def test_they_are_judged_in_parts_the_most_urgent_first() -> None:
    jobs = [job(n, whole(1), urgency=n // (AT_ONCE + 1)) for n in range(1, AT_ONCE + 9)]
    seen = view(*jobs)
    same = dict.fromkeys(seen.jobs, REFUSED)
    before = standing(changed=True, jobs=seen.jobs, decisions=same, holds={})
    first = standing_refusals(before, same, BEFORE, seen, T0)
    assert first.outdated == tuple(range(AT_ONCE - 7, AT_ONCE + 1))
    assert first.decisions == dict.fromkeys(first.outdated, REFUSED)
    assert (first.changed, first.pause) == (False, T0 + 0.001 * (len(jobs) - 100))
    # Then the others, but for those that are gone or refused for something else.
    kept = {job: found for job, found in same.items() if job != AT_ONCE}
    fields = {"jobs": seen.jobs, "decisions": kept, "pause": first.pause}
    before = standing(**fields, outdated=first.outdated, holds={})
    # What changes meanwhile waits for its turn, but for the first ones.
    other = with_inputs(offers={"new": ()})
    second = standing_refusals(before, kept, other, seen, T0 + 9)
    assert second.outdated == ()
    assert second.decisions.keys() == set(range(FEW - 7, AT_ONCE - 7))
    assert second.changed


def test_unchanged_is_where_job_and_hold_are_the_same() -> None:
    before = standing()

    def unchanged(holds: dict[JobId, Hold], lead: LeadView) -> Mapping[JobId, Decision]:
        return unchanged_jobs_refusals(before, Records(holds=holds), lead)

    assert unchanged(HOLDS, LEAD_VIEW) is VERDICTS
    assert unchanged(dict(HOLDS), LEAD_VIEW) is VERDICTS
    moved = {**HOLDS, ONE: HOLDS[ONE].then(HoldState.RELEASING, T0)}
    assert set(unchanged(moved, LEAD_VIEW)) == {TWO}
    other = view(LARGE, job(2, whole(4), urgency=0))
    assert set(unchanged(HOLDS, other)) == {ONE}


def grounds(
    records: Records | None = None, its: Settings = SETTINGS, **changes: object
) -> RefusalInputs:
    seen = world(view(**changes))
    rules = RuleSet(its.rules)
    tx = Transaction(records or Records(), seen, its, T0)
    return refusal_inputs(tx, rules)


@pytest.mark.parametrize(
    ("burst", "counts"),
    [
        (run(*WHOLE_WAY[:4]), (State.ONLINE, False, {ONE})),
        (run(*WHOLE_WAY[:5]), (State.ONLINE, False, frozenset())),
        (but(run(*WHOLE_WAY[:1]), quarantined="why"), (State.PROVISION, True, {ONE})),
        (run(*WHOLE_WAY[:5], "overdue"), (State.ONLINE, True, frozenset())),
    ],
    ids=["online", "its job has started", "quarantined", "overdue"],
)
def test_a_burst_counts_by_its_state_and_jobs_that_have_not_started(burst, counts):
    assert grounds(Records(bursts={ID: burst})).bursts[ID] == counts


def test_what_is_reserved_for_a_burst_is_a_ground_where_there_are_budgets() -> None:
    entry = open_entry(LEASE, T0 + 3600, {}, T0)
    records = Records(bursts={ID: run()}, entries={ID: entry})
    budgeted = settings(budget=[{"limit": 8.0}])
    reserved = {ID: (entry.reserved, entry.payers, ())}
    assert grounds(records, budgeted).reserved == reserved
    assert grounds(records).reserved == {}


def test_whether_queues_start_jobs_is_a_ground() -> None:
    stopped = {"a": QueueView(started=False)}
    assert grounds(queues=stopped).queues == stopped


def test_a_burst_that_is_gone_is_no_ground_and_its_slot_is_free() -> None:
    found = grounds(Records(bursts={ID: run(*WHOLE_WAY)}))
    assert found.bursts == {}
    assert found.ranks.free == FIRST | SECOND


def test_the_slot_of_a_burst_or_of_an_unreadable_record_is_not_free() -> None:
    records = Records(bursts={ID: run()}, unreadable={"burst/burst-1-torn": "torn"})
    found = grounds(records)
    assert found.ranks.free == FIRST.difference(LEASE.ranks)
    assert found.unreadable == {"burst/burst-1-torn"}


def test_free_is_what_is_free_of_ranks_that_can_run_jobs() -> None:
    unfit: dict[str, Any] = {"excluded": frozenset({2}), "torpid": frozenset({3})}
    free = dict.fromkeys([0, 1, 2, 3, 4], NODE)
    found = grounds(online=range(6), free=free, drained={1: "bad"}, **unfit)
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
def test_what_stands_is_a_refusal_of_a_job_that_is_held(reason, state, still_refused):
    one = job(1, whole(9))
    holds = {ONE: Hold(urgency=16, state=state, since=T0)} if state else {}
    fresh = {ONE: Decision(reason)}
    left = RefusalCache(inputs=BEFORE, jobs={ONE: one})
    judged = JobDecisions(left=left, fresh=fresh, refused=refusals(fresh, ()))
    made = cache_refusals(judged, Records(holds=holds))
    assert made.decisions == (fresh if still_refused else {})


@pytest.mark.parametrize(("mode", "still_refused"), [("", True), ("isolated", False)])
def test_in_our_scheduler_a_job_may_wait_unless_it_is_to_run_elsewhere(
    mode: Literal["", "isolated"], still_refused: bool
) -> None:
    one = job(1, whole(4), preferences=BurstPreferences(mode=mode))
    fresh = {ONE: Decision(Reason.TURNED_DOWN)}
    in_scheduler = with_inputs(settings=settings(intake={"mode": "scheduler"}))
    left = RefusalCache(inputs=in_scheduler, jobs={ONE: one})
    judged = JobDecisions(left=left, fresh=fresh, refused=refusals(fresh, ()))
    assert cache_refusals(judged, Records()).decisions == (
        fresh if still_refused else {}
    )


class Ticks:
    """Turns over one world that the test changes between them."""

    def __init__(self, *jobs: JobId, offers: tuple[Offer, ...] = (offer(),)) -> None:
        self.records = Records(holds={each: HOLDS[each] for each in jobs})
        self.jobs = [job(int(j), whole(9), urgency=0) for j in jobs]
        self.seen = world(view(*self.jobs), local=offers)
        self.now = T0 + 100
        self.made = run_tick(self.records, self.seen, SETTINGS, self.now)

    def tick_once(self, **lead: object) -> None:
        picture = but(view(*self.jobs), **lead)
        self.seen = but(self.seen, lead=picture)
        self.made = run_tick(
            self.made.records, self.seen, SETTINGS, self.now, self.made.refusal_cache
        )

    @property
    def verdict(self) -> Decision:
        return self.made.decisions[ONE]


def test_a_job_for_which_no_slots_are_large_enough_is_not_planned_anew() -> None:
    ticks = Ticks(ONE, offers=(offer(max_nodes=100),))
    first = ticks.verdict
    assert first.reason is Reason.NO_ROOM
    ticks.tick_once()
    assert ticks.verdict is first
    # When a slot is free again it is judged anew: all together would not do.
    ticks.tick_once(drained={2: "bad"})
    assert ticks.verdict is not first
    assert ticks.verdict.reason is Reason.NO_ROOM


def test_a_job_that_is_another_is_looked_at_again_and_the_others_are_not() -> None:
    ticks = Ticks(ONE, TWO)
    first = dict(ticks.made.decisions)
    ticks.jobs[0] = job(1, whole(4), urgency=0)
    ticks.tick_once()
    assert ticks.verdict.reason is Reason.PROPOSED
    assert ticks.made.decisions[TWO] is first[TWO]


def test_the_picture_of_a_lead_that_cannot_be_read_changes_nothing_that_stands():
    ticks = Ticks(ONE)
    still_refused = ticks.made.refusal_cache
    unread = but(ticks.seen, lead=None)
    made = run_tick(ticks.made.records, unread, SETTINGS, ticks.now, still_refused)
    assert made.refusal_cache is still_refused
    assert made.decisions == {}
