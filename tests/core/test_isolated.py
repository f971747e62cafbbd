# SPDX-License-Identifier: MIT
"""Isolated bursts, by the engine's turns: once, ended here, and gone there."""

from __future__ import annotations

import math

import msgspec
import pytest

from burst.core import commands, isolated, lifecycle, reconcile
from burst.core.facts import Word
from burst.core.isolated import Far, Turn
from burst.core.memo import memo
from burst.core.orphans import is_harmless
from burst.core.report import explain, find_isolated, status
from burst.core.room import find_room
from burst.core.world import Books
from burst.errors import InsufficientCapacity, LeadError, Refused
from burst.model.burst import BurstId, Isolated, Lease, Result, State
from burst.model.event import Event
from burst.model.hold import HoldState
from burst.model.jobid import JobId, format_f58
from burst.model.lead import JobState
from burst.model.program import Program
from burst.model.reason import Reason, Verdict
from burst.model.request import Wish
from burst.provider import Failure
from burst.shell.act import make_spec
from burst.testing import FakeProvider
from tests.build import NODE, T0, identity, whole
from tests.fakes import FakeLead
from tests.sim import Sim

ALONE = Wish(mode="isolated", wait=0)
BOTH = ("joined", "isolated")


@pytest.fixture
def sim():
    return Sim(modes=BOTH)


def submit(sim, nodes=3, **changes):
    return sim.lead.submit(whole(nodes), **{"wish": ALONE, **changes})


def over(sim):
    return sim.in_state(State.INACTIVE)


def reason(sim, job):
    """Why the job ended."""
    (found,) = [text for what, number, text in sim.lead.log if number == job]
    return found


def test_a_job_runs_there_once_and_is_ended_here(sim):
    job = submit(sim)
    sim.until(over(sim))
    sim.tick()
    burst = sim.burst
    assert sim.cloud.begun == [burst.id]
    assert sim.cloud.bursts == {}
    assert sim.names() == [
        *("submit", "provision-start", "finish", "job-finish", "reaped"),
    ]
    assert (burst.result, burst.exit_status) == (Result.COMPLETED, 0)
    assert reason(sim, job) == f"ran in isolated burst {burst.id}: exit status 0"
    told = sim.lead.memos[job]
    assert told["state"] == "exit 0"
    assert told["output"] == "done\n"
    assert told["burst"] == burst.id
    assert sim.engine.snapshot.books.outputs == {burst.id: "done\n"}
    assert sim.lead.online == {0, 1}
    assert burst.lease.ranks == ()
    assert burst.lease.hosts == tuple(f"{burst.id}-{n}" for n in range(3))


def test_it_is_not_begun_before_flux_cannot_start_the_job(sim):
    sim.lead.deaf = True
    submit(sim)
    sim.tick(20)
    assert sim.state() is State.NEW
    assert sim.cloud.begun == []
    sim.lead.deaf = False
    sim.until(lambda: sim.cloud.begun)


def test_what_is_held_must_have_been_for_a_moment(sim):
    submit(sim)
    sim.tick(seconds=0.3)
    sim.tick(3, seconds=0.3)
    assert sim.state() is State.NEW
    held = sim.engine.snapshot.books
    assert isolated.next_begin(held, sim.now) > sim.now
    assert isolated.next_begin(Books(), sim.now) == math.inf
    sim.tick(3, seconds=0.3)
    assert sim.state() is not State.NEW


def test_a_job_that_cannot_be_held_is_given_up():
    sim = Sim(modes=BOTH, deadlines={"provision": "5s"})
    sim.lead.deaf = True
    submit(sim)
    sim.tick(12)
    assert sim.names(sim.bursts[0])[-2:] == ["exception", "reaped"]
    assert sim.bursts[0].exception == "not-held"
    assert sim.bursts[0].result is Result.CANCELED
    assert sim.cloud.begun == []


@pytest.mark.parametrize("code", [0, 3])
def test_the_exit_status_comes_back(sim, code):
    sim.provider.ends_with = code
    job = submit(sim)
    sim.until(over(sim))
    assert sim.burst.exit_status == code
    assert reason(sim, job).endswith(f": exit status {code}")


def test_what_it_writes_may_be_anything(sim):
    sim.provider.writes = "a\0b\n" + "x" * 2000
    job = submit(sim)
    sim.until(over(sim))
    assert sim.engine.snapshot.books.outputs[sim.burst.id].startswith("a\ufffdb\n")
    assert sim.lead.memos[job]["output"] == "x" * 1000


