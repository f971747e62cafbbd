# SPDX-License-Identifier: MIT

import pytest

from burst.core.burst_requests import make_requested_burst, request_nodes
from burst.core.commands import take_down_burst
from burst.core.lifecycle import quarantine
from burst.core.report import burst_row, status
from burst.core.tick import free_unused
from burst.errors import LeadGone, Refused, SpecRefused, StoreError, Transient
from burst.model.burst import Result, State
from burst.model.lead import JobState
from burst.model.reason import Reason
from burst.model.shape import Shape
from burst.provider import Failure
from tests.builders import but, identity, whole
from tests.fakes import FakeLead
from tests.sim import Sim

QUICK = {"idle": "5s", "join": "30s", "rejoin": "10s"}


def sim(**tables):
    """A lead at rest, whose provider has told its offers."""
    deadlines = {**QUICK, **tables.pop("deadlines", {})}
    return Sim.at_rest(deadlines=deadlines, provision="60s", **tables)


def test_a_job_goes_the_whole_way():
    s = sim()
    own = s.lead.submit(whole(2))
    job = s.lead.submit(whole(4))

    s.tick()
    assert s.lead.jobs[job].urgency == 0
    assert s.state() is State.PROVISION
    s.until(lambda: s.lead.running() == [own, job])
    assert s.lead.jobs[job].ranks == {2, 3, 4, 5}
    assert s.lead.memos[job]["state"] == "released"
    s.tick(20)
    assert s.state() is State.ONLINE
    s.end_job(job)
    s.tick(3)

    assert s.burst.result is Result.COMPLETED
    assert s.names() == [
        "submit",
        "provision-start",
        "job-hold",
        "joined",
        "provision-finish",
        "online",
        "job-release",
        "job-start",
        "job-finish",
        "idle",
        "drain",
        "drained",
        "reaped",
        "undrain",
    ]
    assert s.cloud.bursts == {}
    assert s.lead.drained == {}
    left = {"burst", "settled"}
    of_burst = {f"{kind}/{s.burst.id}" for kind in left}
    sums = {"ledger/1970-01-12", "times/local"}
    assert s.lead.disk.records.keys() == {"meta/schema"} | of_burst | sums


def test_a_job_waits_for_nodes_that_are_up_from_when_it_may_start():
    """Before, its begin time was not there yet, or what it depends on ran."""
    s = sim(intake={"local_wait": "10s"})
    s.lead.schedule = lambda: None
    job = s.lead.submit(whole(2))
    s.lead.change(job, state=JobState.DEPEND)
    s.tick(30)
    s.lead.change(job, state=JobState.SCHED, t_eligible=s.now)

    s.tick(9)
    assert s.bursts == []
    s.tick(3)
    assert s.burst.jobs == {job}


def test_a_memo_that_the_lead_dropped_is_sent_again():
    s = sim()
    job = s.lead.submit(whole(9))
    s.tick(3)
    told = s.lead.memos.pop(job)
    s.tick(3)
    assert s.lead.memos == {}, "nothing has changed"

    s.lead.change(job, memos_dropped=1)
    s.tick()

    assert s.lead.memos == {job: told}


def test_what_joins_after_the_deadline_gets_no_job():
    s = sim()
    s.joins = False
    s.provider.ends_after = 20
    job = s.lead.submit(whole(4))
    s.until(s.in_state(State.REAP), ticks=60)
    s.joins = True
    s.lead.change(job, urgency=16)
    s.tick(10)

    assert {2, 3, 4, 5} <= s.lead.online
    assert s.lead.running() == []
    s.until(s.in_state(State.INACTIVE))


def test_a_burst_that_vanishes_is_given_up():
    s = sim()
    s.lead.submit(whole(4))
    s.until(s.in_state(State.ONLINE))
    s.provider.lose(s.burst.id)
    s.until(s.in_state(State.INACTIVE))
    assert s.burst.result is Result.FAILED


