# SPDX-License-Identifier: MIT
"""What rules change about the decisions of a tick."""

from typing import Any

import pytest

from burst.core.actions import HoldJobs, ReleaseJobs
from burst.core.lifecycle import apply, begin
from burst.core.plan.estimate import StartEstimate
from burst.core.plan.online_times import ProviderTimes
from burst.core.records import Records
from burst.core.tick import TickResult, run_tick
from burst.core.world import World
from burst.model.burst import Burst
from burst.model.event import Event
from burst.model.hold import Hold, HoldState
from burst.model.jobid import JobId
from burst.model.lead import JobView
from burst.model.ranks import format_idset
from burst.model.reason import Reason
from burst.model.request import BurstPreferences
from burst.model.scheduler import Scheduler
from burst.model.shape import Shape
from tests.builders import (
    LENT,
    T0,
    but,
    identity,
    job,
    offer,
    settings,
    slots,
    view,
    whole,
    world,
)
from tests.core.ticks import recorded
from tests.lifecycles import LEASE

NOW = T0 + 1000
HOUR = 3600.0
ONE, TWO = JobId(1), JobId(2)
FRUGAL: dict[str, Any] = {"plan": {"worth": 0.1}}


def starts(
    seconds: float, after: int | None = None, spread: float = 0.0
) -> StartEstimate:
    """A start so many seconds from NOW."""
    return StartEstimate(
        expected=NOW + seconds,
        earliest=NOW + seconds - spread,
        latest=NOW + seconds + 2 * spread,
        after=None if after is None else JobId(after),
    )


def seen(*jobs: JobView, **changes: Any) -> World:
    """Both own nodes are busy; a burst is up after a minute and costs 2 an hour."""
    offers = changes.pop("offers", {"local": (offer(price=2.0, join_time=60.0),)})
    known = {"busy": (0, 1), "online": (0, 1), "read_at": T0}
    picture = view(*jobs, **{key: changes.pop(key, known[key]) for key in known})
    base: World = world(picture, **offers)
    return but(base, **changes)


def tick_once(
    what: World, records: Records | None = None, now: float = NOW, **tables: Any
) -> TickResult:
    cache = tables.pop("cache", None)
    return run_tick(records or Records(), what, settings(**tables), now, cache)


def reason(made: TickResult, number: int = 1) -> Reason:
    return made.decisions[JobId(number)].reason


# An hour on two nodes, a minute to boot: 2.03 node-hours.
TWO_HOURS = job(1, whole(2), duration=HOUR)


def test_a_job_bursts_if_that_saves_what_its_rule_asks() -> None:
    """0.2 h for 2.03 node-hours is just below 0.1, a minute more is above."""
    for wait, expected in ((12.1, Reason.NOT_WORTH), (13.3, Reason.PROPOSED)):
        what = seen(TWO_HOURS, forecasts={ONE: starts(wait * 60 + 60)})
        assert reason(tick_once(what, **FRUGAL)) is expected


def test_by_default_whatever_must_wait_bursts() -> None:
    what = seen(TWO_HOURS, forecasts={ONE: starts(60)})
    assert reason(tick_once(what)) is Reason.PROPOSED


def test_a_job_is_told_what_a_burst_would_save_and_when_it_is_asked_again() -> None:
    what = seen(TWO_HOURS, forecasts={ONE: starts(600, after=7, spread=120)})
    told = tick_once(what, **FRUGAL).decisions[ONE].text()
    # T0 is 1970-01-12 13:46:40 UTC; the texts are local times.
    assert told.startswith("starts on own nodes about ")
    there = "a burst would be online in 1m on local/small (as its offer says) for 4.07"
    assert f", when ƒ8 ends); {there} as offered, which rule" in told
    assert told.endswith(
        "rule default does not pay: it saves 0.074 of the 0.1 h per node-hour that"
        " the rule asks for; judged again when ƒ8 ends"
    )


def test_what_is_known_of_past_bursts_counts() -> None:
    slow = ProviderTimes()
    for _ in range(3):
        slow = slow.learn("small/2", online=HOUR / 2, teardown=60.0)
    what = seen(TWO_HOURS, forecasts={ONE: starts(HOUR / 2)})
    known = Records(times={"local": slow})
    told = tick_once(what, known, **FRUGAL).decisions[ONE].text()
    assert "online in 30m on local/small (9 of 10 bursts within 30m)" in told
    assert "it saves nothing of the 0.1 h" in told


