# SPDX-License-Identifier: MIT
"""A released job that Flux does not start gives up its burst, which is not kept."""

import pytest

from burst.core.commands import release_jobs
from burst.core.jobs.assignments import end_late_bursts, expire_assignments
from burst.core.lifecycle import apply, begin
from burst.core.records import Records, Transaction
from burst.model.burst import Result, State
from burst.model.event import Event
from burst.model.hold import HoldState
from burst.model.jobid import JobId
from burst.model.lead import QueueView
from burst.model.reason import Reason
from tests.builders import LENT, T0, but, settings, view, whole, world
from tests.builders import job as job_view
from tests.lifecycles import LEASE, leased, run
from tests.sim import Sim

LIMIT = {"release": "5m", "idle": "1m"}


def sim(**tables):
    s = Sim(deadlines=LIMIT, **tables)
    s.tick(2)
    return s


def hold_of(s, job):
    return s.records.holds[job]


def why(s, job):
    return s.decision(job).reason


@pytest.mark.parametrize("mode", ["hold", "scheduler"])
def test_a_job_that_is_not_started_leaves_its_burst_and_is_tried_again_later(mode):
    s = sim(intake={"mode": mode})
    s.lead.schedule = lambda: None
    job = s.lead.submit(whole(4))
    s.until(s.in_state(State.ONLINE))
    s.tick(58, seconds=5.0)
    assert why(s, job) is Reason.RELEASED
    s.tick(4, seconds=5.0)

    assert why(s, job) is Reason.NOT_STARTED
    assert s.lead.memos[job]["state"] == "not-started"
    s.until(s.in_state(State.INACTIVE))
    assert s.lead.jobs[job].urgency == (0 if mode == "hold" else 16)
    tried = hold_of(s, job).expired
    s.until(lambda: len(s.bursts) == 2, seconds=10.0)
    assert s.now - tried >= tried - s.lead.jobs[job].t_submit
    s.tick(100, seconds=10.0)
    second = hold_of(s, job).expired
    assert second > tried
    s.until(lambda: len(s.bursts) == 3, ticks=200, seconds=10.0)
    assert s.now - second >= 2 * (tried - s.lead.jobs[job].t_submit)


def test_a_job_that_was_just_assigned_has_its_time_on_an_old_burst():
    s = sim()
    first = s.run_job(whole(4))
    s.tick(40, seconds=10.0)
    s.lead.finish(first)
    schedule, s.lead.schedule = s.lead.schedule, lambda: None
    job = s.lead.submit(whole(4, constraint=LENT))
    s.tick(100)
    assert s.burst.jobs == {job}
    s.lead.schedule = schedule
    s.tick()
    assert s.lead.running() == [job]


def test_a_queue_that_is_stopped_while_a_burst_comes_keeps_it_no_longer_than_that():
    s = sim()
    s.joins = False
    schedule, s.lead.schedule = s.lead.schedule, lambda: None
    job = s.lead.submit(whole(4), queue="")
    s.until(s.in_state(State.JOIN))
    s.lead.queues = {"": QueueView(started=False)}
    s.joins = True
    s.until(s.in_state(State.ONLINE))
    s.tick()
    assert why(s, job) is Reason.QUEUE_STOPPED
    assert hold_of(s, job).state is HoldState.RELEASED
    s.until(s.in_state(State.INACTIVE), seconds=10.0)
    s.tick(100, seconds=20.0)
    assert len(s.bursts) == 1
    s.lead.queues, s.lead.schedule = {}, schedule
    s.until(lambda: s.lead.running() == [job])


def test_jobs_in_the_stopped_queue_of_a_mode_that_was_changed_are_told():
    s = sim(intake={"mode": "queue"})
    s.joins = False
    job = s.lead.submit(whole(4), queue="burst")
    s.until(s.in_state(State.JOIN))
    s.tables["intake"] = {"mode": "hold"}
    s.lead.queues = {"burst": QueueView(started=False)}
    s.joins = True
    s.boot()
    s.tick(60, seconds=60)

    assert [burst.state for burst in s.bursts] == [State.INACTIVE]
    assert "its queue burst is stopped" in s.lead.memos[job]["why"]


