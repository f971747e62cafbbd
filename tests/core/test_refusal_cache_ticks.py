# SPDX-License-Identifier: MIT
"""What stands saves time: each tick comes to what it would come to without.

Without rules, `tests/machine` sees to that in each tick (`standing`).
"""

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from burst.core.jobs.refusal_cache import without_refusals
from burst.core.plan.estimate import StartEstimate
from burst.core.plan.promises import RESERVATION_S
from burst.core.records import Records
from burst.core.tick import TickResult, run_tick
from burst.model.hold import Hold, HoldState
from burst.model.jobid import JobId
from burst.model.lead import JobState, JobView
from burst.model.reason import Reason
from burst.model.request import BurstPreferences
from burst.provider import Offer
from tests.builders import (
    LENT,
    NODE,
    T0,
    but,
    identity,
    job,
    offer,
    slots,
    view,
    whole,
    world,
)
from tests.builders import settings as tables
from tests.fakes import FakeLead
from tests.lifecycles import WHOLE_WAY, run

QUEUES = {"burst": ("burst",), "burst-ready": ("burst",)}
LEAD = identity(queues=QUEUES)
WORLD = world(None, LEAD)
SITE = world(None, LEAD, local=(offer(max_nodes=8),))

change = st.one_of(
    st.tuples(st.just("submit"), st.integers(1, 9), st.booleans(), st.booleans()),
    st.tuples(st.just("cancel"), st.integers(0, 5)),
    st.tuples(st.just("start"), st.integers(0, 5), st.integers(0, 1)),
    st.tuples(st.just("end"), st.integers(0, 5)),
    st.tuples(st.just("urgency"), st.integers(0, 5), st.integers(1, 31)),
    st.tuples(st.just("online"), st.sets(st.integers(0, 5))),
    st.tuples(st.just("drained"), st.sets(st.integers(2, 9))),
    st.tuples(st.just("wait"), st.integers(1, 90)),
)
# Jobs that own nodes could run, and in how many seconds each of three in turn is
# expected to start, None for those that are not forecast. Both own nodes are taken by
# the first two jobs.
BUSY = [
    *(("submit", 1, False, False), ("start", 0, 0)),
    *(("submit", 1, False, False), ("start", 0, 1)),
    ("forecast", (60, 60, 60)),
]
WAITS = st.sampled_from([60, 400, 4000, None])
forecast_change = st.one_of(
    st.tuples(st.just("submit"), st.integers(1, 2), st.just(False), st.just(False)),
    st.tuples(st.just("forecast"), st.tuples(WAITS, WAITS, WAITS)),
    st.tuples(st.just("wait"), st.integers(1, 90)),
    change,
)
RULES = [
    {"match": {"nodes": 1}, "worth": 0.5, "providers": ["local"]},
    {"match": {"nodes": "2-3"}, "worth": 2.0, "wait": "10s"},
    {"match": {"hours": "0:47-23:47", "nodes": 1}, "worth": 3.0},
    {"match": {"nodes": "4-9"}, "max_price": 2.0},
]


def outcomes(made: TickResult) -> dict[JobId, str]:
    """Return what becomes of each job; why nothing is made may be of a tick before.

    One that was turned down stays so when its forecast is lost: it is judged again
    once something is to be had.
    """
    return {
        number: "refused"
        if reason.about_job.refused or reason is Reason.NOT_FORECAST
        else reason.name
        for number, verdict in made.decisions.items()
        for reason in [verdict.reason]
    }


