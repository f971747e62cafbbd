# SPDX-License-Identifier: MIT
"""A job is placed only where the lease lasts as long as the job may run."""

import math

import pytest

from burst.config import LimitSettings
from burst.core.actions import FailJob, ProvisionBurst
from burst.core.jobs.assignments import end_warning
from burst.core.plan.catalog import Failures, offer_catalog
from burst.core.plan.context import PlanContext
from burst.core.plan.leasable import LeasableRanks
from burst.core.plan.limits import Usage
from burst.core.plan.offers import drain_time, provider_offers
from burst.core.plan.rank_table import RankTable
from burst.core.records import Records
from burst.core.tick import run_tick
from burst.model.burst import Isolated
from burst.model.decision import moment
from burst.model.hold import Hold, HoldState
from burst.model.jobid import JobId
from burst.model.reason import Reason
from burst.model.request import BurstPreferences
from burst.model.shape import Shape
from tests.builders import (
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
from tests.core.plans import demand
from tests.lifecycles import leased, run
from tests.sim import Sim

HOUR = 3600.0
ONE = JobId(1)
NOTHING = Records()
DAY = {"lease": "24h", "drain": "30m"}


def tick_once(*jobs, offers=None, seen=None, identity=None, records=NOTHING, **tables):
    tables.setdefault("deadlines", DAY)
    there = world(seen or view(*jobs), local=offers or (offer(),))
    there = but(there, identity=identity or there.identity)
    return run_tick(records, there, settings(**tables), T0 + 100)


def jobs_by_offer(made):
    return {b.lease.offer: b.jobs for b in made.records.bursts.values()}


def refusals(made, number=ONE):
    return [refusal.reason for refusal in made.decisions[number].refusals]


@pytest.mark.parametrize(
    ("end", "drain", "until"),
    [(0.0, 60, math.inf), (T0 + 600, 60, T0 + 540), (T0 + 100, 60, T0 + 50)],
)
def test_jobs_start_on_a_burst_until_it_is_drained(end, drain, until):
    assert drain_time(T0, end, drain) == until


def test_a_job_that_every_lease_is_too_short_for_is_told_so_and_gets_no_burst():
    made = tick_once(job(1, whole(4), duration=23.6 * HOUR))

    assert made.decisions[ONE].reason is Reason.TOO_LONG
    assert refusals(made) == [Reason.LEASE_SHORT]
    assert not made.records.bursts
    assert (
        made.decisions[ONE].text().startswith("it may run for longer than 23.5h, and")
    )
    assert "for at most 23.5h" in made.decisions[ONE].refusals[0].text()


@pytest.mark.parametrize(
    ("lease", "left", "lasts", "run_time"),
    [
        # In the first second and in the last minutes of an hour with 30 min to drain.
        ("inf", 3600.0, 5400.0, 3540.0),
        ("inf", 600.0, 2400.0, 540.0),
        ("12h", 600.0, 2400.0, 540.0),
        ("35m", 600.0, 2100.0, 540.0),
        ("35m", 3600.0, 2100.0, 990.0),
        ("inf", 30.0, 1830.0, 0.0),
        # It outlived the end that is known: its time limit was extended.
        ("12h", -1.0, 12 * HOUR, 11.5 * HOUR - 60),
    ],
)
def test_no_lease_is_later_than_the_end_of_the_lead_itself_and_drain(
    lease: str, left: float, lasts: float, run_time: float
) -> None:
    limits = settings(deadlines={"lease": lease, "drain": "30m"})
    sold = {"local": [offer(join_time=60.0)]}
    found = provider_offers(sold, {}, limits, T0, T0 + left)["local"]
    assert found is not None
    (candidate,) = found
    assert candidate.lease_end == T0 + lasts
    assert candidate.run_time == run_time


def test_a_job_that_the_end_of_the_lead_would_kill_gets_no_burst() -> None:
    """Nor is it failed: that end comes nearer while it waits, and may be put off."""
    lead = identity(ends=T0 + 100 + HOUR)
    for intake in {"mode": "scheduler"}, {"mode": "hold"}:
        long = job(1, whole(4), duration=1.1 * HOUR)
        late = tick_once(long, identity=lead, intake=intake)
        assert late.decisions[ONE].reason is Reason.TURNED_DOWN
        (refusal,) = late.decisions[ONE].refusals
        assert refusal.reason is Reason.LEASE_SHORT
        assert not late.records.bursts
        assert not any(isinstance(action, FailJob) for action in late.actions)
    made = tick_once(job(1, whole(4), duration=0.9 * HOUR), identity=lead)
    (burst,) = made.records.bursts.values()
    assert burst.lease.end == lead.ends + HOUR / 2


def test_a_job_that_is_too_long_whenever_the_lead_ends_is_failed_there_too() -> None:
    lead = identity(ends=T0 + 100 + HOUR)
    long = job(1, whole(4), duration=100 * HOUR)
    made = tick_once(long, identity=lead, intake={"mode": "scheduler"})
    assert made.decisions[ONE].reason is Reason.TOO_LONG
    assert any(isinstance(action, FailJob) for action in made.actions)


def test_no_burst_is_made_that_could_not_be_online_before_the_lead_ends() -> None:
    sold = (offer(join_time=60.0),)
    for left, bursts in (61.0, 1), (60.0, 0), (1.0, 0):
        lead = identity(ends=T0 + 100 + left)
        made = tick_once(job(1, whole(4)), offers=sold, identity=lead)
        assert len(made.records.bursts) == bursts, left


def test_it_is_failed_where_the_site_wants_that_and_waits_for_own_nodes_that_would_do():
    long = {"duration": 100 * HOUR}
    failing = tick_once(job(1, whole(4), **long), intake={"mode": "scheduler"})
    small = view(job(1, whole(2), **long), busy=(0, 1))
    waiting = tick_once(seen=small, intake={"mode": "scheduler"})

    assert [type(action) for action in failing.actions] == [FailJob]
    assert waiting.decisions[ONE].reason is Reason.TURNED_DOWN


def test_a_job_goes_to_the_offer_that_lasts_and_what_joining_takes_is_considered():
    short = offer("short", lifetime=2 * HOUR)
    slow = offer("slow", price=1.0, join_time=HOUR)
    long = offer("long", price=2.0)

    made = tick_once(job(1, whole(4), duration=23 * HOUR), offers=(short, slow, long))

    (burst,) = made.records.bursts.values()
    assert burst.lease.offer == "long"


def test_a_job_without_a_limit_goes_where_leases_never_end_if_there_is_such_an_offer():
    spot = offer("spot", lifetime=2 * HOUR)
    jobs = job(1, whole(4)), job(2, whole(3), duration=HOUR)

    made = tick_once(*jobs, offers=(spot, offer("lasting", price=1.0)), deadlines={})

    assert jobs_by_offer(made) == {"lasting": {1}, "spot": {2}}
    alone = tick_once(jobs[0], offers=(spot,), deadlines={})
    assert [type(action) for action in alone.actions[:1]] == [ProvisionBurst]


SPOT = {"lifetime": 8 * HOUR, "price": 1.0}
CHEAP = [{"name": "r", "match": {"nodes": "1-8"}, "max_price": 2.0}]
TOGETHER = BurstPreferences(where="together")


@pytest.mark.parametrize(
    ("wish", "other", "tables"),
    [
        (BurstPreferences(max_price=2.0), {"price": 5.0}, {}),
        (BurstPreferences(), {"price": 5.0}, {"policy": CHEAP}),
        (BurstPreferences(mode="joined"), {"modes": ("isolated",)}, {}),
        (BurstPreferences(), {"shape": Shape(1)}, {}),
        (TOGETHER, {"max_nodes": 1}, {}),
        (BurstPreferences(), {"total": 3}, {}),
        (BurstPreferences(), {"modes": ("isolated",), "max_nodes": 3}, {}),
        (BurstPreferences(guest=True), {"modes": ("isolated",)}, {}),
        (BurstPreferences(), {"price": 5.0}, {"deadlines": DAY, "policy": CHEAP}),
        (BurstPreferences(losses=2), {"spot": True, "price": 0.5}, {}),
    ],
    ids=[
        "too dear",
        "too dear for the rule",
        "only isolated",
        "its nodes are too small",
        "one burst has too few nodes",
        "there are too few nodes",
        "an isolated burst has too few nodes",
        "isolated, and the user is a guest",
        "too dear, and all leases end",
        "spot nodes, which the job lost twice",
    ],
)
def test_an_offer_that_a_job_without_a_limit_cannot_have_says_nothing_of_its_time(
    wish, other, tables
):
    offers = offer("spot", **SPOT), offer("lasting", **other)
    userid = 7 if wish.guest else 100
    its = job(1, whole(4), preferences=wish, userid=userid)
    lead = identity(owner_userid=100)

    made = tick_once(its, offers=offers, identity=lead, **{"deadlines": {}, **tables})

    assert jobs_by_offer(made) == {"spot": {1}}, made.decisions[ONE].refusals


@pytest.mark.parametrize(
    "records",
    [
        Records(holds={ONE: Hold(urgency=16, state=HoldState.TAKEN_BACK, since=T0)}),
        Records(unreadable={"burst/burst-iso-1": "torn"}),
    ],
    ids=["its user took it back", "a record cannot be read"],
)
def test_nor_does_an_isolated_burst_that_the_job_cannot_have_now(records):
    offers = offer("spot", **SPOT), offer("lasting", modes=("isolated",))
    queue = {"mode": "queue", "queue": "burst"}
    its = job(1, whole(4), queue="burst")
    made = tick_once(its, offers=offers, records=records, deadlines={}, intake=queue)
    assert jobs_by_offer(made) == {"spot": {1}}, made.decisions[ONE].refusals


def planned_from(catalog, kind):
    """The inputs of a plan, as a kind of PlanContext, without any rank slot."""
    table, usage = RankTable((), LeasableRanks(), frozenset()), Usage(LimitSettings())
    return kind(now=T0, identity=identity(), catalog=catalog, table=table, usage=usage)


def test_what_jobs_ahead_could_have_says_nothing_of_one_that_was_taken_back():
    """Those that ask for the same share what was found for the first of them."""
    lasting = [offer(), offer(name="short", lifetime=3600.0)]
    known = provider_offers({"local": lasting}, {}, settings(), T0)
    catalog = offer_catalog(known, Failures({}, (), T0))
    free = demand(1, whole(4))
    held = but(free, isolated=Isolated(kind="job"))
    asked = []

    class Noting(PlanContext):
        def could_have(self, demand, _):
            asked.append(demand)
            return True

    plan = planned_from(catalog, Noting)
    for each in (held, free, held):
        plan.run_times.needed(each)
    assert asked == [held, free]


def test_without_an_offer_that_it_could_have_it_gets_no_live_burst_about_to_end():
    sold = {"local": [offer(lifetime=8 * HOUR)]}
    known = provider_offers(sold, {}, settings(), T0)
    catalog = offer_catalog(known, Failures({}, (), T0))
    plan = planned_from(catalog, PlanContext)
    (lasts,) = (each.run_time for each in catalog.known)
    assert plan.run_times.needed(demand(1, whole(1))) == lasts / 2


def test_jobs_of_one_plan_share_a_burst_only_as_far_as_it_lasts():
    short = offer("short", lifetime=4 * HOUR, max_nodes=4)
    long = offer("long", price=1.0, max_nodes=4)
    jobs = [job(n, whole(1), duration=n * 3 * HOUR) for n in (1, 2)]

    # Own nodes would do for each, and are busy.
    made = tick_once(seen=view(*jobs, busy=(0, 1)), offers=(short, long), deadlines={})
    assert jobs_by_offer(made) == {"short": {1}, "long": {2}}


def old_burst(hours, **tables):
    """A burst of one node that is idle, and so many hours old."""
    s = Sim(deadlines={"lease": "24h", "drain": "30m", "idle": "5m"}, **tables)
    s.tick(2)
    first = s.submit_lent(1, duration=23 * HOUR)
    s.until(lambda: first in s.lead.running())
    s.tick(hours, seconds=HOUR)
    s.lead.finish(first)
    s.tick()
    return s


def test_a_long_job_gets_no_old_burst_and_a_short_one_does():
    s = old_burst(20)
    old = s.burst.id
    short = s.submit_lent(1, duration=HOUR)
    s.tick(2)
    assert s.lead.jobs[short].ranks == {2}
    s.lead.finish(short)
    s.tick()
    long = s.submit_lent(1, duration=10 * HOUR)
    s.until(lambda: long in s.lead.running())

    first, second = s.bursts
    assert s.lead.jobs[long].ranks <= set(second.lease.ranks)
    assert second.lease.end - s.now > 10 * HOUR
    assert (first.id, first.state.value) == (old, "online")


@pytest.mark.parametrize("mode", ["hold", "queue"])
def test_an_old_burst_for_a_part_of_a_job_stays_for_brief_ones(mode):
    """Its lease would kill the job, so Flux starts that on other nodes alone.

    In mode `scheduler` sched-burst has each job keep to its own bursts anyway.
    """
    s = old_burst(20, intake={"mode": mode})
    old = s.burst
    assert len(old.lease.ranks) == 1
    long = s.submit_lent(2, duration=10 * HOUR)
    s.until(lambda: long in s.lead.running())
    assert s.lead.jobs[long].ranks.isdisjoint(old.lease.ranks)
    assert s.bursts[0].state.value == "online"
    brief = s.submit_lent(1, duration=HOUR)
    s.tick(2)
    assert s.lead.jobs[brief].ranks == {*old.lease.ranks}


@pytest.mark.parametrize(
    ("hours", "nodes", "duration"),
    [(20, 30, 10 * HOUR), (2, 1, 48 * HOUR)],
    ids=["nothing can serve it", "no lease is long enough"],
)
def test_an_idle_burst_goes_on_beside_a_job_that_gets_none(hours, nodes, duration):
    """Though it has nodes for a part of the job."""
    s = old_burst(hours)
    s.submit_lent(nodes, duration=duration)
    s.tick(5)
    assert s.state().value == "online"


@pytest.mark.parametrize(("hours", "bursts"), [(10, 1), (13, 2)])
def test_a_job_without_a_limit_has_half_of_a_lease_and_is_told_when_it_ends(
    hours, bursts
):
    s = old_burst(hours)
    s.lead.schedule = lambda: None
    endless = s.submit_lent(1)
    s.tick(2)
    if bursts == 1:
        assert "it has no time limit, and what still runs at" in s.told(endless)
    assert len(s.bursts) == bursts


@pytest.mark.parametrize(
    ("lease", "lead", "told"),
    [
        (HOUR, 0.0, HOUR),
        (HOUR, 60.0, 60.0),
        (None, 60.0, 60.0),
        (HOUR, -60.0, HOUR),
        (None, -60.0, None),
    ],
)
def test_a_job_without_a_limit_is_told_if_the_lead_ends_first(lease, lead, told):
    """A lead that has outlived its end had its time limit extended."""
    its = leased(run(), end=T0 + lease if lease else 0.0)
    seen = world(view(), identity(ends=T0 + lead if lead else 0.0))
    at = f"; it has no time limit, and what still runs at {moment(T0 + (told or 0))}"
    assert end_warning(job(1, whole(1)), [its], seen).startswith(at if told else "")
    assert bool(end_warning(job(1, whole(1)), [its], seen)) is (told is not None)


@pytest.mark.parametrize("long", ["9999999d", "inf"])
def test_a_lease_longer_than_a_date_can_say_has_no_end(long):
    made = tick_once(job(1, whole(2)), deadlines={"lease": long, "drain": "30m"})
    (burst,) = made.records.bursts.values()
    assert burst.lease.end == 0.0