def test_a_job_is_moved_into_no_queue_that_is_disabled_while_its_burst_comes():
    s = sim(intake={"mode": "queue"})
    moves = []
    move = s.lead.move

    def count_moves(queues, lent):
        moves.append(queues)
        return move(queues, lent)

    s.lead.move = count_moves
    s.joins = False
    s.lead.queues = {"burst": QueueView(started=False), "burst-ready": QueueView()}
    job = s.lead.submit(whole(4), queue="burst")
    s.until(s.in_state(State.JOIN))
    closed = QueueView(enabled=False, reason="maintenance")
    s.lead.queues = {**s.lead.queues, "burst-ready": closed}
    s.joins = True
    s.until(s.in_state(State.ONLINE))
    s.tick(20)

    assert moves == []
    assert why(s, job) is Reason.QUEUE_DISABLED
    assert "is disabled (maintenance)" in s.lead.memos[job]["why"]
    assert s.names().count("job-release") == 1
    s.lead.queues = {**s.lead.queues, "burst-ready": QueueView()}
    s.until(lambda: s.lead.running() == [job])
    assert moves == [{job: "burst-ready"}]
    assert len(s.bursts) == 1


# A user's own urgency.


def test_the_urgency_that_a_user_gives_a_released_job_survives_the_next_hold():
    s = sim()
    schedule, s.lead.schedule = s.lead.schedule, lambda: None
    job = s.lead.submit(whole(4))
    s.until(lambda: job in s.lead.memos and s.lead.memos[job]["state"] == "released")
    s.lead.change(job, urgency=10)
    s.tick(2)
    s.provider.lose(s.bursts[0].id)
    s.until(lambda: s.lead.jobs[job].urgency == 0, ticks=200)
    s.until(lambda: s.lead.jobs[job].urgency == 10, ticks=700)
    s.lead.schedule = schedule
    s.until(lambda: s.lead.running() == [job], ticks=60)


@pytest.mark.parametrize("mode", ["queue", "scheduler"])
def test_a_job_that_its_user_holds_gives_up_what_comes_for_it(mode):
    s = sim(intake={"mode": mode})
    job = s.lead.submit(whole(4), queue="burst" if mode == "queue" else "")
    s.until(s.in_state(State.PROVISION))
    s.lead.change(job, urgency=0)
    s.until(s.in_state(State.INACTIVE))
    assert why(s, job) is Reason.USER_HOLD

    s.lead.change(job, urgency=16)
    if mode == "scheduler":
        s.until(lambda: s.lead.running() == [job])


def test_a_job_that_was_let_go_keeps_its_burst_while_its_urgency_is_on_its_way():
    s = sim()
    job = s.lead.submit(whole(4))
    s.until(s.in_state(State.PROVISION))
    s.tick()
    s.lead.deaf = True
    s.engine.post(lambda tx: release_jobs(tx, [job]))
    s.joins = False
    s.tick(5)
    assert s.burst.jobs == {job}


def test_a_job_that_cannot_be_read_any_more_gives_up_its_burst():
    s = sim()
    job = s.lead.submit(whole(4))
    s.until(s.in_state(State.PROVISION))
    s.lead.change(job, request=None, unreadable="event alloc cannot be read")
    s.until(s.in_state(State.INACTIVE))


def test_a_job_whose_time_limit_becomes_longer_than_the_lease_leaves_the_burst():
    s = Sim(deadlines={"lease": "1h", "drain": "10m"})
    s.tick(2)
    job = s.lead.submit(whole(4), duration=60.0)
    s.until(s.in_state(State.PROVISION))
    s.lead.change(job, duration=86400.0)
    s.until(s.in_state(State.INACTIVE))
    assert why(s, job) is Reason.TOO_LONG
    assert s.lead.jobs[job].urgency == 0

    s.lead.change(job, duration=1800.0)
    s.until(lambda: s.lead.running() == [job])


def late(**tables):
    deadlines = {"join": "2h", "release": "1h", "rejoin": "1h"}
    its = {"deadlines": {"lease": "1h", "drain": "10m", **deadlines}, **tables}
    s = Sim(provision="2h", **its)
    s.tick(2)
    s.joins = False
    return s


