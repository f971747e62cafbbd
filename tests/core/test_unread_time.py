# SPDX-License-Identifier: MIT
"""While the lead is not read no deadline runs, and nothing is booked as work."""

import math
from typing import Any

import pytest

from burst.core.jobs.refusal_cache import RefusalCache
from burst.core.jobs.refusal_inputs import refusal_inputs
from burst.core.jobs.rules import RuleSet
from burst.core.lifecycle import apply, restore
from burst.core.plan.shortfall import Shortfall
from burst.core.records import RecordChanges, Records, Transaction
from burst.core.resizing import IdlePart
from burst.core.sync import postpone, postponed
from burst.model.burst import State
from burst.model.event import Event
from burst.model.hold import Hold, HoldState
from burst.model.jobid import JobId
from burst.model.record import decode_record, encode_record
from tests.builders import LENT, T0, but, settings, view, whole, world
from tests.lifecycles import LEASE, run
from tests.sim import Sim

THREE = whole(3, constraint=LENT)
JOIN = {"deadlines": {"join": "100s", "rejoin": "100s", "idle": "100s"}}
FOUR_HOURS = 4 * 3600.0


def reasons(sim: Sim) -> list[Any]:
    return [e.context.get("type") for e in sim.burst.events if e.name == "exception"]


def hangs(sim: Sim) -> None:
    """The lead hangs for hours; each tick finds that it does."""
    sim.lead.unreadable = True
    sim.tick(4, seconds=FOUR_HOURS / 4)
    sim.lead.unreadable = False


def stopped(sim: Sim) -> None:
    """The daemon gets no SIGCONT for hours; the lead goes on."""
    sim.now += FOUR_HOURS


def joining() -> Sim:
    """A burst whose followers do not join."""
    sim = Sim(**JOIN)
    sim.joins = False
    sim.lead.submit(THREE)
    sim.until(sim.in_state(State.JOIN))
    return sim


@pytest.mark.parametrize("away", [hangs, stopped])
def test_followers_have_the_rest_of_their_time_to_join(away: Any) -> None:
    sim = joining()
    sim.tick(50)
    away(sim)
    sim.tick(40)
    assert sim.state() is State.JOIN
    (told,) = [e for e in sim.burst.events if e.name == "unread"]
    assert told.context["note"].startswith("the lead was not read for 4h")
    sim.boot()
    sim.tick()
    assert sim.state() is State.JOIN, "a restart does not forget it"
    sim.tick(30)
    assert reasons(sim) == ["timeout"]


def test_a_tick_that_is_late_as_the_machine_is_busy_changes_no_deadline() -> None:
    sim = joining()
    for _ in range(10):
        sim.tick(seconds=20.0)
    assert reasons(sim) == ["timeout"]
    assert "unread" not in sim.names()


@pytest.mark.parametrize(
    "names", [("idle",), ("lost",), ("grow",), ("shrink", "shrink-start")]
)
def test_what_it_waits_for_begins_later_and_the_record_says_so(names):
    before = run("provision-start", "provision-finish", "online", *names)
    now = T0 + 1000.0
    tx = RecordChanges(Records(bursts={LEASE.id: before}), now)
    postpone(tx, 500.0)
    postpone(tx, 100.0)
    after = tx.bursts[LEASE.id]
    assert after.since == before.since + 600.0
    for name in ("unused_since", "lost_since"):
        known = getattr(before, name)
        assert getattr(after, name) == (known and known + 600.0)
    if before.resize:
        assert after.resize is not None
        assert after.resize.since == before.resize.since + 600.0
        called = before.resize.called
        assert after.resize.called == (called and called + 600.0)
    assert [e.name for e in after.events].count("unread") == 1
    assert restore(decode_record(encode_record(after)), after.times) == after
    postpone(tx, FOUR_HOURS)
    assert tx.bursts[LEASE.id].since == now, "never later than now"
    tx.quarantine(LEASE.id, "odd")
    kept = tx.bursts[LEASE.id]
    postpone(tx, FOUR_HOURS)
    assert tx.bursts[LEASE.id] is kept