class Site:
    """A lead in one mode, whose daemon runs ticks."""

    def __init__(self, mode: str, bursts: int, policy: Any) -> None:
        self._settings = tables(
            intake={"mode": mode},
            limits={"max_bursts": bursts},
            deadlines={"run": "10m"},
            policy=policy,
        )
        self._forecasts: dict[JobId, StartEstimate] | None = None
        self._lead = FakeLead(known=LEAD)
        self._made = TickResult(records=Records(), events=(), actions=(), decisions={})

    def tick_once(self) -> None:
        """Take one with what stands, and see that it is as one without."""
        lead = self._lead
        seen = but(SITE, lead=lead.observe(), forecasts=self._forecasts)
        asked = self._made.records, seen, self._settings, lead.now
        # For how long forecasts have been missing is not what spares work.
        plain = run_tick(*asked, without_refusals(self._made.refusal_cache))
        self._made = run_tick(*asked, self._made.refusal_cache)
        assert outcomes(self._made) == outcomes(plain)
        assert self._made.actions == plain.actions
        assert self._made.records == plain.records
        for number, hold in self._made.records.holds.items():
            # Flux does what it is asked to.
            if hold.state.value == "holding" and lead.jobs[number].urgency:
                lead.change(number, urgency=0)

    def do(self, what: str, *how: object) -> None:
        """Change the world; what cannot be done now changes nothing."""
        self._lead.now += 1
        getattr(self, f"_{what}")(*how)

    def _submit(self, nodes: int, lent: bool, far: bool) -> None:
        request = whole(nodes, constraint=LENT if lent else "")
        wish = BurstPreferences(mode="isolated" if far else "")
        self._lead.submit(request, preferences=wish)

    def _pending(self, at: int) -> JobId | None:
        jobs = self._lead.jobs.values()
        found = [one.id for one in jobs if one.state is JobState.SCHED]
        return found[at % len(found)] if found else None

    def _cancel(self, at: int) -> None:
        if number := self._pending(at):
            self._lead.finish(number, "canceled")

    def _start(self, at: int, rank: int) -> None:
        number, lead = self._pending(at), self._lead
        taken = {r for one in lead.jobs.values() for r in one.ranks}
        if number and rank not in taken:
            began = {"ranks": frozenset({rank}), "t_start": lead.now}
            lead.change(number, state=JobState.RUN, **began)

    def _end(self, at: int) -> None:
        if running := self._lead.running():
            self._lead.finish(running[at % len(running)])

    def _urgency(self, at: int, urgency: int) -> None:
        if number := self._pending(at):
            self._lead.change(number, urgency=urgency)

    def _online(self, ranks: set[int]) -> None:
        self._lead.online = ranks

    def _drained(self, ranks: set[int]) -> None:
        self._lead.drained = dict.fromkeys(ranks, "bad")

    def _forecast(self, waits: tuple[int | None, ...]) -> None:
        now = self._lead.now
        known = {n: waits[n % len(waits)] for n in range(1, 30)}
        self._forecasts = {
            JobId(n): StartEstimate(expected=now + w, earliest=now, latest=now + 2 * w)
            for n, w in known.items()
            if w is not None
        }

    def _wait(self, seconds: int) -> None:
        self._lead.now += seconds


@pytest.mark.no_cover
@pytest.mark.parametrize("mode", ["hold", "scheduler"])
@given(
    bursts=st.sampled_from([0, 1]),
    rules=st.lists(st.sampled_from(RULES), min_size=1, max_size=4),
    changes=st.lists(forecast_change, min_size=1, max_size=20),
)
@example(
    # The last but one is given a node of the burst of a job that is canceled.
    bursts=1,
    rules=[{"match": {"nodes": 1}, "worth": 0.5, "providers": ["local"]}],
    changes=[
        ("submit", 2, False, False),
        ("forecast", (60, 60, 4000)),
        *[("submit", 1, False, False)] * 2,
        ("cancel", 0),
        ("submit", 1, False, False),
    ],
)
@settings(max_examples=60, deadline=None)
def test_by_rules_a_tick_with_what_stands_is_one_without(mode, bursts, rules, changes):
    site = Site(mode, bursts, tuple(rules))
    for what, *how in [*BUSY, *changes]:
        site.do(str(what), *how)
        site.tick_once()


@pytest.mark.parametrize("mode", ["hold", "scheduler"])
def test_room_that_a_job_leaves_as_it_gets_a_burst_is_seen(mode: str) -> None:
    """Flux gave the first none of the free nodes, so it is to run elsewhere."""
    lead = tables(intake={"mode": mode}, deadlines={"lease": "1h"})
    first = job(1, whole(2))
    second = job(2, whole(1), t_submit=T0 + 98, duration=7200.0)
    # A slot that the burst leaves nothing of, which others could have had.
    small = identity("lead-[0-1],burst-0-[0-1]")
    seen = world(view(first, second, lead=small), small)
    made = run_tick(Records(), seen, lead, T0 + 100)
    assert made.decisions[first.id].reason is Reason.PROPOSED
    assert made.decisions[second.id].reason is Reason.TURNED_DOWN
    assert made.refusal_cache
    assert set(made.refusal_cache.decisions) == {second.id}
    next_tick = made.records, seen, lead, T0 + 100.01
    found = run_tick(*next_tick, made.refusal_cache)
    assert found.decisions[second.id].reason is Reason.LOCAL
    assert found.decisions == run_tick(*next_tick).decisions