@pytest.mark.parametrize(
    "cheap",
    [
        {"shape": Shape(1)},
        {"max_nodes": 1},
        {"total": 1},
        {"modes": ("isolated",), "max_nodes": 1},
        {"modes": ("isolated",), "shape": Shape(1)},
    ],
    ids=["shape", "one burst", "in all", "one isolated burst", "isolated shape"],
)
@pytest.mark.parametrize("room", [8, 1], ids=["now", "later"])
def test_what_cannot_serve_a_job_is_not_compared_with(cheap, room):
    """The cheap offer would be up at once, the other when the job starts here.

    With a limit of one node the job gets none now.
    """
    offers = offer(price=1.0, **cheap), offer("slow", join_time=1800.0, price=2.0)
    one = job(1, whole(2, cores_per_slot=2), duration=HOUR)
    what = seen(one, forecasts={ONE: starts(1800)}, offers={"local": offers})
    plan = {"worth": 0.1, "spread": False}
    made = tick_once(what, limits={"max_nodes": room}, plan=plan)
    assert reason(made) is Reason.NOT_WORTH
    assert "in 30m on local/slow" in made.decisions[ONE].text()


def test_an_offer_that_is_used_up_is_not_compared_with() -> None:
    """Both of its nodes are lent to another user."""
    offers = offer(price=1.0, total=2), offer("slow", join_time=1800.0, price=2.0)
    burst = idle_burst(2)
    other = but(burst.lease, userids=(200,))
    known = recorded(but(burst, lease=other))
    what = seen(TWO_HOURS, forecasts={ONE: starts(1800)}, offers={"local": offers})
    made = tick_once(what, known, **FRUGAL)
    assert reason(made) is Reason.NOT_WORTH
    assert "in 30m on local/slow" in made.decisions[ONE].text()


def test_the_time_limit_counts_rather_than_the_expected_run_time() -> None:
    what = seen(TWO_HOURS, forecasts={ONE: starts(600)}, run_times={ONE: 60.0})
    assert reason(tick_once(what, **FRUGAL)) is Reason.NOT_WORTH


def test_the_expected_run_time_counts_for_a_job_without_a_limit() -> None:
    endless = job(1, whole(2))
    what = seen(endless, forecasts={ONE: starts(600)}, run_times={ONE: 60.0})
    assert reason(tick_once(what, **FRUGAL)) is Reason.PROPOSED


def test_a_job_without_a_limit_is_taken_to_run_for_the_deadline() -> None:
    endless = job(1, whole(2))
    what = seen(endless, forecasts={ONE: starts(HOUR)})
    assert reason(tick_once(what, **FRUGAL)) is Reason.NOT_WORTH
    shorter: dict[str, Any] = {"deadlines": {"run": "1h"}, **FRUGAL}
    assert reason(tick_once(what, **shorter)) is Reason.PROPOSED


@pytest.mark.parametrize(
    "one",
    [
        job(1, whole(3), duration=HOUR),
        job(1, whole(2, constraint=LENT), duration=HOUR),
        job(1, whole(2), duration=HOUR, preferences=BurstPreferences(mode="isolated")),
        job(1, whole(2), duration=HOUR, preferences=BurstPreferences(wanted=True)),
    ],
    ids=["too large for own nodes", "lent nodes only", "isolated", "wanted"],
)
def test_some_jobs_burst_whatever_that_saves(one: JobView) -> None:
    offers = {"local": (offer(modes=("joined", "isolated")),)}
    what = seen(one, forecasts={ONE: starts(1)}, offers=offers)
    assert reason(tick_once(what, **FRUGAL)) is Reason.PROPOSED


def test_a_job_whose_user_asked_for_a_burst_gets_one() -> None:
    asked = Hold(urgency=16, state=HoldState.RELEASED, since=T0, requested=True)
    what = seen(TWO_HOURS, forecasts={ONE: starts(1)})
    made = tick_once(what, Records(holds={ONE: asked}), **FRUGAL)
    assert reason(made) is Reason.PROPOSED
    # It stays so while it is held for its burst.
    assert made.records.holds[ONE].requested
    assert made.records.holds[ONE].state is HoldState.HOLDING


