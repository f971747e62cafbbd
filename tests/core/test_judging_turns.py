# SPDX-License-Identifier: MIT
"""Jobs that are not worth a burst are judged again a part at a time."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import example, given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st

from burst.config import Settings
from burst.core.placement import judging_turns
from burst.core.placement.judging_turns import AT_ONCE, WITHIN_TICKS, Backlog
from burst.core.placement.refusal_cache import RefusalCache
from burst.core.records import Records
from burst.core.tick import TickResult, run_tick
from burst.core.world import World
from burst.core.worth.estimate import StartEstimate
from burst.core.worth.stage_times import ProviderTimes
from burst.model.decision import Decision
from burst.model.jobid import JobId
from burst.model.lead import JobView
from burst.model.reason import Reason
from tests.builders import T0, job, offer, settings, view, whole, world

HOUR = 3600.0
FRUGAL: Settings = settings(plan={"worth": 0.1})
QUICK = Records(times={"local": ProviderTimes().learn("small/2", online=1.0)})
REQUEST = whole(2)
NOT_WORTH = Decision(Reason.NOT_WORTH)
SITE: World = world(view(), local=(offer(price=2.0, join_time=60.0),))


def waiting(count: int, **changes: Any) -> dict[JobId, JobView]:
    return {
        JobId(n): job(n, REQUEST, duration=HOUR, **changes) for n in range(1, count + 1)
    }


def seen(jobs: dict[JobId, JobView], forecast: bool = True) -> World:
    """Own nodes are busy; a burst is up after a minute; all jobs start in two."""
    start = StartEstimate(expected=T0 + 120, earliest=T0 + 120, latest=T0 + 120)
    found = dict.fromkeys(jobs, start) if forecast else None
    lead = view(*jobs.values(), busy=(0, 1))
    return msgspec.structs.replace(SITE, lead=lead, forecasts=found)


def tick(what: World, cache: RefusalCache | None, records: Records) -> TickResult:
    return run_tick(records, what, FRUGAL, T0, cache)


def changed(before: TickResult, after: TickResult) -> set[JobId]:
    """Return the jobs on which it was decided anew."""
    known = before.decisions
    return {j for j, found in after.decisions.items() if found is not known[j]}


def test_what_is_outdated_is_judged_in_parts_the_most_urgent_first() -> None:
    jobs = waiting(2 * AT_ONCE + 10)
    last = JobId(len(jobs))
    jobs[last] = msgspec.structs.replace(jobs[last], urgency=20)
    what = seen(jobs)
    first = tick(what, None, Records())
    assert {found.reason for found in first.decisions.values()} == {Reason.NOT_WORTH}
    assert not first.behind
    # Bursts come sooner than was known.
    second = tick(what, first.refusal_cache, QUICK)
    assert changed(first, second) == {last, *map(JobId, range(1, AT_ONCE))}
    assert second.behind
    third = tick(what, second.refusal_cache, QUICK)
    assert changed(second, third) == set(map(JobId, range(AT_ONCE, 2 * AT_ONCE)))
    assert third.behind
    fourth = tick(what, third.refusal_cache, QUICK)
    assert len(changed(third, fourth)) == 10
    assert not fourth.behind
    assert not changed(fourth, tick(what, fourth.refusal_cache, QUICK))
    told = {found.facts["comparison"].purchase for found in fourth.decisions.values()}
    assert len(told) == 1


def test_a_job_that_changed_meanwhile_is_not_waited_for() -> None:
    jobs = waiting(AT_ONCE + 5)
    first = tick(seen(jobs), None, Records())
    second = tick(seen(jobs), first.refusal_cache, QUICK)
    assert second.refusal_cache is not None
    late = second.refusal_cache.backlog.jobs
    assert late == tuple(map(JobId, range(AT_ONCE + 1, AT_ONCE + 6)))
    jobs[late[0]] = msgspec.structs.replace(jobs[late[0]], urgency=0)
    del jobs[late[1]]
    third = tick(seen(jobs), second.refusal_cache, QUICK)
    assert third.decisions[late[0]].reason is Reason.USER_HOLD
    assert late[1] not in third.decisions
    assert changed(second, third) == {late[0], *late[2:]}
    assert second.refusal_cache.without_refusals().backlog == Backlog()


def test_a_job_without_a_forecast_is_looked_at_once_there_is_one() -> None:
    jobs = waiting(AT_ONCE + 5)
    first = tick(seen(jobs, forecast=False), None, Records())
    assert {found.reason for found in first.decisions.values()} == {Reason.NOT_FORECAST}
    again = tick(seen(jobs, forecast=False), first.refusal_cache, Records())
    assert not changed(first, again)
    second = tick(seen(jobs), again.refusal_cache, Records())
    assert len(changed(again, second)) == AT_ONCE
    third = tick(seen(jobs), second.refusal_cache, Records())
    assert {found.reason for found in third.decisions.values()} == {Reason.NOT_WORTH}
    # One that there is no forecast of is decided without at its deadline.
    over = run_tick(
        Records(),
        seen(jobs, forecast=False),
        FRUGAL,
        T0 + FRUGAL.deadlines.forecast,
        first.refusal_cache,
    )
    assert Reason.PROPOSED in {found.reason for found in over.decisions.values()}


def test_rules_are_read_once_for_the_same_settings_and_users() -> None:
    jobs = waiting(1)
    first = tick(seen(jobs), None, Records()).refusal_cache
    assert first is not None

    def rules(what: World, how: Settings = FRUGAL) -> object:
        after = run_tick(Records(), what, how, T0, first).refusal_cache
        assert after is not None
        return after.rules

    assert rules(seen(jobs)) is first.rules
    users = msgspec.structs.replace(seen(jobs), userids={"eve": 1002})
    assert rules(users) is not first.rules
    other = settings(plan={"worth": 0.05})
    assert rules(seen(jobs), other) is not first.rules


@given(
    count=st.integers(1, 30),
    outdated=st.lists(st.sets(st.integers(0, 29)), max_size=40),
    gone=st.sets(st.integers(0, 29)),
)
@example(count=30, outdated=[set(range(30))] * 30, gone={0, 7})
@hypothesis(max_examples=50, deadline=None)
def test_each_job_has_its_turn_in_time(
    count: int, outdated: list[set[int]], gone: set[int]
) -> None:
    """In tenths of what one tick judges; those of `gone` are gone after five ticks."""
    tenth = AT_ONCE // 10
    shown = [job(1, REQUEST, urgency=16 + n) for n in range(3)]
    many = {JobId(n): shown[n // tenth % 3] for n in range(count * tenth)}
    same = dict.fromkeys(many, NOT_WORTH)
    since: dict[JobId, int] = {}
    backlog = Backlog()
    for number, wrong in enumerate(outdated):
        if number == 5:
            same = {j: v for j, v in same.items() if j // tenth not in gone}
            since = {j: at for j, at in since.items() if j in same}
        valid = {j: v for j, v in same.items() if j // tenth not in wrong}
        for j in same.keys() - valid.keys():
            since.setdefault(j, number)
        stand, backlog = judging_turns.take_turns(same, valid, backlog, many)
        for j in same.keys() - stand.keys():
            del since[j]
        assert set(backlog.jobs) == since.keys() <= stand.keys()
        assert all(number - at < WITHIN_TICKS for at in since.values())


def test_of_very_many_jobs_more_are_judged_in_a_tick() -> None:
    jobs = waiting(2)
    many = {JobId(n): jobs[JobId(1)] for n in range(1, 3 * WITHIN_TICKS * AT_ONCE + 1)}
    same = dict.fromkeys(many, NOT_WORTH)
    backlog = Backlog()
    stand, backlog = judging_turns.take_turns(same, {}, backlog, many)
    assert len(same) - len(stand) == 3 * AT_ONCE
    ticks = 1
    while backlog.jobs:
        ticks += 1
        _, backlog = judging_turns.take_turns(same, same, backlog, many)
    assert ticks == WITHIN_TICKS