def test_a_burst_that_is_made_for_another_job_may_be_worth_it() -> None:
    """It is kept for that job anyway, so what is left of its node costs nothing."""
    rules = tables(intake={"mode": "scheduler"}, policy=[{"worth": 1.0}])
    soon, late = (job(number, slots(1), duration=600.0) for number in (1, 2))
    forecasts = {
        each.id: StartEstimate(expected=T0 + wait, earliest=T0, latest=T0 + 2 * wait)
        for each, wait in ((soon, 60), (late, 4000))
    }
    # A slot that the burst leaves nothing of, which others could have had.
    lead = identity("lead-[0-1],burst-0-0")
    picture = view(soon, late, busy=(0, 1), lead=lead)
    seen = but(world(picture, lead), forecasts=forecasts)
    made = run_tick(Records(), seen, rules, T0 + 3)
    assert made.decisions[soon.id].reason is Reason.NOT_WORTH
    assert made.decisions[late.id].reason is Reason.PROPOSED
    next_tick = made.records, seen, rules, T0 + 4
    found = run_tick(*next_tick, made.refusal_cache)
    assert found.decisions[soon.id].reason is Reason.ASSIGNED
    assert found.decisions == run_tick(*next_tick).decisions


def test_nodes_that_a_job_was_given_are_for_others_once_it_is_canceled() -> None:
    """The next tick sees the burst as it was before the job had it."""
    first, second = (job(n, whole(2, constraint=LENT), urgency=0) for n in (11, 12))
    hold = Hold(urgency=16, state=HoldState.HELD, since=T0)
    idle = run(*WHOLE_WAY[:7])
    records = Records(
        bursts={idle.id: idle}, holds=dict.fromkeys([first.id, second.id], hold)
    )

    def shown(*jobs: JobView) -> Any:
        free = dict.fromkeys(range(4), NODE)
        return world(view(*jobs, online=range(4), free=free), local=())

    made = run_tick(records, shown(first, second), tables(), T0 + 100)
    assert made.decisions[first.id].reason is Reason.ASSIGNED
    assert made.decisions[second.id].reason is Reason.NO_OFFERS
    next_tick = made.records, shown(second), tables(), T0 + 100.5
    found = run_tick(*next_tick, made.refusal_cache)
    assert found.decisions[second.id].reason is Reason.ASSIGNED


def test_ranks_are_for_others_once_they_are_promised_to_nobody() -> None:
    """The promise ends after hours, and nothing else changes."""
    small = identity("lead-[0-1],burst-0-[0-1],burst-1-[0-1]")
    runs = {"state": JobState.RUN, "ranks": frozenset({2, 3}), "t_start": T0}
    large, other = (
        job(number, whole(nodes, constraint=LENT), urgency=0)
        for number, nodes in ((11, 4), (12, 2))
    )
    jobs = job(1, whole(2, constraint=LENT), **runs), large, other
    free = {0: NODE, 1: NODE}
    seen = world(view(*jobs, online=range(4), free=free, lead=small), small)
    busy, hold = run(*WHOLE_WAY[:5]), Hold(urgency=16, state=HoldState.HELD, since=T0)
    records = Records(
        bursts={busy.id: busy}, holds=dict.fromkeys([large.id, other.id], hold)
    )
    cache, found = None, []
    late = RESERVATION_S + 100
    for now in (T0 + 100, T0 + 101, T0 + late, T0 + late + 1):
        made = run_tick(records, seen, tables(), now, cache)
        records, cache = made.records, made.refusal_cache
        found.append((made.decisions[large.id].reason, made.decisions[other.id].reason))
    assert found == [
        (Reason.RESERVED, Reason.TURNED_DOWN),
        (Reason.RESERVED, Reason.TURNED_DOWN),
        (Reason.TURNED_DOWN, Reason.TURNED_DOWN),
        (Reason.TURNED_DOWN, Reason.PROPOSED),
    ]


@pytest.mark.parametrize(
    ("wish", "sold", "rests"),
    [
        (BurstPreferences(), offer(max_nodes=9), True),
        # To be failed, and to be held: until that took, it is asked for.
        (BurstPreferences(), offer(total=8), False),
        (BurstPreferences(mode="isolated"), offer(max_nodes=9), False),
    ],
)
def test_what_is_still_to_be_done_about_a_refused_job_is_not_forgotten(
    wish: BurstPreferences, sold: Offer, rests: bool
) -> None:
    one = job(1, whole(9), preferences=wish)
    seen = world(view(one, lead=LEAD), LEAD, local=(sold,))
    scheduler = tables(intake={"mode": "scheduler"})
    made = run_tick(Records(), seen, scheduler, T0 + 3)
    assert made.refusal_cache
    assert bool(made.refusal_cache.decisions) is rests