def test_a_job_is_told_how_far_it_is_and_stays_held(sim):
    sim.provider.ends_with = None
    sim.provider.starts_after = 3
    job = submit(sim)
    sim.until(sim.in_state(State.PROVISION))
    assert sim.lead.memos[job]["state"] == "isolated new"
    sim.until(sim.in_state(State.ONLINE))
    sim.tick(3)
    assert sim.lead.memos[job]["state"] == "isolated online"
    assert sim.lead.jobs[job].urgency == 0
    verdict = sim.engine.snapshot.verdicts[job]
    assert verdict.reason is Reason.ELSEWHERE
    books, world = sim.engine.snapshot.books, sim.engine.snapshot.world
    assert find_room(books, world.lead, share=True) == []
    (row,) = status(books, world, (), sim.now)["bursts"]
    assert row["online"] == row["nodes"] == 3
    assert row["isolated"] == "job"
    assert row["access"] == f"shell {sim.burst.id}-0"
    told = explain(books, world, {}, job)
    assert told
    assert told["bursts"][0]["id"] == sim.burst.id
    assert sim.lead.lent == []


@pytest.mark.parametrize("mode", ["queue", "scheduler"])
def test_it_is_held_in_every_mode(mode):
    sim = Sim(modes=BOTH, intake={"mode": mode})
    queue = {"queue": "burst"} if mode == "queue" else {}
    job = submit(sim, **queue)
    sim.until(over(sim))
    sim.tick()
    assert reason(sim, job).endswith("exit status 0")
    assert sim.cloud.begun == [sim.burst.id]


def test_it_is_not_for_this_instance_however_small_it_is(sim):
    job = submit(sim, nodes=1, urgency=0, wish=Wish(mode="isolated", urgency=16))
    sim.until(over(sim))
    sim.tick()
    assert reason(sim, job).endswith("exit status 0")


def test_an_unreadable_lead_does_not_lose_the_end(sim):
    job = submit(sim)
    sim.until(lambda: sim.cloud.begun)
    sim.lead.unreadable = True
    sim.tick(5)
    assert sim.state() is State.REAP
    sim.lead.unreadable = False
    sim.until(over(sim))
    sim.tick()
    assert reason(sim, job).endswith("exit status 0")
    assert sim.burst.jobs == frozenset()


def test_an_unreadable_lead_begins_nothing(sim):
    submit(sim)
    sim.until(sim.in_state(State.NEW))
    sim.lead.unreadable = True
    sim.tick(5)
    assert sim.state() is State.NEW


def test_a_job_that_is_gone_ends_its_burst(sim):
    sim.provider.ends_with = None
    job = submit(sim)
    sim.until(sim.in_state(State.ONLINE))
    sim.lead.finish(job, "canceled")
    sim.until(over(sim))
    assert sim.burst.result is Result.CANCELED
    assert sim.lead.log == []


def test_a_job_that_is_gone_at_once_has_nothing_begun(sim):
    job = submit(sim)
    sim.until(sim.in_state(State.NEW), seconds=0.1)
    sim.lead.finish(job, "canceled")
    sim.until(over(sim))
    assert sim.cloud.begun == []


def test_a_job_that_its_user_takes_back_runs_here_alone(sim):
    sim.provider.ends_with = None
    job = submit(sim)
    sim.until(sim.in_state(State.ONLINE))
    sim.lead.change(job, urgency=16)
    sim.joins = False
    sim.meet = lambda: sim.lead.online.add(2)
    sim.until(over(sim))
    sim.tick(5)
    assert sim.burst.exception == "not-held"
    assert sim.lead.log == []
    assert sim.lead.jobs[job].state is JobState.RUN
    assert len(sim.bursts) == 1


def test_a_job_taken_back_that_cannot_start_here_gets_no_other(sim):
    sim.provider.ends_with = None
    job = submit(sim)
    sim.until(sim.in_state(State.ONLINE))
    sim.lead.change(job, urgency=16)
    sim.until(over(sim))
    sim.tick(5)
    assert len(sim.bursts) == 1
    refusals = sim.engine.snapshot.verdicts[job].refusals
    assert [refusal.reason for refusal in refusals] == [Reason.STARTABLE]


