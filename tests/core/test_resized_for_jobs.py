# SPDX-License-Identifier: MIT
"""What the planner has live bursts grow by, and of which idle nodes it rids them."""

from typing import Any

import pytest

from burst.config import Seconds
from burst.core.lifecycle import apply
from burst.core.money.money import to_units
from burst.core.plan.catalog import read_catalog
from burst.core.plan.context import PlanContext
from burst.core.plan.demands import Plan, Promise, Proposal
from burst.core.plan.growth import with_growths
from burst.core.plan.leasable import LeasableRanks
from burst.core.plan.limits import Usage
from burst.core.plan.rank_table import RankTable
from burst.core.records import Records, Transaction
from burst.core.tick import run_tick
from burst.model.burst import Burst, Isolated, State, Tag
from burst.model.event import Event
from burst.model.jobid import JobId
from burst.model.lead import JobState
from burst.model.reason import Reason
from tests.builders import (
    LENT,
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
from tests.core.ticks import recorded
from tests.lifecycles import LEASE, leased, run

ID = LEASE.id
NOW = T0 + 100
UP = ("provision-start", "provision-finish", "joined", "online")


def idle(**lease: Any) -> Burst:
    """A burst of the ranks 2 and 3 that was made for user 100, and is idle."""
    burst = run(*UP, "job-start", "job-finish")
    return leased(burst, **{"userids": (100,), **lease})


def seen_by(lead, offers=None, **changes):
    found = world(lead, local=offers or (offer(),))
    changes.setdefault("resizable", frozenset({"local"}))
    return but(found, **changes)


def decide(*jobs, records: Records | None = None, seen=None, now=NOW, **tables):
    lead = view(*jobs, online=[0, 1, 2, 3])
    records = records or recorded(idle())
    return run_tick(records, seen or seen_by(lead), settings(**tables), now)


def large(**changes):
    return job(7, whole(4, constraint=LENT), burstable=True, **changes)


def test_a_burst_grows_by_what_a_job_lacks_in_place_of_a_further_one():
    made = decide(large())
    (burst,) = made.records.bursts.values()
    assert burst.lease.ranks == (2, 3, 4, 5)
    assert burst.coming == (4, 5)
    assert burst.jobs == {JobId(7)}
    decision = made.decisions[JobId(7)]
    assert decision.reason is Reason.GROWING
    assert decision.text() == f"burst {ID} grows by 2 nodes for it"
    grow = next(event for event in burst.events if event.name == "grow")
    assert grow.context["note"] == "for job ƒ8"
    kinds = [type(action).__name__ for action in made.actions]
    assert kinds == ["HoldJobs", "ResizeBurst"]


@pytest.mark.parametrize(
    ("burst", "asked", "tables"),
    [
        (idle(), large(), {"plan": {"resize": False}}),
        (but(idle(), growth_failed=True), large(), {}),
        (idle(price=2.0), large(), {}),
        (idle(tag=Tag("e/m", 100)), large(), {}),
        (idle(), large(), {"limits": {"max_nodes_per_burst": 3}}),
        # There is no entry of what is reserved for it.
        (idle(), large(), {"budget": [{"limit": 1000.0}]}),
    ],
    ids=["off", "failed before", "price", "tag", "limit", "not on record"],
)
def test_it_does_not_where_that_is_not_the_same_or_not_allowed(burst, asked, tables):
    made = decide(asked, records=recorded(burst), **tables)
    assert made.records.bursts[ID].resize is None
    new = [b for b in made.records.bursts.values() if b.id != ID]
    assert new


@pytest.mark.parametrize(
    ("was", "grows"),
    [("kube a (:8443)", True), ("kube a", True), ("", True), ("kube a (/b)", False)],
)
def test_it_grows_where_its_provider_can_reach_it(was, grows):
    """Records of older versions lack what is in parentheses."""
    seen = seen_by(view(large(), online=range(4)), places={"local": "kube a (:8443)"})
    made = decide(records=recorded(idle(place=was)), seen=seen)
    assert bool(made.records.bursts[ID].coming) is grows


@pytest.mark.parametrize("end", [0.0, NOW + 86_400])
def test_budgets_allow_the_whole_of_the_larger_burst(end):
    asked = large(duration=3600.0)
    burst = idle(price=1.0, end=end)
    seen = seen_by(view(asked, online=[0, 1, 2, 3]), (offer(price=1.0),))

    def decided(limit: float):
        budget = [{"limit": limit}]
        before = seen_by(view(online=[0, 1, 2, 3]))
        known = run_tick(recorded(burst), before, settings(), NOW).records
        return decide(asked, records=known, seen=seen, budget=budget)

    def reserved(made) -> float:
        return sum(to_units(entry.reserved) for entry in made.records.entries.values())

    grown = decided(1e6)
    assert grown.records.bursts[ID].coming == (4, 5)
    needs = reserved(grown)
    # With the further burst, in place of which it grows, that is counted twice.
    low, high = needs, 3 * needs
    near = decided(low)
    assert near.records.bursts[ID].resize is None
    enough = decided(high)
    assert enough.records.bursts[ID].coming == (4, 5)
    for made, limit in ((near, low), (enough, high)):
        assert reserved(made) <= limit


def test_an_offer_of_larger_bursts_only_by_number_makes_two():
    lead = view(large(), online=[0, 1, 2, 3])
    made = decide(seen=seen_by(lead, (offer(max_nodes=3),)))
    assert made.records.bursts[ID].resize is None


def test_a_provider_that_cannot_resize_gets_a_further_burst():
    lead = view(large(), online=[0, 1, 2, 3])
    made = decide(seen=world(lead))
    assert len(made.records.bursts) == 2


def test_a_job_that_shares_no_nodes_with_a_burst_gets_one_of_its_own():
    """Its nodes may be idle while the others work, and cannot leave then."""
    burst = leased(run(*UP, "job-start"), userids=(100,))
    runs = job(1, whole(2), state=JobState.RUN, ranks=frozenset({2, 3}), t_start=T0)
    lead = view(runs, job(7, whole(2, constraint=LENT)), online=range(4), busy=(2, 3))
    made = decide(records=recorded(burst), seen=seen_by(lead))
    assert made.records.bursts[ID].resize is None
    assert len(made.records.bursts) == 2


def test_what_several_jobs_share_is_a_burst_of_its_own():
    made = decide(large(), job(8, whole(2, constraint=LENT), burstable=True))
    assert not made.records.bursts[ID].coming
    assert len(made.records.bursts) == 2


def test_a_job_that_gets_several_bursts_gets_them():
    asked = job(7, whole(8, constraint=LENT), burstable=True)
    made = decide(asked)
    assert not made.records.bursts[ID].coming
    assert len(made.records.bursts) == 3


# Of which the last nodes are idle.


class Works:
    """A burst of four nodes, of which jobs run on some, tick by tick."""

    def __init__(self, **tables: Any) -> None:
        context: dict[str, Any] = {
            "hosts": "burst-0-[0-3]",
            "ranks": "2-5",
            "online": "2-5",
        }
        context |= {"nodes": 4, "note": ""}
        self.records = recorded(apply(idle(), Event(T0 + 70, "grown", context)))
        self.settings = settings(deadlines={"idle": "60s"}, **tables)
        self.cache: Any = None
        self.now = NOW
        self.resizable = frozenset({"local"})

    def tick(self, *busy: int, seconds: float = 1.0, waits=()):
        self.now += seconds
        its = {"state": JobState.RUN, "t_start": self.now}
        runs = [
            job(20 + rank, whole(1), ranks=frozenset({rank}), **its) for rank in busy
        ]
        lead = view(*runs, *waits, online=range(6), busy=busy)
        seen = seen_by(lead, resizable=self.resizable)
        made = run_tick(self.records, seen, self.settings, self.now, self.cache)
        self.records, self.cache = made.records, made.refusal_cache
        return self.records.bursts[ID]


def test_nodes_that_are_idle_while_others_work_leave_past_the_deadline():
    site = Works()
    site.tick(2, 3)
    assert site.tick(2, seconds=59).resize is None
    # Below the last node that has worked since, it has not been idle for so long.
    burst = site.tick(2, seconds=2)
    assert burst.resize is not None
    assert burst.resize.nodes == 2
    assert burst.leaving == (4, 5)
    assert burst.resize.why == "its last nodes were idle for 1m"
    assert not burst.resize.requested


@pytest.mark.parametrize(("nodes", "stays"), [(4, True), (40, False)])
def test_while_a_job_waits_they_stay_for_as_long_as_they_took_to_come(nodes, stays):
    """It may have them with others. No nodes would do for one of forty."""
    site = Works(limits={"max_nodes": 4})
    times = {e.name: e.timestamp for e in site.records.bursts[ID].events}
    boot = times["online"] - times["provision-start"]
    site.settings = but(
        site.settings, deadlines=but(site.settings.deadlines, idle=Seconds(boot / 2))
    )
    waits = [job(7, whole(nodes))]
    site.tick(2, waits=waits)
    burst = site.tick(2, seconds=boot / 2 + 1, waits=waits)
    assert (burst.resize is None) is stays
    assert site.tick(2, seconds=boot / 2 + 1, waits=waits).resize is not None


def test_nodes_that_work_now_and_then_stay():
    site = Works()
    for _ in range(5):
        assert site.tick(2, seconds=40).resize is None
        assert site.tick(2, 5).resize is None
    site.tick(2)
    assert site.tick(2, 4, seconds=40).resize is None
    burst = site.tick(2, seconds=40)
    assert burst.leaving == (5,), "rank 4 worked 40 s ago"


def test_a_burst_on_which_a_job_counts_or_nothing_runs_does_not_shrink():
    site = Works()
    waits = job(7, whole(4, constraint=LENT), burstable=True)
    site.tick(2)
    context = {"jobs": {"7": T0}}
    burst = apply(site.records.bursts[ID], Event(site.now, "assign", context))
    site.records = recorded(burst)
    assert site.tick(2, seconds=100, waits=[waits]).resize is None
    site = Works()
    site.tick()
    burst = site.tick(seconds=100)
    assert burst.state is State.DRAIN
    site = Works(plan={"resize": False})
    site.tick(2)
    assert site.tick(2, seconds=100).resize is None
    site = Works()
    site.resizable = frozenset()
    site.tick(2)
    assert site.tick(2, seconds=100).resize is None


def test_a_restart_waits_for_it_anew():
    site = Works()
    site.tick(2)
    site.cache = None
    assert site.tick(2, seconds=100).resize is None
    assert site.tick(2, seconds=61).resize is not None


# One by one, by a plan that has a burst of two nodes for a job.


def grow(
    burst=None, settings_=None, *, jobs=(), asked=None, health=None, **changes
) -> Plan:
    place = {"slot": "burst-1", "hosts": ("burst-1-0", "burst-1-1"), "ranks": (6, 7)}
    lease = but(LEASE, id="burst-1-cccccc", userids=(100,), **place)
    proposals = (Proposal(lease, (JobId(7),)),)
    fields = {"proposals": proposals, "assignments": {JobId(7): (ID,)}, **changes}
    lead = view(asked or large(), *jobs, online=[0, 1, 2, 3])
    known = recorded(burst or idle(), health=health or {})
    seen, set_ = seen_by(lead), settings_ or settings()
    tx = Transaction(known, seen, set_, NOW)
    catalog = read_catalog(tx, seen, set_, NOW)
    context = PlanContext(
        now=NOW,
        identity=identity(),
        catalog=catalog,
        table=RankTable((), LeasableRanks(), frozenset()),
        usage=Usage(set_.limits),
        settings=but(set_.plan, share_users=True),
    )
    demands = [
        but(demand(each.id, each.request, each.userid), duration=each.duration)
        for each in lead.jobs.values()
    ]
    return with_growths(Plan(**fields), context, demands, tx)


def test_ranks_that_the_plan_gives_to_others_are_taken():
    other = but(LEASE, id="burst-0-dddddd", hosts=("burst-0-2",), ranks=(4,))
    first = grow().proposals
    assert first == ()
    both = (*_proposals(), Proposal(other, (JobId(9),)))
    assert grow(proposals=both).growths == ()
    request = whole(4, constraint='{"hostlist":["burst-0-[0-1,3]"]}')
    assert grow(asked=job(7, request)).growths == ()


def _proposals() -> tuple[Proposal, ...]:
    return grow(assignments={}).proposals


def test_ranks_that_are_promised_to_another_job_are_left_to_it():
    """Whatever the slot was called when the burst was made."""
    for burst in (idle(), idle(slot="burst-0-[0-1]")):
        kept = (Promise(job=JobId(2), ranks=(5,), start=NOW),)
        assert grow(burst, promises=kept).growths == ()
        kept = (Promise(job=JobId(2), ranks=(6, 7, 8), start=NOW),)
        assert len(grow(burst, promises=kept).growths) == 1


def test_a_burst_of_several_slots_does_not_grow():
    assert grow(idle(ranks=(3, 6))).growths == ()


def test_nobody_bears_further_nodes_for_the_job_of_another():
    burst = apply(idle(), Event(NOW, "assign", {"jobs": {"30": T0}}))
    theirs = job(30, whole(1), userid=200)
    assert grow(burst, jobs=[theirs]).growths == ()
    assert len(grow(burst, jobs=[job(30, whole(1))]).growths) == 1
    assert grow(idle(userids=())).growths == ()


def test_a_lease_ends_after_the_job():
    assert grow(idle(end=NOW + 4000)).growths == ()
    short, long = large(duration=60.0), large(duration=86400.0)
    burst = idle(end=NOW + 40_000)
    assert len(grow(burst, asked=short).growths) == 1
    assert grow(burst, asked=long).growths == ()


def test_it_grows_once_in_a_plan():
    (one,) = _proposals()
    two = but(one.lease, id="burst-1-eeeeee", hosts=("burst-1-2",), ranks=(8,))
    first = but(one.lease, hosts=("burst-1-0",), ranks=(6,))
    proposals = (Proposal(first, (JobId(7),)), Proposal(two, (JobId(8),)))
    given = {JobId(7): (ID,), JobId(8): (ID,)}
    other = job(8, whole(3))
    plan = grow(proposals=proposals, assignments=given, jobs=[other])
    assert len(plan.growths) == 1
    assert len(plan.proposals) == 1


@pytest.mark.parametrize("what", ["jobs", "isolated", "twice"])
def test_what_is_not_one_burst_for_one_job_stays_as_it_is(what):
    (one,) = _proposals()
    isolated = but(one.lease, isolated=Isolated(kind="interactive"))
    changed = {
        "jobs": (Proposal(one.lease, (JobId(7), JobId(8))),),
        "isolated": (Proposal(isolated, (JobId(7),)),),
        "twice": (one, one),
    }[what]
    assert grow(proposals=changed).growths == ()


def test_a_burst_that_is_resized_already_is_left_alone():
    burst = run(*UP, "job-start", "job-finish", "shrink")
    assert grow(leased(burst, userids=(100,))).growths == ()