@pytest.mark.parametrize(
    ("failure", "kind"), [(Failure.CAPACITY, "capacity"), (Failure.REFUSED, "spec")]
)
def test_a_burst_that_the_provider_calls_failed_is_given_up_with_its_words(
    failure, kind
):
    """And none like it is made where its place forbids it."""
    s = sim(plan={"spread": False})
    s.joins = False
    s.lead.submit(whole(4))
    s.tick(3)
    s.provider.fail(s.burst.id, "no such image", failure)
    s.until(s.in_state(State.INACTIVE))

    (context,) = [e.context for e in s.burst.events if e.name == "exception"]
    assert (context["type"], context["note"]) == (kind, "no such image")
    if failure is Failure.REFUSED:
        s.tick(5)
        ((key, refused),) = s.records.health["local"].rows.items()
        assert key.startswith("spec/")
        assert refused.why == "no such image"
        assert len(s.bursts) == 1


@pytest.mark.parametrize(("by_rule", "key"), [(True, "nodes//0"), (False, "0/4")])
def test_a_refusal_by_rule_is_of_the_offer_and_another_of_that_burst(by_rule, key):
    s = sim(plan={"spread": False})
    error = SpecRefused("no host ports here", "use none", by_rule=by_rule)
    s.provider.next_provision_error = error
    s.lead.submit(whole(4))
    s.until(lambda: bool(s.bursts) and not s.bursts[0].live)

    health = s.records.health["local"]
    (found,) = health.rows
    assert found.startswith("spec/")
    assert found.endswith(key)
    assert not health.disabled
    assert (s.bursts[0].result, s.bursts[0].exception) == (Result.FAILED, "spec")
    (why,) = [e.context["note"] for e in s.bursts[0].events if e.name == "exception"]
    assert why == "no host ports here; use none"


def down(burst):
    return lambda tx: take_down_burst(tx, burst, "a person said so")


@pytest.mark.parametrize("crash", [False, True])
def test_what_is_idle_is_taken_down_though_the_store_is_full(crash: bool):
    """And what waits gets nothing meanwhile; all is on record once there is room."""
    s = sim(deadlines={"idle": "5s"})
    job = s.run_job()
    s.lead.disk.full = True
    # It would be held, and get another burst.
    later = s.lead.submit(whole(4, constraint='{"hostlist":["burst-1-[0-3]"]}'))
    s.tick()
    s.lead.finish(job)
    s.until(lambda: not s.cloud.bursts)
    s.tick(5)
    assert len(s.bursts) == 1
    trouble = s.engine.snapshot.world.halt
    assert trouble
    assert "no space left; make room" in trouble.text()
    assert not s.cloud.bursts
    assert s.lead.jobs[later].urgency == 16
    if crash:
        s.boot()
        s.tick()
    s.lead.disk.full = False
    s.until(lambda: s.lead.running() == [later])
    assert s.engine.snapshot.world.halt is None
    # After a crash the first one is on record as online, until it is seen to be gone.
    s.until(lambda: s.bursts[0].state is State.INACTIVE)
    s.until(lambda: not s.lead.drained)
    assert s.bursts[1].state is State.ONLINE


def test_what_is_idle_is_taken_down_though_deciding_fails(caplog):
    """A job of which nobody thought keeps no daemon from ending what costs money."""
    s = sim(deadlines={"idle": "5s"})
    s.fails = True
    job = s.run_job()
    elsewhere = whole(4, constraint='{"hostlist":["burst-1-[0-3]"]}')
    strange = s.lead.submit(elsewhere, preferences=None)
    waits = s.lead.submit(elsewhere)
    s.tick()
    s.lead.finish(job)
    s.until(lambda: not s.cloud.bursts)
    halt = s.engine.snapshot.world.halt
    assert "deciding has failed since" in halt.text()
    assert "defect of burst" in halt.advice
    assert caplog.text.count("Traceback") == 1
    # It goes on as soon as it can.
    s.lead.fail_job(strange, "")
    s.until(lambda: s.lead.running() == [waits])
    assert s.engine.snapshot.world.halt is None