def test_a_job_that_flux_has_started_all_the_same_ends_its_burst(sim):
    sim.provider.ends_with = None
    job = submit(sim)
    sim.until(sim.in_state(State.ONLINE))
    sim.lead.change(job, state=JobState.RUN, t_start=sim.now)
    sim.until(over(sim))
    assert sim.burst.exception == "not-held"
    assert sim.lead.jobs[job].state is JobState.RUN


def test_without_capacity_it_is_tried_again(sim):
    sim.provider.next_provision_error = InsufficientCapacity("no quota")
    job = submit(sim)
    sim.until(lambda: len(sim.bursts) == 1 and sim.burst.exception == "capacity")
    sim.tick(3)
    assert sim.lead.log == []
    sim.until(lambda: len(sim.bursts) == 2, turns=700)
    sim.until(over(sim))
    assert sim.cloud.begun == [sim.bursts[1].id]
    sim.tick()
    assert reason(sim, job).endswith("exit status 0")


def test_what_failed_is_not_known_not_to_have_run(sim):
    sim.provider.next_provision_error = Refused("credentials expired", "renew them")
    job = submit(sim)
    sim.until(over(sim))
    sim.tick(3)
    assert len(sim.bursts) == 1
    assert reason(sim, job) == (
        f"was to run in isolated burst {sim.burst.id}, of which it is not known how far"
        " it came: refused: credentials expired; renew them"
    )
    assert sim.lead.memos[job]["state"] == "refused"


@pytest.mark.parametrize("capacity", [False, True])
def test_failed_while_it_runs_it_is_not_run_again(sim, capacity):
    sim.provider.ends_with = None
    job = submit(sim)
    sim.until(sim.in_state(State.ONLINE))
    failure = Failure.CAPACITY if capacity else Failure.OTHER
    sim.provider.fail(sim.burst.id, "node lost", failure)
    sim.until(over(sim))
    sim.tick(3)
    assert len(sim.bursts) == 1
    assert sim.burst.exception == "failed"
    assert "node lost" in reason(sim, job)


def test_a_late_word_on_capacity_is_no_proof_that_it_did_not_run(sim):
    sim.provider.ends_with = None
    job = submit(sim)
    sim.until(sim.in_state(State.ONLINE))
    context = {"type": "capacity", "severity": 0, "note": "none to be had"}
    assert lifecycle.apply(sim.burst, Event(sim.now, "exception", context)).spent
    assert job in sim.burst.jobs


def test_a_job_that_is_ending_is_not_ended_again(sim):
    job = submit(sim)
    sim.until(sim.in_state(State.PROVISION))
    sim.lead.unreadable = True
    sim.until(sim.in_state(State.REAP))
    sim.lead.change(job, state=JobState.CLEANUP)
    sim.lead.unreadable = False
    sim.until(over(sim))
    assert sim.lead.log == []


def test_failed_before_it_is_up_counts_against_its_offer(sim):
    sim.provider.starts_only = 0
    submit(sim)
    sim.until(sim.in_state(State.PROVISION))
    sim.tick()
    sim.provider.fail(sim.burst.id, "no node", Failure.CAPACITY)
    sim.until(over(sim))
    assert sim.burst.exception == "capacity"
    health = sim.engine.snapshot.books.health["local"]
    assert health.offers["nodes"].failures == 1


def test_vanished_it_is_not_run_again(sim):
    sim.provider.ends_with = None
    job = submit(sim)
    sim.until(sim.in_state(State.ONLINE))
    sim.provider.lose(sim.burst.id)
    sim.until(over(sim))
    sim.tick()
    assert "has nothing of it" in reason(sim, job)


def test_every_wait_has_its_deadline():
    limits = {"provision": "20s", "join": "20s", "run": "30s"}
    for knob, why in (
        ({"starts_only": 0}, "not all followers were started within 20s"),
        ({"ends_with": None}, "what it runs did not end within"),
    ):
        sim = Sim(modes=BOTH, deadlines=limits)
        for key, value in knob.items():
            setattr(sim.provider, key, value)
        job = submit(sim)
        sim.until(over(sim), turns=200)
        sim.tick()
        assert sim.burst.result is Result.TIMEOUT
        assert why in reason(sim, job)


def test_an_instance_that_does_not_come_up_has_a_deadline(sim):
    class Slow(FakeProvider):
        def _instance(self, burst, phase):
            found = super()._instance(burst, phase)
            return msgspec.structs.replace(found, online=False, exit_status=None)

    sim.provider.__class__ = Slow
    job = submit(sim)
    sim.until(sim.in_state(State.JOIN))
    sim.until(over(sim), turns=400)
    sim.tick()
    why = "its own instance was not up within 5m: its provider does not say why"
    assert reason(sim, job).endswith(why)