def test_in_mode_queue_a_job_cannot_wait_for_own_nodes() -> None:
    known = identity(queues={"burst": ("burst",), "burst-ready": ("burst",)})
    one = job(1, whole(2), queue="burst", duration=HOUR)
    what = seen(one, forecasts={ONE: starts(1)}, identity=known)
    made = tick_once(what, intake={"mode": "queue"}, **FRUGAL)
    assert reason(made) is Reason.PROPOSED


def test_without_a_forecast_a_job_waits_for_it_as_long_as_its_deadline() -> None:
    made = tick_once(seen(TWO_HOURS), **FRUGAL)
    assert reason(made) is Reason.NOT_FORECAST
    what = seen(TWO_HOURS, forecast_owed_since=NOW)
    late = tick_once(what, now=NOW + 59, cache=made.refusal_cache, **FRUGAL)
    assert reason(late) is Reason.NOT_FORECAST
    text = late.decisions[ONE].text()
    assert text.endswith("not forecast yet"), "no time, as a refusal may stand for long"
    over = tick_once(what, now=NOW + 60, cache=late.refusal_cache, **FRUGAL)
    assert reason(over) is Reason.PROPOSED
    # Where forecasts are made, it waits for the next one that has it.
    others = seen(TWO_HOURS, forecasts={TWO: starts(60)})
    assert reason(tick_once(others, now=NOW + 60, **FRUGAL)) is Reason.NOT_FORECAST


def test_where_nothing_is_offered_that_is_what_a_job_is_told() -> None:
    what = seen(TWO_HOURS, forecasts={ONE: starts(1)}, offers={"local": ()})
    assert reason(tick_once(what, **FRUGAL)) is Reason.NO_OFFERS
    asked = job(1, slots(1, gpus=2), duration=HOUR)
    none_do = seen(asked, forecasts={ONE: starts(1)}, busy=())
    assert reason(tick_once(none_do, **FRUGAL)) is Reason.NEVER_FITS


def test_what_is_idle_is_had_for_nothing() -> None:
    """The first buys two nodes of which one is left; the second would buy none."""
    first = job(1, whole(3), duration=HOUR)
    second = job(2, slots(1), duration=HOUR)
    what = seen(first, second, forecasts={TWO: starts(120)})
    share: dict[str, Any] = {"limits": {"max_bursts": 1}}
    made = tick_once(what, **FRUGAL, **share)
    assert reason(made, 2) is Reason.NOT_WORTH  # the three nodes are the first's
    small = job(1, slots(9), duration=HOUR)
    what = seen(small, second, forecasts={TWO: starts(120)})
    made = tick_once(what, **FRUGAL, **share)
    assert reason(made, 2) is Reason.PROPOSED
    (burst,) = made.records.bursts.values()
    assert (burst.lease.nodes, burst.jobs) == (3, frozenset({ONE, TWO}))


def test_several_jobs_that_are_not_worth_it_are_each_told_so() -> None:
    jobs = [job(n, whole(2), duration=HOUR) for n in (1, 2, 3)]
    jobs[2] = but(jobs[2], preferences=BurstPreferences(wanted=True))
    soon = {job.id: starts(60 + job.id) for job in jobs}
    limit: dict[str, Any] = {"limits": {"max_nodes": 1}}
    made = tick_once(seen(*jobs, forecasts=soon), **FRUGAL, **limit)
    assert reason(made, 1) is reason(made, 2) is Reason.NOT_WORTH
    assert made.decisions[ONE].text() != made.decisions[TWO].text()
    # The same request, of which it is known that nothing is to be had for it.
    jobs.reverse()
    jobs[0] = but(jobs[0], urgency=20)
    made = tick_once(seen(*jobs, forecasts=soon), **FRUGAL, **limit)
    assert reason(made, 3) is Reason.TURNED_DOWN
    assert reason(made, 1) is Reason.NOT_WORTH