def test_a_burst_that_comes_too_late_for_its_job_fails_and_its_offer_is_set_aside():
    """Started then, the job would be killed as the lease ends."""
    s = late()
    job = s.lead.submit(whole(4), duration=2400.0)
    s.until(s.in_state(State.JOIN))
    first = s.burst.id
    s.tick(ticks=19, seconds=60.0)
    assert s.records.bursts[first].state is State.JOIN
    s.tick(ticks=2, seconds=60.0)
    assert s.records.bursts[first].result is Result.TIMEOUT
    events = s.records.bursts[first].events
    [note] = [e.context["note"] for e in events if e.name == "exception"]
    assert note == "it came too late for its jobs: its lease ends in 40m"
    assert len(s.bursts) == 1, "the next would come as late"
    s.joins = True
    s.until(lambda: s.lead.running() == [job], ticks=200, seconds=60.0)
    [burst] = [each for each in s.live if job in each.jobs]
    assert burst.lease.end - s.now > 2400.0 - 60.0


def test_a_job_that_flux_does_not_start_leaves_before_its_lease_is_too_short():
    s = late()
    s.joins = True
    s.lead.schedule = lambda: None
    job = s.lead.submit(whole(4), duration=2400.0)
    s.until(s.in_state(State.ONLINE))
    s.tick(ticks=22, seconds=60.0)
    assert len(s.bursts) == 1, "Flux would not start it on another either"
    assert why(s, job) is Reason.NOT_STARTED
    assert hold_of(s, job).stood.startswith("it may run for 40m, and its lease ends in")


def test_an_offer_is_set_aside_where_no_job_starts_before_a_burst_is_drained():
    s = late()
    s.joins = True
    s.lead.schedule = lambda: None
    s.lead.submit(whole(4))
    s.until(s.in_state(State.ONLINE))
    s.tick(ticks=55, seconds=60.0)
    assert [burst.state for burst in s.bursts] == [State.INACTIVE]
    assert s.records.health["local"].rows["offer/nodes"].failures == 1


def two_jobs(now, **deadlines):
    """A transaction on a burst for jobs of 40 and of 10 minutes."""
    burst = begin(LEASE, {JobId(1): T0, JobId(2): T0}, T0)
    burst = apply(burst, Event(T0 + 1, "provision-start", {}))
    burst = leased(burst, created=T0, end=T0 + 3600.0)
    long = job_view(1, whole(1), duration=2400.0)
    brief = job_view(2, whole(1), duration=600.0)
    its = settings(deadlines=deadlines)
    seen = but(world(view(long, brief)), deadlines=its.deadlines)
    records = Records(bursts={burst.id: burst})
    return Transaction(records, seen, its, T0 + now), burst.id


def test_of_two_jobs_only_the_one_leaves_for_which_the_burst_comes_too_late():
    tx, burst = two_jobs(1260.0)
    end_late_bursts(tx)
    expire_assignments(tx)
    assert tx.bursts[burst].jobs == {JobId(2)}
    [(_, event)] = tx.events
    assert event.context["note"] == "it may run for 40m, and its lease ends in 39m"
    assert JobId(1) not in tx.holds, "it is given other nodes at once"


def test_a_burst_that_is_not_up_when_it_is_to_be_drained_fails():
    tx, burst = two_jobs(3400.0, drain="5m")
    end_late_bursts(tx)
    after = tx.bursts[burst]
    assert after.result is Result.TIMEOUT
    [event] = [each for each in after.events if each.name == "exception"]
    assert event.context["note"].startswith("it was not up by ")
    assert tx.health["local"].rows["offer/small"].failures == 1


def displaced(thief_wants, **thief):
    """A simulation in which one job has begun on the four nodes of another's burst."""
    s = sim()
    schedule, s.lead.schedule = s.lead.schedule, lambda: None
    first = s.lead.submit(whole(4), duration=600.0)
    s.until(s.in_state(State.ONLINE))
    # Flux has it before the daemon holds it.
    s.lead.change(first, urgency=0)
    other = s.lead.submit(thief_wants, **thief)
    schedule()
    assert s.lead.running() == [other]
    s.lead.change(first, urgency=16)
    s.lead.schedule = schedule
    return s, first, other


def test_a_job_whose_nodes_another_has_gets_others_at_once():
    s, first, other = displaced(whole(4), duration=600.0)
    s.until(lambda: s.lead.running() == [first, other], ticks=20)
    assert [burst.lease.nodes for burst in s.bursts] == [4, 2]
    assert s.lead.jobs[first].ranks == set(range(4, 8))


def test_a_job_that_is_not_pending_is_left_to_what_follows_jobs():
    """The lead may not show it any more; then it has ended."""
    burst = run("provision-start")
    records, seen = Records(bursts={burst.id: burst}), world(view())
    tx = Transaction(records, seen, settings(), T0 + 999)
    expire_assignments(tx)
    assert not tx.events