def test_the_jobs_own_limit_comes_before_the_sites(sim):
    sim.provider.ends_with = None
    submit(sim, duration=10.0)
    sim.until(sim.in_state(State.ONLINE))
    due = isolated.run_until(sim.burst, sim.settings)
    assert due == sim.burst.since + 10.0 + isolated.LATE
    assert isolated.next_change(sim.burst, sim.settings) == due


def ask(sim, demand):
    future = sim.engine.post(
        lambda books, world, settings, now: commands.burst_ahead(
            books, world, settings, demand, now
        )
    )
    sim.tick()
    return future.result(0)


def take_down(sim, burst, note):
    def command(books, _world, _settings, now):
        return commands.bring_down(books, burst, note, now), None

    return sim.engine.post(command)


def test_one_without_a_job_stays_until_it_is_taken_down(sim):
    sim.tick(2)
    wanted = Isolated(kind="interactive")
    for _ in range(2):
        demand = commands.request_isolated(2, "", wanted)
        assert ask(sim, demand).reason is Reason.PROPOSED
    assert len({burst.id for burst in sim.bursts}) == 2
    sim.until(lambda: all(b.state is State.ONLINE for b in sim.bursts))
    assert isolated.next_change(sim.bursts[0], sim.settings) == math.inf
    sim.tick(1000)
    assert {b.state for b in sim.bursts} == {State.ONLINE}
    down = sim.bursts[0].id
    future = take_down(sim, down, "enough")
    sim.until(lambda: sim.bursts[0].state is State.INACTIVE)
    assert future.done()
    assert sim.bursts[0].result is Result.CANCELED
    assert sim.bursts[1].state is State.ONLINE


def test_two_of_one_moment_have_two_names(sim):
    sim.tick(2)
    demand = commands.request_isolated(1, "", Isolated(kind="interactive"))
    for _ in range(2):
        sim.engine.post(
            lambda books, world, settings, now: commands.burst_ahead(
                books, world, settings, demand, now
            )
        )
    sim.tick()
    assert len({burst.id for burst in sim.bursts}) == 2


def test_a_lease_ends_it():
    sim = Sim(modes=BOTH, deadlines={"lease": "40s", "drain": "30s"})
    sim.tick(2)
    ask(sim, commands.request_isolated(1, "", Isolated(kind="service")))
    sim.until(sim.in_state(State.ONLINE))
    sim.until(over(sim), turns=100)
    assert sim.burst.result is Result.TIMEOUT
    assert sim.burst.since - sim.burst.lease.created >= 40


def test_a_command_runs_without_a_job(sim):
    sim.tick(2)
    wanted = Isolated(kind="command", command=("hostname",))
    ask(sim, commands.request_isolated(2, "local", wanted))
    sim.until(over(sim))
    assert sim.burst.exit_status == 0
    books = sim.engine.snapshot.books
    assert find_isolated(books, sim.burst.id) == sim.burst


def test_limits_hold_for_it():
    sim = Sim(modes=BOTH, limits={"max_bursts": 1, "max_nodes_per_user": 4})
    sim.provider.ends_with = None
    first, second = submit(sim), submit(sim, urgency=20)
    sim.until(sim.in_state(State.ONLINE))
    verdict = sim.engine.snapshot.verdicts[first]
    assert [r.reason for r in verdict.refusals] == [Reason.LIMIT_BURSTS]
    assert sim.burst.jobs == {second}
    large = submit(sim, nodes=5)
    sim.tick(2)
    assert sim.engine.snapshot.verdicts[large].reason is Reason.TURNED_DOWN


def test_the_users_own_limit_holds_for_it():
    sim = Sim(modes=BOTH, limits={"max_nodes_per_user": 4})
    sim.provider.ends_with = None
    submit(sim)
    second = submit(sim)
    sim.until(sim.in_state(State.ONLINE))
    verdict = sim.engine.snapshot.verdicts[second]
    assert [r.reason for r in verdict.refusals] == [Reason.LIMIT_USER]


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        (whole(9), Reason.FEW_NODES),
        (whole(3, cores_per_slot=NODE.cores + 1), Reason.OFFER_SMALL),
    ],
)
def test_what_an_offer_does_not_have_is_said(sim, request_, why):
    job = sim.lead.submit(request_, wish=ALONE)
    sim.tick(4)
    verdict = sim.engine.snapshot.verdicts[job]
    assert verdict.reason is Reason.TURNED_DOWN
    assert [refusal.reason for refusal in verdict.refusals] == [why]