def idle_burst(nodes: int) -> Burst:
    """A burst of so many nodes that has been idle for as long as it has been up."""
    ranks = tuple(range(2, 2 + nodes))
    hosts = tuple(f"burst-0-{rank - 2}" for rank in ranks)
    lease = but(LEASE, hosts=hosts, ranks=ranks, userids=(100,))
    burst = begin(lease, {JobId(9): T0}, T0)
    for name, context in (
        ("provision-start", {}),
        ("provision-finish", {}),
        ("online", {"ranks": format_idset(ranks)}),
        ("job-start", {"id": "9"}),
        ("job-finish", {"id": "9"}),
        ("idle", {}),
    ):
        burst = apply(burst, Event(NOW - 100, name, context))
    return burst


def on_idle(
    nodes: int, wait: float, idle: str = "100s", duration: float = HOUR, **wish: Any
) -> TickResult:
    """Decide on a job of one node, with such a burst up; 0.1 h for a node-hour."""
    preferences = BurstPreferences(**wish)
    one = job(1, whole(1), duration=duration, preferences=preferences)
    burst = idle_burst(nodes)
    what = seen(
        one, forecasts={ONE: starts(wait)}, online=range(2 + nodes), read_at=NOW
    )
    return tick_once(what, recorded(burst), deadlines={"idle": idle}, **FRUGAL)


def test_a_live_burst_is_kept_for_a_job_only_if_that_pays() -> None:
    """For an hour: of one node from 6 minutes of wait on, of four from 24 on."""
    assert reason(on_idle(1, 5.9 * 60)) is Reason.NOT_WORTH
    assert reason(on_idle(1, 6.1 * 60)) is Reason.ASSIGNED
    assert reason(on_idle(4, 23.9 * 60)) is Reason.PROPOSED  # one node of its own
    assert reason(on_idle(4, 24.1 * 60)) is Reason.ASSIGNED


def test_a_live_burst_is_kept_for_a_job_whose_user_asked_for_one() -> None:
    assert reason(on_idle(4, 1)) is Reason.NOT_WORTH
    assert reason(on_idle(4, 1, wanted=True)) is Reason.ASSIGNED


def test_a_live_burst_that_is_kept_anyway_is_had_for_nothing() -> None:
    # It stays idle for 3600 s, of which 100 have passed.
    assert reason(on_idle(4, 1, "1h", duration=3500.0)) is Reason.ASSIGNED
    # Four nodes for 200 s more are 0.22 node-hours, which 80 s of wait are worth.
    assert reason(on_idle(4, 79, "1h", duration=3700.0)) is Reason.NOT_WORTH
    assert reason(on_idle(4, 81, "1h", duration=3700.0)) is Reason.ASSIGNED


def test_each_of_equal_jobs_is_asked_what_a_live_burst_is_worth_to_it() -> None:
    """No new burst can be made for any, and the live one pays for the last only."""
    jobs = [job(n, whole(1), duration=HOUR) for n in (1, 2, 3, 4)]
    burst = idle_burst(4)
    waits = {1: 23, 2: 23, 3: 23, 4: 25}
    forecasts = {JobId(n): starts(wait * 60) for n, wait in waits.items()}
    base = seen(*jobs, forecasts=forecasts, offers={"local": ()}, online=range(6))
    tables: dict[str, Any] = {"deadlines": {"idle": "100s"}}
    made = tick_once(base, recorded(burst), **tables, **FRUGAL)
    reasons = [reason(made, number) for number in waits]
    assert reasons == [*[Reason.NO_OFFERS] * 3, Reason.ASSIGNED]


# What is done with such jobs in each mode.


@pytest.mark.parametrize("mode", ["hold", "scheduler"])
@pytest.mark.parametrize("forecast", [True, False])
def test_a_job_that_waits_for_own_nodes_is_left_to_flux(mode, forecast):
    what = seen(TWO_HOURS, forecasts={ONE: starts(60)} if forecast else None)
    made = tick_once(what, intake={"mode": mode}, **FRUGAL)
    assert made.actions == ()
    assert made.records.holds == {}


def test_a_held_job_that_is_to_wait_for_own_nodes_is_released() -> None:
    held = job(1, whole(2), duration=HOUR, urgency=0)
    hold = Hold(urgency=16, state=HoldState.HELD, since=T0)
    what = seen(held, forecasts={ONE: starts(60)})
    made = tick_once(what, Records(holds={ONE: hold}), **FRUGAL)
    assert made.actions == (ReleaseJobs({ONE: 16}),)


