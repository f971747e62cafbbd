# SPDX-License-Identifier: MIT
"""Isolated bursts on record: restarts, lost records, what is seen of them."""

from __future__ import annotations

import msgspec
import pytest

from burst.core import isolated, lifecycle, tick
from burst.core.isolated import Far, Turn
from burst.core.job_memo import memo
from burst.core.observation import Word
from burst.core.orphans import is_harmless
from burst.core.report import find_isolated
from burst.errors import LeadError
from burst.model.burst import BurstId, Isolated, Lease, State
from burst.model.decision import Decision
from burst.model.event import Event
from burst.model.hold import HoldState
from burst.model.jobid import JobId, format_f58
from burst.model.reason import Reason
from burst.model.request import Wish
from tests.builders import NODE, T0, whole
from tests.core.isolation import (
    BOTH,
    over,
    reason,
    spec_of,
    submit,
    take_down,
)
from tests.sim import Sim


@pytest.fixture
def sim():
    return Sim(modes=BOTH)


def test_a_record_that_is_lost_may_be_of_any_job(sim):
    sim.lead.disk.records["burst/burst-iso-abcdef"] = "{"
    sim.boot()
    job = submit(sim)
    sim.tick(4)
    (refusal,) = sim.engine.snapshot.decisions[job].refusals
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
    assert verdict.reason is Reason.ISOLATED_QUARANTINED
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
    assert sim.engine.snapshot.decisions[job].reason is Reason.ISOLATED_QUARANTINED
    take_down(sim, sim.burst.id, "odd")
    sim.until(over(sim))
    sim.tick()
    assert reason(sim, job).endswith("canceled: odd")
    assert len(sim.bursts) == 1


def test_what_a_job_owes_is_kept_with_its_record(sim):
    job = submit(sim)
    sim.until(over(sim))
    sim.tick()
    first = sim.burst.id
    for _ in range(tick.KEPT_ENDED):
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
    verdict = Decision(Reason.ISOLATED_DONE, facts)
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