def test_a_lead_that_cannot_be_read_is_not_acted_on(caplog):
    caplog.set_level("INFO")
    s = sim()
    s.lead.submit(whole(4))
    s.until(s.in_state(State.ONLINE))
    s.lead.unreadable = True
    calls = len(s.lead.log)
    s.tick(100)

    assert s.state() is State.ONLINE
    assert len(s.lead.log) == calls
    assert s.engine.snapshot.world.trouble == "job manager is reloading"
    assert s.engine.snapshot.world.unread == 0
    s.lead.unreadable = False
    # For how long it could not be read is noted once it can be.
    s.tick()
    assert s.engine.snapshot.world.unread == 101
    s.tick()
    assert s.engine.snapshot.world.unread == 0
    assert caplog.text.count("the lead cannot be read: job manager is") == 1
    assert "the lead can be read again" in caplog.text
    s.lead.gone = True
    with pytest.raises(LeadGone):
        s.tick()


def test_while_the_store_is_full_the_last_decisions_on_unchanged_jobs_stand():
    s = sim()
    same, changed = (s.lead.submit(whole(9)) for _ in range(2))
    s.tick(3)
    before = s.engine.snapshot.decisions
    assert {same, changed} <= before.keys()
    s.lead.disk.full = True
    s.lead.submit(whole(4))
    s.lead.change(changed, urgency=7)
    s.tick()
    assert s.engine.snapshot.world.halt
    assert s.engine.snapshot.decisions == {same: before[same]}


def test_a_quarantined_burst_is_left_alone_though_the_store_is_full():
    s = sim(deadlines={"idle": "5s"})
    job = s.run_job()
    s.lead.finish(job)
    odd = quarantine(s.burst, "odd", s.now)
    found = but(s.records, bursts={odd.id: odd})
    world = s.engine.snapshot.world
    freed = free_unused(found, world, s.settings, s.now + 99)
    assert freed.records.bursts[odd.id].state is State.ONLINE
    assert not freed.actions


def test_a_person_takes_a_burst_down_though_the_store_is_full():
    s = sim()
    job = s.run_job()
    s.lead.finish(job)
    s.tick(2)
    s.lead.disk.full = True
    s.tick()
    made = request(s, 2)
    gone = s.engine.post(down(s.burst.id))
    s.tick()
    with pytest.raises(StoreError):
        made.result(0)
    gone.result(0)
    s.until(lambda: not s.cloud.bursts)


def test_an_answer_is_concluded_once_though_the_store_was_full():
    s = sim(capacity=2)
    s.lead.submit(whole(4))
    s.tick()
    s.lead.disk.full = True
    s.tick()
    s.lead.disk.full = False
    s.until(s.in_state(State.INACTIVE))

    health = s.records.health["local"]
    assert health.rows["offer/nodes"].failures == 1


def test_a_lead_without_an_address_cannot_burst():
    s = Sim(lead=FakeLead(known=but(identity(), endpoint="")))
    job = s.lead.submit(whole(4))
    s.tick(2)

    assert "its address is not known" in str(s.lead.memos[job]["why"])


def request(s, nodes):
    """What `burst request` does."""
    demand = request_nodes(nodes)
    return s.engine.post(lambda tx: make_requested_burst(tx, demand)[0])


def test_a_burst_that_is_requested_is_provisioned_once_and_seen_at_once():
    """`burst request` looks at its burst as soon as it knows its name."""
    s = sim()
    asked = request(s, 2)
    seen = []
    asked.add_done_callback(lambda _: seen.extend(s.bursts))
    s.tick()
    assert [burst.id for burst in seen] == [s.burst.id]
    s.until(s.in_state(State.ONLINE))
    assert asked.result().reason is Reason.PROPOSED
    calls = [call for call in s.provider.calls if call.method == "provision"]
    assert [call.burst_id for call in calls] == [s.burst.id]


def test_a_request_goes_by_what_the_provider_has_just_answered():
    """Else nodes are asked of one that has refused, or is tried by another burst."""
    s = sim()
    first = request(s, 2)
    s.tick()
    s.provider.next_provision_error = Refused("no quota", "ask for more")
    second = request(s, 2)
    s.tick()
    assert first.result().reason is Reason.PROPOSED
    (refusal,) = second.result().refusals
    assert refusal.reason is Reason.DISABLED
    assert len(s.bursts) == 1