def test_a_job_submitted_by_burst_auto_is_released_before_it_is_forecast() -> None:
    """Only a job that Flux's scheduler has can be forecast."""
    wish = BurstPreferences(urgency=16)
    held = but(TWO_HOURS, urgency=0, held_at_submit=True, preferences=wish)
    made = tick_once(seen(held), **FRUGAL)
    assert reason(made) is Reason.NOT_FORECAST
    assert made.actions == (ReleaseJobs({ONE: 16}),)


# How long a refusal stands.


def rests(made: TickResult) -> bool:
    assert made.refusal_cache is not None
    return ONE in made.refusal_cache.decisions


@pytest.mark.parametrize("mode", ["hold", "scheduler"])
def test_a_refusal_stands_until_its_forecast_asks_for_more(mode: str) -> None:
    frugal = settings(intake={"mode": mode}, **FRUGAL)
    what = seen(TWO_HOURS, forecasts={ONE: starts(60)})
    first = run_tick(Records(), what, frugal, NOW)
    assert rests(first)

    def decided(**changes: Any) -> TickResult:
        known = changes.pop("known", Records())
        other = but(what, **changes)
        return run_tick(known, other, frugal, NOW + 1, first.refusal_cache)

    kept = first.decisions[ONE]
    assert decided().decisions[ONE] is kept
    assert reason(decided(forecasts={ONE: starts(120)})) is Reason.NOT_WORTH
    assert reason(decided(forecasts={ONE: starts(HOUR)})) is Reason.PROPOSED
    assert reason(decided(forecasts={})) is Reason.NOT_FORECAST
    # It cannot wait for own nodes that are gone.
    smaller = decided(lead=view(TWO_HOURS, online=(0,), busy=(0,)))
    assert reason(smaller) is Reason.PROPOSED
    # Bursts that come sooner save more.
    quick = ProviderTimes().learn("small/2", online=1.0)
    made = decided(known=Records(times={"local": quick}))
    assert "online in 1s on local/small" in made.decisions[ONE].text()
    # Where own nodes are free it may start there.
    assert decided(lead=view(TWO_HOURS)).decisions[ONE] is not kept


def test_a_refusal_does_not_stand_when_the_hours_of_its_rule_end() -> None:
    """T0 is a Monday; a rule for each hour says which is open."""
    rules = [
        {"match": {"hours": f"{hour}-{hour + 1}"}, "worth": 0.1} for hour in range(24)
    ]
    by_hour = settings(policy=rules)
    what = seen(TWO_HOURS, forecasts={ONE: starts(60)})
    first = run_tick(Records(), what, by_hour, NOW)
    for after, same in ((1, True), (HOUR, False)):
        made = run_tick(Records(), what, by_hour, NOW + after, first.refusal_cache)
        assert (made.decisions[ONE] is first.decisions[ONE]) is same


def test_a_refused_job_with_room_here_is_looked_at_again() -> None:
    """Its two nodes are free, and it has been left to Flux for long."""
    what = seen(TWO_HOURS, forecasts={ONE: starts(60)}, busy=())
    made = tick_once(what, **FRUGAL)
    assert reason(made) is Reason.NOT_WORTH
    assert not rests(made)


# What else rules say.


def test_a_rule_narrows_what_the_user_prefers() -> None:
    offers = {"near": (offer(price=1.0),), "far": (offer(price=3.0),)}
    providers = {name: {"type": "fake"} for name in offers}
    tables: dict[str, Any] = {"providers": providers}
    tables["policy"] = [{"providers": ["far"]}]
    made = tick_once(seen(TWO_HOURS, offers=offers), **tables)
    (burst,) = made.records.bursts.values()
    assert burst.lease.provider == "far"

    tables["policy"] = [{"name": "cheap", "providers": ["far"], "max_price": 2.0}]
    made = tick_once(seen(TWO_HOURS, offers=offers), **tables)
    told = {r.offer: r.text() for r in made.decisions[ONE].refusals}
    assert told == {
        "near/small": "rule cheap allows only far",
        "far/small": "costs 3.0 per node-hour as offered; rule cheap allows 2.0",
    }

    wants = but(TWO_HOURS, preferences=BurstPreferences("near", max_price=1.5))
    made = tick_once(seen(wants, offers=offers), **tables)
    told = {r.offer: r.text() for r in made.decisions[ONE].refusals}
    assert told["near/small"] == "rule cheap allows only far"
    assert told["far/small"] == "the job asks for provider near"

    tables["policy"] = [{"max_price": 2.0}]
    made = tick_once(seen(wants, offers=offers), **tables)
    (burst,) = made.records.bursts.values()
    assert burst.lease.provider == "near"