@pytest.mark.parametrize(
    ("modes", "mode", "why"),
    [
        (("joined",), "isolated", Reason.NOT_ISOLATED),
        (("isolated",), "joined", Reason.NOT_JOINED),
    ],
)
def test_a_job_gets_the_mode_that_it_asks_for_or_none(modes, mode, why):
    sim = Sim(modes=modes)
    job = submit(sim, wish=Wish(mode=mode, wait=0))
    sim.tick(4)
    verdict = sim.engine.snapshot.verdicts[job]
    assert [refusal.reason for refusal in verdict.refusals] == [why]
    assert sim.bursts == []


def test_a_provider_has_a_mode_of_its_own():
    sim = Sim(modes=("isolated", "joined"))
    submit(sim, wish=Wish(wait=0))
    sim.until(over(sim))
    assert sim.burst.lease.isolated
    joined = submit(sim, wish=Wish(mode="joined", wait=0))
    sim.until(lambda: joined in sim.lead.running())


def test_it_needs_neither_rank_slots_nor_an_address():
    for known in (identity("lead-[0-1]"), identity(endpoint="")):
        sim = Sim(FakeLead(known=known), modes=BOTH)
        job = submit(sim)
        other = sim.lead.submit(whole(4), wish=Wish(mode="joined"))
        sim.until(over(sim))
        sim.tick()
        assert reason(sim, job).endswith("exit status 0")
        verdict = sim.engine.snapshot.verdicts[other]
        assert verdict.reason in (Reason.NO_ADDRESS, Reason.NO_SLOTS)


def test_a_record_that_is_lost_may_be_of_any_job(sim):
    sim.lead.disk.records["burst/burst-iso-abcdef"] = "{"
    sim.boot()
    job = submit(sim)
    sim.tick(4)
    (refusal,) = sim.engine.snapshot.verdicts[job].refusals
    assert "burst/burst-iso-abcdef cannot be read" in refusal.text()


def test_a_restart_goes_on_with_it_wherever_it_was():
    for turns in range(1, 12):
        sim = Sim(modes=BOTH)
        sim.provider.starts_after = 1
        sim.provider.runs_for = 2
        job = submit(sim)
        sim.tick(turns)
        knobs = sim.provider.starts_after, sim.provider.runs_for
        sim.boot()
        sim.provider.starts_after, sim.provider.runs_for = knobs
        sim.until(over(sim))
        sim.tick()
        assert len(sim.cloud.begun) == 1, sim.story()
        assert reason(sim, job).endswith("exit status 0")


def test_one_that_is_quarantined_keeps_its_job(sim):
    sim.provider.ends_with = None
    job = submit(sim)
    sim.until(sim.in_state(State.ONLINE))
    books = sim.engine.snapshot.books
    made = msgspec.structs.replace(sim.burst, quarantined="odd")
    verdict = isolated.elsewhere(made)
    assert verdict.reason is Reason.UNSURE
    assert "odd" in verdict.text()
    assert made.spent
    assert books.holds[job].state is HoldState.HELD


def test_what_was_not_asked_for_is_quarantined_and_can_be_taken_down(sim):
    sim.lead.deaf = True
    job = submit(sim)
    sim.tick(2)
    sim.provider.provision(spec_of(sim))
    sim.until(lambda: sim.burst.quarantined)
    sim.lead.deaf = False
    sim.tick(3)
    assert sim.engine.snapshot.verdicts[job].reason is Reason.UNSURE
    take_down(sim, sim.burst.id, "odd")
    sim.until(over(sim))
    sim.tick()
    assert reason(sim, job).endswith("canceled: odd")
    assert len(sim.bursts) == 1


def spec_of(sim):
    """What the provider would be asked for."""
    return make_spec(sim.burst, sim.lead.known, Program(kind="interactive"))


def test_what_a_job_owes_is_kept_with_its_record(sim):
    job = submit(sim)
    sim.until(over(sim))
    sim.tick()
    first = sim.burst.id
    for _ in range(reconcile.KEPT_ENDED):
        submit(sim)
        sim.until(over(sim))
        sim.tick()
    assert first not in sim.engine.snapshot.books.bursts
    assert first not in sim.engine.snapshot.books.outputs
    assert f"output/{first}" not in sim.lead.disk.records
    assert find_isolated(sim.engine.snapshot.books, str(job)) is None