def test_a_job_that_started_elsewhere_leaves_its_burst_which_ends_at_once():
    """Its user gave it its urgency back while the burst was on the way."""
    s = sim(deadlines={"idle": "1h"}, intake={"local_wait": "5s"})
    own = s.lead.submit(whole(2))
    s.tick()
    s.joins = False
    job = s.lead.submit(whole(2))
    s.until(s.in_state(State.JOIN))
    s.lead.finish(own)
    s.lead.change(job, urgency=16)
    s.tick(2)

    assert s.lead.jobs[job].ranks == {0, 1}
    assert (s.burst.jobs, s.burst.served) == (set(), False)
    s.until(s.in_state(State.INACTIVE))
    assert s.burst.result is Result.CANCELED
    assert s.lead.jobs[job].state is JobState.RUN


@pytest.mark.parametrize("leave", ["cancel", "elsewhere"])
def test_an_online_burst_that_never_served_ends_as_soon_as_nobody_needs_it(leave):
    s = sim(deadlines={"idle": "1h"})
    own = s.lead.submit(whole(2))
    s.tick()
    s.lead.schedule, schedule = lambda: None, s.lead.schedule
    job = s.lead.submit(whole(2))
    s.until(s.in_state(State.ONLINE))
    if leave == "cancel":
        s.lead.finish(job, "canceled")
    else:
        s.lead.finish(own)
        s.lead.change(job, state=JobState.RUN, ranks=frozenset({0, 1}), t_start=s.now)
    s.lead.schedule = schedule
    s.tick()

    assert s.state() is State.DRAIN
    assert s.burst.result is Result.CANCELED
    s.until(s.in_state(State.INACTIVE))


def test_the_lead_is_read_again_at_once_where_a_job_may_be_starting():
    s = sim()
    s.lead.submit(whole(2))
    s.tick()
    s.lead.schedule = lambda: None
    job = s.lead.submit(whole(1))
    s.lead.granting = {0: Shape(2)}

    due = s.engine.tick(s.now)

    assert due - s.now < 0.02
    assert s.bursts == []
    s.lead.granting = {}
    s.engine.tick(s.now)
    assert s.burst.jobs == {job}


def test_whatever_a_command_raises_is_its_callers_answer():
    s = sim()

    def boom(*_):
        raise RecursionError("too deep")

    failed = s.engine.post(boom)
    asked = request(s, 2)
    s.tick()

    assert isinstance(failed.exception(0), RecursionError)
    assert asked.result(0).reason is Reason.PROPOSED
    assert s.state() is State.PROVISION


def row_of(s):
    """What `burst status` has of the burst."""
    return burst_row(s.burst, s.engine.snapshot.world, s.now)


def test_the_provider_says_what_a_burst_waits_for_until_that_is_over():
    s = sim()
    words = "the cloud is down for a moment"
    s.provider.next_provision_error = Transient(words)
    s.provider.starts_after = 20
    job = s.lead.submit(whole(4))
    s.tick(3)
    assert row_of(s)["note"] == words
    assert s.told(job).endswith(f"0 of 4 nodes online: {words}")

    s.tick(12)
    assert row_of(s)["note"] == "not up yet"
    assert s.told(job).endswith("0 of 4 nodes online: not up yet")

    s.until(lambda: s.lead.running() == [job])
    assert row_of(s)["note"] == ""
    last = s.engine.snapshot
    (provider,) = status(last.records, last.world, (), {}, s.now)["providers"]
    assert provider["trouble"] == ""


def test_thousands_of_jobs_are_failed_a_portion_a_tick():
    s = sim(intake={"mode": "scheduler"}, total=8)
    jobs = [s.lead.submit(whole(9)) for _ in range(250)]
    other = s.lead.submit(whole(4))

    s.tick()
    assert len(s.lead.log) == 100
    assert s.state() is State.PROVISION, "others are not kept waiting"
    s.tick(2)
    assert {job for _, job, _ in s.lead.log} == set(jobs)
    s.until(lambda: s.lead.jobs[other].state is JobState.RUN)