def test_what_was_waited_for_and_is_there_is_not_waited_for_again() -> None:
    burst = run("provision-start", "provision-finish", "online", "idle", "lost")
    tx = RecordChanges(Records(bursts={LEASE.id: burst}), T0 + 100.0)
    postpone(tx, 50.0)
    burst = tx.bursts[LEASE.id]
    for name in ("busy", "back"):
        burst = apply(burst, Event(T0 + 101.0, name, {"ranks": "2-3"}))
    assert (burst.unused_since, burst.lost_since) == (None, None)
    assert restore(decode_record(encode_record(burst)), burst.times) == burst


def test_holds_and_what_no_record_has_begin_later_too() -> None:
    job = JobId(1)
    hold = Hold(urgency=16, state=HoldState.RELEASED, since=T0, letting=T0 + 1.0)
    tx = RecordChanges(Records(holds={job: hold}), T0 + 100.0)
    postpone(tx, 60.0)
    assert tx.holds[job].since == T0 + 60.0
    assert tx.holds[job].letting == T0 + 61.0
    its = settings()
    seen = world(view())
    tx = Transaction(Records(), seen, its, T0)
    inputs = refusal_inputs(tx, RuleSet(its.rules))
    waits, done = Shortfall(since=T0), Shortfall(expired=1)
    known = {job: waits, JobId(2): done}
    parts = {LEASE.id: IdlePart(1, T0)}
    cache = RefusalCache(inputs=inputs, shortfalls=known, idle_parts=parts)
    later = postponed(cache, 60.0, T0 + 100.0)
    moved = but(waits, since=T0 + 60.0)
    assert later.shortfalls == {job: moved, JobId(2): done}
    assert later.idle_parts == {LEASE.id: IdlePart(1, T0 + 60.0)}
    assert postponed(cache, math.inf, T0) is cache


@pytest.mark.parametrize("away", [hangs, stopped, Sim.boot])
def test_a_job_that_ended_meanwhile_is_not_booked_as_work(away: Any) -> None:
    """Two jobs were on the burst; Flux tells when each has ended, and one goes on."""
    sim = Sim(deadlines={"run": "9h", "idle": "9h"})
    jobs = [sim.lead.submit(whole(n, constraint=LENT)) for n in (4, 1)]
    sim.until(lambda: len(sim.lead.running()) == 2)
    sim.tick(10)
    away(sim)
    sim.now += FOUR_HOURS
    sim.lead.finish(jobs[0])
    ended = sim.lead.jobs[jobs[0]].t_start + 60.0
    sim.lead.change(jobs[0], t_finish=ended)
    sim.tick(2)
    entries = sim.records.entries.values()
    (entry,) = [each for each in entries if each.nodes == 4]
    assert entry.use.busy == 0
    assert entry.spent.work == pytest.approx(4 * 60.0, abs=8.0)


def hung_under_a_job() -> tuple[Sim, JobId]:
    """A lead that has hung for hours while a job had a burst of four nodes."""
    sim = Sim(deadlines={"run": "9h", "idle": "9h"})
    job: JobId = sim.run_job(whole(4, constraint=LENT))
    sim.tick(2)
    hangs(sim)
    return sim, job


def test_a_job_that_ended_just_now_is_booked_until_now() -> None:
    sim, job = hung_under_a_job()
    sim.lead.finish(job)
    sim.lead.change(job, t_finish=sim.now + 1.0)
    sim.tick(2)
    (entry,) = sim.records.entries.values()
    assert entry.spent.work == pytest.approx(4 * FOUR_HOURS, abs=40.0)


@pytest.mark.parametrize("goes_on", [True, False])
def test_what_is_not_known_is_booked_while_it_was_seen_or_is_still_there(*, goes_on):
    sim, job = hung_under_a_job()
    if goes_on:
        sim.lead.unmarked.add(job)  # it is another user's, and none of ours
        sim.lead.remembered = frozenset()
    else:
        del sim.lead.jobs[job]
    sim.tick(2)
    if goes_on:
        sim.lead.finish(job)
        sim.tick()
    (entry,) = sim.records.entries.values()
    work = 4 * FOUR_HOURS if goes_on else 0.0
    assert entry.spent.work == pytest.approx(work, abs=40.0)
