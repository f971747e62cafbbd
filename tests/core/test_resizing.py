# SPDX-License-Identifier: MIT
"""Bursts that grow and shrink, tick by tick: what is recorded, and what is done."""

import math
from typing import Any

import pytest

from burst.core.actions import DrainBurst, ResizeBurst, UndrainBurst
from burst.core.burst_actions import next_deadline
from burst.core.burst_story import burst_story
from burst.core.cost import cost
from burst.core.jobs.confinement import rank_leases
from burst.core.lifecycle import apply, restore
from burst.core.plan.growth import free_above
from burst.core.plan.slots import find_slots
from burst.core.provider_health import Health, Outcome, ProviderAnswer, Verb
from burst.core.records import Records, Transaction
from burst.core.report import burst_row
from burst.core.resize_request import WantedSize, resize_burst
from burst.core.tick import result_of, run_tick
from burst.core.world import LastCall, ProviderView
from burst.errors import BurstError, Unreadable
from burst.model.burst import Burst, Isolated, State
from burst.model.event import Event
from burst.model.jobid import JobId
from burst.model.lead import HostEntry, JobState
from burst.model.reason import Reason
from burst.model.record import decode_record, encode_record
from burst.provider import BurstStatus, Failure, FollowerStatus, Phase
from tests.builders import (
    NODE,
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
from tests.core.ticks import recorded
from tests.lifecycles import LEASE, leased, run

ID = LEASE.id
HOSTS = tuple(f"burst-0-{n}" for n in range(4))
NOW = T0 + 100
UP = ("provision-start", "provision-finish", "joined", "online")
SETTINGS = settings(
    deadlines={"idle": "1h", "join": "50s", "reap": "30s"},
    providers={LEASE.provider: {"type": "fake", "provision": "100s"}},
)
OURS = "burst: it shrinks"


def online(*more: str) -> Any:
    """A burst of the ranks 2 and 3, of the slot of the ranks 2 to 5."""
    return leased(run(*UP, *more), price=1.0, fee=0.5)


class Site:
    """A lead, a provider that shows what it is told to, and the records between."""

    def __init__(self, burst: Burst | None = None) -> None:
        self.records = recorded(burst or online())
        self.online = {0, 1, 2, 3}
        self.drained: dict[int, str] = {}
        self.jobs: dict[int, tuple[int, ...]] = {1: (2,)}
        self.shown: dict[str, Phase] = dict.fromkeys(HOSTS[:2], Phase.RUNNING)
        self.failure = Failure.OTHER
        self.why = ""
        self.trouble = ""
        self.call: LastCall | None = None
        self.now = NOW
        self.settings = SETTINGS
        self.listed = True
        self.started = 0.0
        """When the lead was started."""
        self.moved = 0.0
        """When followers reached the lead elsewhere."""
        self.shuts = False

    @property
    def burst(self) -> Any:
        return self.records.bursts[ID]

    @property
    def last(self) -> str:
        return str(self.burst.events[-1].name)

    def world(self):
        jobs = [
            job(
                number,
                whole(len(ranks) or 1),
                state=JobState.RUN if ranks else JobState.SCHED,
                ranks=frozenset(ranks),
                t_start=T0 + 50 if ranks else 0.0,
                burstable=True,
            )
            for number, ranks in self.jobs.items()
        ]
        busy = [rank for ranks in self.jobs.values() for rank in ranks]
        seen = view(
            *jobs, online=self.online, busy=busy, drained=self.drained, read_at=self.now
        )
        seen = but(seen, shuts_down=self.shuts)
        followers = tuple(FollowerStatus(h, p) for h, p in self.shown.items())
        phases = set(self.shown.values()) - {Phase.ENDING}
        order = (Phase.FAILED, Phase.PENDING, Phase.RUNNING)
        phase = next(p for p in order if p in phases)
        if self.failure is not Failure.OTHER:
            phase = Phase.FAILED
        status = BurstStatus(
            burst_id=ID,
            phase=phase,
            followers=followers,
            failure=self.failure,
            why=self.why,
        )
        provider = ProviderView(
            offers=(offer(),),
            read_at=self.now,
            statuses={ID: status} if self.listed else {},
            trouble=self.trouble,
        )
        found = world(seen)
        return but(
            found,
            identity=but(found.identity, started=self.started, moved=self.moved),
            providers={"local": provider},
            resizable=frozenset({"local"}),
            calls={ID: self.call} if self.call else {},
        )

    def note(self, name: str) -> str:
        """What the first event of a name says."""
        event = next(each for each in self.burst.events if each.name == name)
        return str(event.context["note"])

    def grow(self, nodes: int) -> None:
        """Ask for a growth, which the provider takes."""
        self.ask(nodes)
        self.tick()
        self.answer()

    def ask(self, nodes: int, **changes):
        seen = but(self.world(), **changes)
        tx = Transaction(self.records, seen, self.settings, self.now)
        answer = resize_burst(tx, WantedSize(ID, nodes))
        made = result_of(tx)
        self.records = made.records
        return answer

    def ticks(self, number: int) -> None:
        """Run so many ticks, of which what is done is not asked."""
        for _ in range(number):
            self.tick()

    def row(self) -> dict[str, Any]:
        """What `burst status` shows of it."""
        return burst_row(self.burst, self.world(), self.now)

    def tick(self, seconds: float = 1.0, answered: ProviderAnswer | None = None):
        self.now += seconds
        seen = self.world()
        if answered is not None:
            seen = but(seen, answered=[answered])
        made = run_tick(self.records, seen, self.settings, self.now)
        self.records = made.records
        assert not self.burst.quarantined
        for action in made.actions:
            if isinstance(action, DrainBurst):
                self.drained |= dict.fromkeys(action.ranks, action.reason)
            if isinstance(action, UndrainBurst):
                for rank in action.ranks:
                    self.drained.pop(rank, None)
            if isinstance(action, ResizeBurst):
                resize = self.burst.resize
                assert resize is not None
                same = self.call is not None and self.call.nodes == resize.nodes
                taken = self.call.taken_at if self.call and same else 0.0
                self.call = LastCall(
                    verb=Verb.RESIZE, nodes=resize.nodes, taken_at=taken
                )
        return made.actions

    def answer(self, outcome: Outcome = Outcome.OK, note: str = ""):
        """The provider answers the call that is under way; the next tick has it."""
        assert self.call is not None
        taken_at = self.now if outcome is Outcome.OK else 0.0
        self.call = but(
            self.call, outcome=outcome, note=note, done_at=self.now, taken_at=taken_at
        )
        said = ProviderAnswer(
            provider="local", verb=Verb.RESIZE, outcome=outcome, note=note, burst=ID
        )
        return self.tick(0.1, answered=said)


def kinds(actions) -> list[str]:
    return [type(action).__name__ for action in actions]


def test_it_grows_by_the_free_ranks_above_it_and_each_step_is_on_record():
    site = Site()
    answer = site.ask(4)
    assert answer == (ID, 2, 4, f"{ID} grows from 2 to 4 nodes")
    assert site.burst.lease.ranks == (2, 3, 4, 5)
    assert site.burst.lease.hosts == HOSTS
    assert site.burst.lease.shape == NODE
    assert site.burst.coming == (4, 5)
    assert not site.burst.leaving
    assert site.ask(4).text.endswith("grows from 2 to 4 nodes"), "it is asked for"
    with pytest.raises(BurstError, match=r"grows from 2 to 4 nodes; ask again"):
        site.ask(3)
    assert kinds(site.tick()) == ["ResizeBurst"]
    assert kinds(site.tick()) == [], "while it is being called it is not called"
    assert kinds(site.answer()) == [], "nor once it was taken"
    assert site.row()["resize"] == {"kind": "grow", "before": 2, "nodes": 4}
    assert site.row()["note"] == "grows from 2 to 4 nodes"
    assert next_deadline(site.burst, SETTINGS, 0.0, site.now) == NOW + 150
    site.online |= {4}
    site.tick()
    assert site.burst.resize is not None
    site.online |= {5}
    site.tick()
    assert site.last == "grown"
    assert site.burst.resize is None
    assert site.burst.expected == {2, 3, 4, 5}
    assert next_deadline(site.burst, SETTINGS, 0.0, site.now) == math.inf
    assert site.ask(4).text == f"{ID} has 4 nodes"
    assert site.row()["resize"] is None
    story = burst_story(site.records, site.burst, site.settings, site.world(), site.now)
    texts = [event["text"] for event in story["events"]]
    assert "it has 4 nodes now, all online: by request" in texts


def test_it_shrinks_from_the_top_once_nothing_runs_there():
    site = Site()
    site.jobs = {1: (2,), 2: (3,)}
    assert site.ask(1).text == f"{ID} shrinks from 2 to 1 node"
    assert site.burst.leaving == (3,)
    assert site.burst.lease.nodes == 2, "its last rank is leased until it is gone"
    assert kinds(site.tick()) == ["DrainBurst"]
    assert kinds(site.tick()) == [], "a job runs there"
    assert site.row()["note"] == (
        "shrinks from 2 to 1 node: jobs still run on rank 3; they are not killed"
    )
    site.tick(SETTINGS.deadlines.drain + 1)
    assert site.last == "overdue"
    del site.jobs[2]
    assert kinds(site.tick()) == ["ResizeBurst"]
    assert site.last == "shrink-start"
    assert site.row()["note"].startswith("shrinks")
    site.answer()
    assert site.burst.resize is not None, "its provider shows it"
    site.why = "its node may be dead"
    assert site.row()["note"] == "shrinks from 2 to 1 node: its node may be dead"
    site.why = ""
    del site.shown[HOSTS[1]]
    site.tick()
    assert site.burst.resize is not None, "its rank is online"
    site.online -= {3}
    assert kinds(site.tick()) == ["UndrainBurst"]
    assert site.burst.lease.nodes == 2
    site.tick()
    assert site.last == "shrunk"
    assert site.burst.lease.ranks == (2,)
    assert site.burst.lease.hosts == HOSTS[:1]
    assert site.burst.expected == {2}
    assert site.burst.state is State.ONLINE
    assert not site.drained


def test_a_shrink_is_called_again_until_it_is_seen_to_be_done():
    site = Site()
    site.ask(1)
    site.ticks(2)
    assert site.call is not None
    assert kinds(site.answer()) == [], "not at once"
    assert kinds(site.tick(5.0)) == ["ResizeBurst"]
    site.answer(Outcome.TRANSIENT, "it is busy")
    assert site.last == "retry"
    told = len(site.burst.events)
    site.answer(Outcome.TRANSIENT, "it is busy")
    assert len(site.burst.events) == told, "the same is told once"
    assert kinds(site.tick(60.0)) == ["ResizeBurst"]
    # What it refuses of a shrink is tried again, too.
    site.answer(Outcome.SPEC, "no")
    assert site.burst.resize is not None
    assert site.burst.leaving
    assert "overdue" in [event.name for event in site.burst.events]
    # A person undrains the rank, and a job starts there.
    site.drained = {}
    assert kinds(site.tick(60.0)) == ["DrainBurst"]
    site.jobs[7] = (3,)
    assert kinds(site.tick(60.0)) == []
    del site.jobs[7]
    assert kinds(site.tick()) == ["ResizeBurst"]


def test_a_drain_of_a_person_stays_where_it_shrank():
    site = Site()
    site.drained = {3: "broken fan"}
    site.ask(1)
    assert kinds(site.tick()) == ["ResizeBurst"]
    del site.shown[HOSTS[1]]
    site.online -= {3}
    site.answer()
    assert site.last == "shrunk"
    assert site.drained == {3: "broken fan"}


def test_jobs_of_a_broker_that_is_gone_keep_it_from_shrinking_no_longer_than_rejoin():
    site = Site()
    site.jobs = {1: (2,), 2: (3,)}
    site.online -= {3}
    site.ask(1)
    site.tick()
    assert kinds(site.tick()) == []
    told = "Flux still has jobs on offline rank 3"
    assert told in site.row()["note"]
    assert kinds(site.tick(SETTINGS.deadlines.rejoin + 1)) == ["ResizeBurst"]


@pytest.mark.parametrize(
    "outcome", [Outcome.CAPACITY, Outcome.SPEC, Outcome.REFUSED, Outcome.NOT_FOUND]
)
def test_a_growth_that_is_refused_is_given_back_and_all_else_goes_on(outcome):
    site = Site()
    site.ask(4)
    site.tick()
    site.answer(outcome, "there are none")
    assert site.burst.state is State.ONLINE
    assert site.burst.leaving == (4, 5)
    assert site.burst.expected == {2, 3}
    assert site.note("shrink") == "there are none"
    health = site.records.health["local"]
    assert (health.rows["offer/small"].nodes, health.disabled) == (2, "")
    site.ticks(2)
    assert site.last == "shrink-start"
    site.answer()
    site.ticks(2)
    assert site.last == "shrunk"
    assert site.burst.lease.ranks == (2, 3)
    with pytest.raises(BurstError, match=r"cannot have 2 more nodes: .*: had no"):
        site.ask(4)


def test_that_a_growth_failed_is_remembered_until_one_does_not():
    """Jobs get further bursts then: it may fail for what is this burst's alone."""
    site = Site()
    site.ask(4)
    site.tick()
    assert not site.burst.growth_failed
    site.answer(Outcome.SPEC, "in a queue of Kueue")
    assert site.burst.growth_failed
    site.ticks(2)
    site.answer()
    site.ticks(2)
    assert site.last == "shrunk"
    assert site.burst.growth_failed
    record = decode_record(encode_record(site.burst))
    assert restore(record, {}).growth_failed
    site.records = but(site.records, health={})
    site.now += SETTINGS.limits.cooldown
    site.ask(3)
    assert site.burst.growth_failed
    site.online |= {4}
    site.tick()
    assert site.last == "grown"
    assert not site.burst.growth_failed


def test_a_growth_that_is_late_is_given_back():
    site = Site()
    site.grow(4)
    site.online |= {4}
    site.tick(151)
    assert site.note("shrink") == (
        "the added nodes were not online within 2.5m: its provider does not say why"
    )
    assert site.burst.leaving == (4, 5)
    # Flux may have started a job there meanwhile.
    site.jobs[9] = (4,)
    site.ticks(2)
    assert site.last == "shrink"
    del site.jobs[9]
    site.tick()
    assert site.last == "shrink-start"


@pytest.mark.parametrize("failure", [Failure.OTHER, Failure.CAPACITY])
def test_a_growth_whose_followers_fail_is_given_back_at_once(failure):
    site = Site()
    site.ask(3)
    site.tick()
    site.shown[HOSTS[2]] = Phase.FAILED
    if failure is Failure.CAPACITY:
        site.shown[HOSTS[2]] = Phase.PENDING
        site.failure = failure
    site.tick()
    assert site.burst.coming, "nothing follows from it before the call was taken"
    site.answer()
    assert site.burst.leaving == (4,)
    assert site.burst.state is State.ONLINE


def test_a_growth_without_nodes_is_given_back_if_all_followers_show_as_failed():
    """As pods do; a rank that is lost at that moment does not end the burst."""
    site = Site()
    site.grow(3)
    site.shown = dict.fromkeys(HOSTS[:3], Phase.FAILED)
    site.failure = Failure.CAPACITY
    site.online.remove(3)
    site.tick(2)
    assert site.burst.leaving == (4,)
    assert site.burst.state is State.ONLINE
    assert site.burst.lost_since is not None


@pytest.mark.parametrize("late", [True, False])
@pytest.mark.parametrize("anew", [True, False])
def test_a_growth_that_failed_by_a_start_of_the_lead_has_no_offer_set_aside(late, anew):
    site = Site()
    site.grow(4)
    if anew:
        site.started = site.now + 1
    if not late:
        site.shown[HOSTS[2]] = Phase.FAILED
    site.tick(151 if late else 2)
    assert site.burst.leaving == (4, 5)
    assert ("the lead was restarted" in site.note("shrink")) == anew
    assert site.burst.growth_failed != anew
    health = site.records.health.get("local", Health())
    assert ("offer/small" in health.rows) != anew


def test_a_growth_towards_an_address_that_is_none_any_more_is_given_back():
    site = Site()
    site.moved = site.now - 1
    site.grow(4)
    site.tick(2)
    assert site.burst.coming, "it has the address that there is by now"
    site.moved = site.now + 1
    site.tick(2)
    assert site.burst.leaving == (4, 5)
    assert "address of the lead has changed since it began to grow" in site.note(
        "shrink"
    )
    assert not site.burst.growth_failed
    assert site.records.health == {}


def test_a_failure_of_its_first_followers_is_its_own():
    site = Site()
    site.grow(3)
    site.shown |= {HOSTS[0]: Phase.FAILED, HOSTS[2]: Phase.PENDING}
    site.tick()
    assert site.burst.coming, "all its ranks are online, so that jobs can run"
    site.online -= {2}
    site.tick()
    assert site.burst.state is State.REAP
    assert site.burst.resize is None


def test_what_cannot_be_read_neither_ends_a_growth_nor_a_shrink():
    site = Site()
    site.grow(3)
    site.shown[HOSTS[2]] = Phase.FAILED
    site.trouble = "no answer"
    site.tick()
    assert site.burst.coming
    site = Site()
    site.ask(1)
    site.ticks(2)
    site.answer()
    del site.shown[HOSTS[1]]
    site.online -= {3}
    site.trouble = "no answer"
    site.tick()
    assert site.burst.leaving
    site.trouble, site.listed = "", False
    site.tick()
    assert site.burst.leaving


def test_a_growth_is_taken_back_by_the_number_that_it_had():
    site = Site()
    site.ask(4)
    site.tick()
    assert site.ask(2).text == f"{ID} keeps 2 nodes; its growth is canceled"
    assert site.burst.leaving == (4, 5)
    assert not site.burst.growth_failed
    with pytest.raises(BurstError, match="shrinks from 4 to 2"):
        site.ask(3)
    assert site.ask(2).nodes == 2
    # The call of the growth is still under way.
    site.tick()
    assert kinds(site.tick()) == []
    assert site.last == "shrink-start"
    assert kinds(site.answer()) == ["ResizeBurst"], "its answer is of another size"
    assert site.call is not None
    assert site.call.nodes == 2


def test_an_answer_for_another_size_changes_nothing():
    site = Site()
    site.ask(4)
    site.tick()
    site.ask(2)
    site.answer(Outcome.CAPACITY, "there are none")
    assert "retry" not in [event.name for event in site.burst.events]
    assert not site.records.health


def test_one_that_is_taken_down_while_it_is_resized_is_reaped_whole():
    site = Site()
    site.jobs = {}
    site.ask(4)
    context = {"ranks": "2-5", "result": "canceled", "note": "by hand"}
    burst = apply(site.burst, Event(site.now, "drain", context))
    site.records = recorded(burst)
    assert burst.resize is None
    assert burst.lease.nodes == 4
    # That `resize` found nothing is not that `reap` did.
    site.call = LastCall(verb=Verb.RESIZE, nodes=4, outcome=Outcome.NOT_FOUND)
    site.online = {0, 1}
    site.drained = dict.fromkeys(range(2, 6), OURS)
    site.tick()
    assert kinds(site.tick()) == ["ReapBurst"]
    assert site.burst.state is State.REAP


def test_further_nodes_that_no_job_waits_for_any_more_are_given_back():
    site = Site()
    growth = {**_context(site.burst, 4), "requested": False, "note": "for job 7"}
    grown = apply(site.burst, Event(site.now, "grow", growth))
    waits = apply(grown, Event(site.now, "assign", {"jobs": {"7": T0}}))
    site.records = recorded(waits)
    site.jobs[7] = ()
    site.tick()
    assert site.burst.coming
    del site.jobs[7]
    site.tick()
    assert site.burst.leaving == (4, 5)
    assert "no waiting job needs its added nodes" in site.note("shrink")
    assert not site.records.health, "that is no failure"


def _context(burst: Burst, nodes: int):
    return {
        "nodes": nodes,
        "before": burst.lease.nodes,
        "hosts": f"burst-0-[0-{nodes - 1}]",
        "ranks": f"2-{nodes + 1}",
        "online": "2-3",
    }


def test_a_job_that_needs_the_further_nodes_waits_for_them_and_others_do_not():
    growth = {**_context(online(), 4), "requested": True, "note": "by hand"}
    # Job 1, for which it was made, has run.
    burst = apply(online("job-finish"), Event(NOW, "grow", growth))
    jobs = {"7": T0, "8": T0}
    site = Site(apply(burst, Event(NOW, "assign", {"jobs": jobs})))
    large, small = job(7, whole(3)), job(8, whole(1))
    seen = but(site.world(), lead=view(large, small, online=[0, 1, 2, 3]))
    made = run_tick(site.records, seen, SETTINGS, NOW + 1)
    coming = made.decisions[JobId(7)]
    assert coming.reason is Reason.COMING
    assert "(grow): 2 of 4 nodes" in coming.text()
    assert made.decisions[JobId(8)].reason is Reason.RELEASED
    assert seen.lead is not None
    assert rank_leases(made.records, seen.lead).jobs == {
        JobId(7): frozenset(),
        JobId(8): frozenset({2, 3, 4, 5}),
    }
    up = view(large, small, online=range(6))
    seen = but(seen, lead=up)
    made = run_tick(made.records, seen, SETTINGS, NOW + 2)
    assert made.decisions[JobId(7)].reason is Reason.RELEASED
    assert rank_leases(made.records, up).jobs[JobId(7)] == {2, 3, 4, 5}


def test_one_that_is_made_larger_ahead_of_jobs_is_idle_from_then_on():
    """It would be drained for its idleness while what was asked for comes."""
    site = Site(run(*UP, "job-leave", "idle"))
    site.jobs = {}
    assert site.burst.unused_since is not None
    site.ask(4)
    site.tick(100)
    assert site.burst.unused_since is None
    site.online |= {4, 5}
    site.tick()
    assert site.burst.unused_since is None
    site.tick()
    assert site.burst.unused_since == site.now


@pytest.mark.parametrize(
    ("burst", "nodes", "why"),
    [
        (online(), 0, "cannot have 0 nodes; burst down"),
        (online(), 5, "has 2 free ranks above it, and 3 are needed"),
        (run(*UP[:2]), 3, "is join; only an online burst can be resized"),
        (run(*UP, "quarantine"), 3, "is quarantined; only an online"),
        (run(*UP, "drain"), 1, "is drain"),
    ],
)
def test_what_cannot_be_had_is_refused_with_the_reason(burst, nodes, why):
    site = Site(burst)
    with pytest.raises(BurstError, match=why):
        site.ask(nodes)


def test_what_is_resized_is_known_online_and_joined():
    site = Site()
    tx = Transaction(Records(), site.world(), SETTINGS, NOW)
    with pytest.raises(BurstError, match=r"there is no burst burst-0-aaaaaa.*: none"):
        resize_burst(tx, WantedSize(ID, 3))
    with pytest.raises(Unreadable, match="the lead cannot be read: silent"):
        site.ask(3, lead=None, trouble="silent")
    with pytest.raises(BurstError, match="provider local cannot resize its bursts"):
        site.ask(3, resizable=frozenset())
    with pytest.raises(BurstError, match="the daemon stops, or its lead"):
        site.ask(3, closing=True)
    isolated = but(LEASE, isolated=Isolated(kind="interactive"))
    with pytest.raises(BurstError, match="is isolated and cannot be resized"):
        Site(but(online(), lease=isolated)).ask(3)


def test_no_nodes_are_added_while_the_lead_shuts_down():
    site = Site()
    site.ask(3)
    site.shuts = True
    assert not site.tick()
    with pytest.raises(BurstError, match="the daemon stops, or its lead"):
        Site().ask(3, lead=site.world().lead)
    site.shuts = False
    assert kinds(site.tick()) == ["ResizeBurst"]


def test_a_shrink_leaves_some_node_that_is_online():
    burst = but(online(), expected=frozenset({3}))
    with pytest.raises(BurstError, match=r"none of the first 1 nodes of .* joined"):
        Site(burst).ask(1)


@pytest.mark.parametrize(
    ("tables", "why"),
    [
        ({"limits": {"max_nodes": 3}}, "limit of 3 nodes in all"),
        ({"limits": {"max_nodes_per_burst": 3}}, "limit"),
        ({"limits": {"max_nodes_per_user": 3}}, "user"),
        ({"budget": [{"per": "day", "limit": 100.0}]}, "budget"),
        ({"budget": [{"limit": 0.01}]}, ": its limit is 0.01, and"),
    ],
)
def test_limits_and_budgets_hold_for_a_growth(tables, why):
    site = Site()
    site.records = recorded(leased(site.burst, userids=(100,)))
    site.tick()
    site.settings = settings(**tables)
    with pytest.raises(BurstError, match=f"cannot have 2 more nodes: .*({why})"):
        site.ask(4)
    site.settings = settings(budget=[{"per": "day", "limit": 1e6}])
    assert site.ask(4).nodes == 4


def test_only_ranks_that_nobody_has_and_nothing_is_on_are_taken():
    site = Site()
    above = but(LEASE, id="burst-0-bbbbbb", hosts=HOSTS[3:], ranks=(5,))
    other = but(online(), lease=above)
    site.records = recorded(online(), other)
    with pytest.raises(BurstError, match="has 1 free ranks above it, and 2"):
        site.ask(4)
    assert site.ask(3).nodes == 3
    for unfit in ({"drained": {4: "broken"}}, {"excluded": frozenset({4})}):
        site = Site()
        lead = view(online=site.online, **unfit)
        with pytest.raises(BurstError, match="has 1 free ranks above it, and 2"):
            site.ask(4, lead=lead)
    site = Site()
    site.records = recorded(online(), unreadable={"burst/burst-0-cccccc": "garbled"})
    with pytest.raises(BurstError, match="has 0 free ranks"):
        site.ask(4)


def test_ranks_of_a_slot_with_a_gateway_or_of_no_slot_are_not_taken():
    site = Site()
    lead = identity()
    entries = (*lead.bootstrap.hosts, HostEntry(host="burst-0-3", parent="burst-0-0"))
    bootstrap = but(lead.bootstrap, hosts=entries)
    through = but(lead, bootstrap=bootstrap)
    for slots in (find_slots(through), ()):
        with pytest.raises(BurstError, match="has 0 free ranks"):
            site.ask(4, slots=slots)


def test_it_never_was_there_before_its_provider_was_called():
    assert cost(Records(), run(), NOW) == 0.0
    burst = apply(run(*UP), Event(NOW, "grown", {"hosts": "a", "ranks": "1-2"}))
    assert "2 ranks" in burst.quarantined
    burst = apply(run(*UP, "grow"), Event(NOW, "shrink-start", {"ranks": "4"}))
    assert "does not shrink" in burst.quarantined


def test_nodes_on_which_a_job_is_about_to_start_do_not_leave():
    """Others would be bought for it."""
    site = Site()
    site.jobs = {1: (), 8: (), 9: (3,)}
    burst = apply(site.burst, Event(NOW, "assign", {"jobs": {"8": T0, "9": T0}}))
    # Job 8 is one that the lead does not show, and 9 one that runs.
    site.records = recorded(apply(burst, Event(NOW, "assign", {"jobs": {"7": T0}})))
    jobs = site.world().lead
    assert jobs is not None
    views = [
        job(1, whole(2)),
        job(9, whole(1), state=JobState.RUN, ranks=frozenset({3})),
        job(7, None, unreadable="odd"),
    ]
    lead = view(*views, online=[0, 1, 2, 3])
    with pytest.raises(BurstError, match="is to start on nodes that would leave"):
        site.ask(1, lead=lead)
    views[0] = job(1, whole(1))
    assert site.ask(1, lead=view(*views, online=[0, 1, 2, 3])).nodes == 1


class Counted(tuple[int, ...]):
    """Ranks that count how often they are gone through."""

    times = 0

    def __iter__(self):
        self.times += 1
        return super().__iter__()


def test_what_a_large_burst_may_grow_by_is_found_without_its_ranks_for_each():
    lead = identity(hosts="lead-0,burst-0-[0-99]")
    ranks = Counted((1, 2))
    burst = leased(online(), hosts=("burst-0-0", "burst-0-1"), ranks=ranks)
    seen = view(online=[0], lead=lead)
    found = free_above(burst, find_slots(lead), Records(), seen)
    assert found == frozenset(range(3, 101))
    assert ranks.times <= 2