def test_a_rule_has_own_nodes_tried_first() -> None:
    tables: dict[str, Any] = {"policy": [{"wait": "20m", "match": {"nodes": 2}}]}
    made = tick_once(seen(TWO_HOURS), **tables)
    assert reason(made) is Reason.OWN_FIRST
    assert made.decisions[ONE].text().startswith("rule policy-1 keeps the job on")
    later = tick_once(seen(TWO_HOURS), now=T0 + 1201, **tables)
    assert reason(later) is Reason.PROPOSED
    # What own nodes could never serve does not wait for them.
    assert reason(tick_once(seen(job(1, whole(3))), **tables)) is Reason.PROPOSED
    # The user may wait for longer, not for less.
    for wait in (0.0, 2000.0):
        wish = but(TWO_HOURS, preferences=BurstPreferences(wait=wait))
        assert reason(tick_once(seen(wish), **tables)) is Reason.OWN_FIRST
    patient = but(TWO_HOURS, preferences=BurstPreferences(wait=2000.0))
    made = tick_once(seen(patient), now=T0 + 1500, **tables)
    assert reason(made) is Reason.OWN_FIRST
    # Where it fits on free ones, it is left to the scheduler for as long.
    free = tick_once(seen(TWO_HOURS, busy=()), **tables)
    assert reason(free) is Reason.LOCAL


MARKS: dict[str, Any] = {
    "policy": [{"match": {"user": 100}, "mark": True}],
    "intake": {"any_job": True},
}


def test_a_rule_marks_jobs_as_burstable() -> None:
    plain = but(TWO_HOURS, burstable=False)
    other = but(job(2, whole(2), userid=101), burstable=False)
    spoilt = but(job(3, None, unreadable="its jobspec cannot be read"), burstable=False)
    made = tick_once(seen(plain, other, spoilt), **MARKS)
    assert reason(made, 1) is Reason.PROPOSED
    assert reason(made, 2) is reason(made, 3) is Reason.NOT_BURSTABLE
    held = [a for a in made.actions if isinstance(a, HoldJobs)]
    assert held == [HoldJobs((ONE,))]


def test_a_job_that_only_a_rule_marks_is_never_told_that_it_is_impossible() -> None:
    large = but(job(1, whole(99)), burstable=False)
    mine = job(2, whole(99))
    offers = {"local": (offer(total=8),)}
    made = tick_once(seen(large, mine, offers=offers), **MARKS)
    assert reason(made, 1) is Reason.TURNED_DOWN
    assert reason(made, 2) is Reason.TOO_LARGE


def test_a_job_that_only_a_rule_marks_is_left_to_a_scheduler_that_refuses_it() -> None:
    marked = but(job(1, but(whole(2), discrete=True)), burstable=False)
    simple = Scheduler(name="sched-simple")
    lead = view(marked, busy=(0, 1), scheduler=simple)
    made = tick_once(but(seen(marked), lead=lead), **MARKS)
    assert reason(made, 1) is Reason.UNREADABLE
    assert made.actions == ()


def test_jobs_are_judged_by_the_offers_that_each_may_have() -> None:
    offers = {"near": (offer(price=1.0),), "far": (offer(price=3.0, join_time=60.0),)}
    far = but(job(2, whole(2), duration=HOUR), preferences=BurstPreferences("far"))
    forecasts = {ONE: starts(9), TWO: starts(9)}
    what = seen(TWO_HOURS, far, offers=offers, forecasts=forecasts)
    made = tick_once(what, **FRUGAL)
    near, far_away = (made.decisions[each].text() for each in (ONE, TWO))
    assert "online in 0s on near/small (as its offer says) for 2.00" in near
    assert "online in 1m on far/small (as its offer says) for 6.10" in far_away