def test_it_is_found_by_its_job(sim):
    job = submit(sim)
    sim.until(over(sim))
    books = sim.engine.snapshot.books
    assert find_isolated(books, format_f58(job)) == sim.burst
    assert find_isolated(books, "!") is None
    joined = sim.lead.submit(whole(3), wish=Wish(mode="joined"))
    sim.until(lambda: joined in sim.lead.running())
    assert find_isolated(sim.engine.snapshot.books, sim.bursts[-1].id) is None


def test_a_jobspec_that_cannot_be_read_begins_nothing(sim):
    def gone(job):
        raise LeadError("no such job")

    sim.lead.jobspec = gone
    submit(sim)
    sim.tick(5)
    assert sim.state() is State.PROVISION
    assert sim.cloud.begun == []


TURNS = [
    (State.NEW, Word.UNREAD, Far.UNREAD, Turn.WAIT),
    (State.NEW, Word.RUNNING, Far.STARTING, None),
    (State.PROVISION, Word.PENDING, Far.STARTING, Turn.WAIT),
    (State.PROVISION, Word.PENDING, Far.ONLINE, Turn.STARTED),
    (State.PROVISION, Word.RUNNING, Far.STARTING, Turn.STARTED),
    (State.PROVISION, Word.FAILED, Far.FINISHED, Turn.FINISHED),
    (State.PROVISION, Word.UNREAD, Far.FINISHED, Turn.WAIT),
    (State.PROVISION, Word.ABSENT, Far.UNREAD, Turn.VANISHED),
    (State.JOIN, Word.RUNNING, Far.STARTING, Turn.WAIT),
    (State.JOIN, Word.RUNNING, Far.ONLINE, Turn.ONLINE),
    (State.JOIN, Word.ENDING, Far.ONLINE, Turn.ENDED),
    (State.ONLINE, Word.PENDING, Far.STARTING, Turn.WAIT),
    (State.ONLINE, Word.RUNNING, Far.ONLINE, Turn.WAIT),
    (State.ONLINE, Word.FAILED, Far.STARTING, Turn.BROKE),
    (State.ONLINE, Word.RUNNING, Far.FINISHED, Turn.FINISHED),
    (State.REAP, Word.FAILED, Far.FINISHED, Turn.WAIT),
    (State.INACTIVE, Word.ABSENT, Far.UNREAD, Turn.WAIT),
]


@pytest.mark.parametrize(("state", "word", "far", "what"), TURNS)
def test_what_the_facts_say(state, word, far, what):
    assert isolated.turn(state, word, far) is what


def test_the_memo_of_a_job_that_ran_is_that_of_its_end():
    facts = {"burst": "burst-iso-1", "how": "exit status 0", "word": "exit 0"}
    verdict = Verdict(Reason.RAN, facts)
    assert memo(verdict) == {
        "state": "exit 0",
        "why": "ran in isolated burst burst-iso-1: exit status 0",
    }


def test_an_event_without_a_status_quarantines():
    lease = Lease(
        id=BurstId("burst-iso-1"),
        provider="p",
        offer="o",
        slot="",
        hosts=("a",),
        ranks=(),
        shape=NODE,
        isolated=Isolated(kind="job", job=JobId(1)),
    )
    burst = lifecycle.begin(lease, {JobId(1): T0}, T0)
    burst = lifecycle.apply(burst, Event(T0, "provision-start", {}))
    assert lifecycle.apply(burst, Event(T0, "finish", {})).quarantined


def test_what_no_record_explains_is_not_deleted_by_itself():
    sim = Sim(modes=BOTH, daemon={"orphans": "reap"})
    sim.provider.ends_with = None
    submit(sim)
    sim.until(sim.in_state(State.ONLINE))
    for key in list(sim.lead.disk.records):
        if key.startswith("burst/"):
            del sim.lead.disk.records[key]
    sim.lead.jobs.clear()
    sim.boot()
    sim.provider.ends_with = None
    sim.tick(200)
    (orphan,) = sim.engine.snapshot.orphans
    assert orphan.isolated
    assert not is_harmless(orphan, sim.engine.snapshot.world)
    assert len(sim.cloud.bursts) == 1
