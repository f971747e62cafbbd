# SPDX-License-Identifier: MIT
"""What took a follower away is recorded, told, and kept for jobs that were there."""

import pytest

from burst.core.burst_story import sentence
from burst.core.guest_view import OWNER_SEES, records_for_guests
from burst.core.losses import last_event, taken_from
from burst.core.report import burst_note
from burst.errors import Transient
from burst.model.burst import WITH_LEAD, Burst, Isolated, JobTimes, Result, State
from burst.model.decision import clock_time
from burst.model.event import Event
from burst.model.jobid import JobId
from burst.model.lead import JobState
from burst.provider import FollowerStatus, Phase
from burst.runtime.service_answers import explain
from tests.builders import LENT, T0, but, job, whole
from tests.core.isolation import submit
from tests.lifecycles import LEASE
from tests.sim import Sim

WHY = "was evicted, as when a node is drained"
UNKNOWN = "the cause is not known yet"


def running():
    """Two jobs run on two nodes each of a burst."""
    sim = Sim(deadlines={"rejoin": "20s", "join": "30s"})
    sim.boot()
    sim.tick(2)
    first = sim.run_job(whole(4), userid=1)
    sim.lead.finish(first)
    lent = whole(2, constraint=LENT)
    jobs = [sim.lead.submit(lent, userid=1) for _ in range(2)]
    sim.until(lambda: all(sim.lead.jobs[j].state is JobState.RUN for j in jobs))
    return sim, jobs


def restart_lead(sim):
    sim.lead.known = but(sim.lead.known, started=sim.now)
    sim.boot()


def note(sim):
    return burst_note(sim.burst, sim.engine.snapshot.world)


def the_loss(sim):
    event = last_event(sim.burst, "lost")
    assert event is not None
    return event


def test_an_eviction_is_told_while_it_lasts_and_to_its_job_for_ever():
    sim, jobs = running()
    host = sim.burst.lease.hosts[0]
    victim = next(j for j in jobs if sim.burst.lease.ranks[0] in sim.lead.jobs[j].ranks)
    (innocent,) = set(jobs) - {victim}
    # The lead sees it first.
    sim.provider.lose(sim.burst.id, [host])
    sim.tick(1)
    assert sim.lead.jobs[victim].result == "failed"
    assert sentence(the_loss(sim)) == f"it lost rank 2: {UNKNOWN}"
    since = sim.burst.lost_since
    sim.provider.evict(sim.burst.id, host, WHY)
    sim.tick(3)
    assert sim.burst.lost_since == since
    assert sentence(the_loss(sim)) == f"it lost rank 2: {host} {WHY}"
    assert sim.names().count("lost") == 1
    assert note(sim) == f"{WHY}; it is not up yet"
    told = f"it ended: failed; burst {sim.burst.id}: {host} {WHY}"
    assert sim.explained(victim)["why"] == told
    # Another one is started in its stead.
    sim.provider.restore(sim.burst.id)
    sim.tick(3)
    assert sim.burst.lost_since is None
    assert sim.burst.state is State.ONLINE
    assert note(sim) == ""
    sim.boot()
    sim.tick(2)
    assert sim.explained(victim)["why"] == told
    assert sim.lead.jobs[innocent].state is JobState.RUN
    assert "evicted" not in sim.explained(innocent)["why"]


@pytest.mark.parametrize("replaced", [True, False])
def test_a_follower_that_ends_leaves_the_jobs_on_others(replaced):
    """Where it is not started again the burst is drained, and they go on to their end.

    The reason of its end has what took the follower away.
    """
    sim, jobs = running()
    burst, host = sim.burst.id, sim.burst.lease.hosts[3]
    rank = sim.burst.lease.ranks[3]
    (innocent,) = (j for j in jobs if rank not in sim.lead.jobs[j].ranks)
    if replaced:
        sim.provider.evict(burst, host, WHY)
    else:
        sim.provider.end(burst, host)
    for _ in range(30):
        sim.tick(1)
        assert sim.lead.jobs[innocent].state is JobState.RUN
        assert sim.cloud.bursts, "it was reaped under a job"
    ended = sim.records.bursts[burst]
    assert ended.state is State.REAP
    words = f"{host} {WHY}; ranks were lost" if replaced else "its broker has ended"
    assert words in ended.events[-2].context["note"] + ended.events[-1].context.get(
        "note", ""
    )
    sim.lead.finish(innocent)
    sim.until(lambda: not sim.records.bursts[burst].live)
    assert not sim.cloud.bursts


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((WHY, f"{WHY} too", WHY), f"burst-0-[0,2] {WHY}; burst-0-1 {WHY} too"),
        # What looks like hosts is none.
        (
            ("has ended; [ was taken", "was taken"),
            "burst-0-0 has ended; [ was taken; burst-0-1 was taken",
        ),
    ],
)
def test_hosts_that_went_one_by_one_for_the_same_are_told_at_once(words, told):
    sim, _ = running()
    for host, why in zip(sim.burst.lease.hosts, words, strict=False):
        sim.provider.evict(sim.burst.id, host, why)
        sim.tick(2)
    assert the_loss(sim).context["note"] == told


def test_hosts_that_went_in_another_order_are_told_in_theirs():
    sim, _ = running()
    for host in reversed(sim.burst.lease.hosts[:2]):
        sim.provider.evict(sim.burst.id, host, WHY)
        sim.tick(2)
    assert the_loss(sim).context["note"] == f"burst-0-[0-1] {WHY}"


def test_a_lead_that_was_started_again_is_told_as_what_took_them_away():
    sim, jobs = running()
    burst, hosts = sim.burst.id, sim.burst.lease.hosts
    sim.provider.lose(burst, hosts[1:])
    restart_lead(sim)
    sim.tick(3)
    words = "had to join again, as the lead was restarted"
    assert the_loss(sim).context["note"] == f"burst-0-[1-3] {words}"
    assert any(words in sim.explained(job)["why"] for job in jobs)
    # What the provider knows of it counts more.
    sim.provider.evict(burst, hosts[0], WHY)
    sim.tick(2)
    assert the_loss(sim).context["note"].endswith(f"; {hosts[0]} {WHY}")


@pytest.mark.parametrize("anew", [True, False])
def test_a_lead_that_was_started_again_has_no_offer_set_aside(anew):
    sim = Sim()
    sim.joins = False
    sim.boot()
    sim.tick(2)
    job = sim.lead.submit(whole(4), userid=1)
    sim.until(lambda: bool(sim.bursts) and sim.burst.state is State.JOIN)
    first = sim.burst.id
    sim.provider.fail(first, "its log is empty")
    sim.joins = True
    if anew:
        restart_lead(sim)
    sim.tick(20)
    told = next(b for b in sim.bursts if b.id == first).events
    notes = [event.context.get("note", "") for event in told]
    assert any("the lead was restarted" in each for each in notes) == anew
    # The next burst is made at once.
    assert (len(sim.bursts) > 1) == anew
    assert (sim.lead.jobs[job].state is JobState.RUN) == anew


@pytest.mark.parametrize("again", [True, False])
def test_a_burst_that_ended_with_its_lead_has_not_failed(again):
    sim, _ = running()
    first = sim.burst.id
    sim.lead.shuts = not again
    if again:
        restart_lead(sim)
    sim.provider.lose(first, sim.burst.lease.hosts[1:])
    sim.tick(1)
    words = "join again, as the lead was restarted" if again else "end, as the lead"
    assert words in the_loss(sim).context["note"]
    sim.provider.fail(first, "its log is empty")
    sim.tick(4)
    ended = next(b for b in sim.bursts if b.id == first)
    [event] = [event for event in ended.events if event.name == "exception"]
    note = event.context["note"]
    assert note == "its followers ended when the lead ended: its log is empty"
    assert ended.result is Result.CANCELED
    # Its provider's words are not for guests.
    guests = records_for_guests(sim.records).bursts[first]
    assert OWNER_SEES in [event.context.get("note") for event in guests.events]


def test_what_is_deleted_as_its_lead_ends_has_not_failed():
    sim, _ = running()
    sim.lead.shuts = True
    sim.provider.lose(sim.burst.id, sim.burst.lease.hosts)
    sim.until(lambda: sim.burst.exception != "")
    event = next(event for event in sim.burst.events if event.name == "exception")
    assert event.context["note"] == "its followers ended when the lead ended"


def test_what_ends_with_its_lead_before_it_has_joined_has_not_failed():
    sim = Sim(nodes=4)
    sim.joins = False
    sim.lead.submit(whole(2, constraint=LENT))
    sim.until(sim.in_state(State.JOIN))
    sim.lead.shuts = True
    sim.provider.fail(sim.burst.id, "its broker has ended")
    sim.until(lambda: sim.burst.exception != "")
    sim.tick(3)
    # None is made for the job now, and each offer is tried after the lead's start.
    assert [each.exception for each in sim.bursts] == [WITH_LEAD]
    assert not sim.records.health


@pytest.mark.parametrize("state", [State.NEW, State.PROVISION])
def test_what_was_not_made_yet_is_not_made_while_the_lead_shuts_down(state):
    isolated = state is State.NEW
    sim = Sim(nodes=4, modes=("isolated",) if isolated else ("joined",))
    sim.provider.next_provision_error = Transient("the API is busy")
    submit(sim) if isolated else sim.lead.submit(whole(2, constraint=LENT))
    sim.until(sim.in_state(state))
    sim.lead.shuts = True
    sim.tick(30)
    assert sim.state() is state
    assert not sim.provider.observe()
    sim.lead.shuts = False
    sim.until(sim.provider.observe)


def test_what_is_lost_later_is_not_lost_by_an_earlier_start_of_the_lead():
    sim, _ = running()
    restart_lead(sim)
    sim.tick(2, seconds=400.0)
    sim.provider.lose(sim.burst.id, sim.burst.lease.hosts[1:])
    sim.tick(2)
    assert "note" not in the_loss(sim).context


@pytest.mark.parametrize(
    ("follower", "words"),
    [
        (None, "is not shown by its provider any more"),
        (Phase.ENDING, "is being deleted, and not by burst"),
    ],
)
def test_what_its_provider_does_not_explain_is_told_as_seen(follower, words):
    sim, _ = running()
    host = sim.burst.lease.hosts[3]
    seen = sim.provider.observe()[0].followers[:3]
    if follower:
        seen = (*seen, FollowerStatus(host, follower))
    honest = sim.provider.observe
    sim.provider.observe = lambda: [but(status, followers=seen) for status in honest()]
    sim.provider.lose(sim.burst.id, [host])
    sim.tick(3)
    assert the_loss(sim).context["note"].endswith(words)


JOB = JobId(1)


@pytest.mark.parametrize("joins", [True, False])
def test_after_a_pause_of_the_lead_followers_have_all_their_time_to_rejoin(joins):
    """The lead saw that they were gone before it was stopped."""
    sim, _ = running()
    sim.joins = False
    for rank in sim.burst.lease.ranks:
        sim.lead.lose(rank)
    sim.tick(2)
    assert sim.burst.lost_since is not None
    sim.now += 200.0
    restart_lead(sim)
    sim.tick()
    assert sim.state() is State.ONLINE
    until = clock_time(sim.lead.known.started + 20.0)
    told = explain(sim.engine.snapshot, sim.burst.id)["next"]
    assert f"within 2m ({until})" in told
    sim.joins = joins
    sim.tick(18)
    assert sim.state() is State.ONLINE
    assert ("back" in sim.names()) == joins
    sim.tick(3)
    assert (sim.burst.exception == "lost") != joins


def test_a_lead_that_started_while_its_clock_was_ahead_keeps_no_lost_burst():
    sim, _ = running()
    sim.lead.known = but(sim.lead.known, started=sim.now + 6 * 3600)
    sim.boot()
    sim.joins = False
    for rank in sim.burst.lease.ranks:
        sim.lead.lose(rank)
    sim.until(sim.in_state(State.REAP), ticks=90)


@pytest.mark.parametrize(
    ("started", "ended", "context", "blamed"),
    [
        (1, None, {}, True),
        (None, None, {}, False),
        (101, None, {}, False),
        (1, (99, "failed"), {}, True),
        (1, (9, "failed"), {}, False),
        (1, (99, "completed"), {}, False),
        (1, None, {"note": ""}, False),
        (50, None, {"since": T0 + 40}, False),
    ],
)
def test_a_job_is_told_only_of_what_took_its_own_nodes(started, ended, context, blamed):
    at, result = ended or (None, "")
    began, over = (None if each is None else T0 + each for each in (started, at))
    times = JobTimes(submitted=T0, started=began, finished=over, result=result)
    told = {"ranks": "4", "note": "n-4 is gone", **context}
    events = (Event(T0 + 100, "lost", told),)
    burst = Burst(lease=LEASE, since=T0, times={JOB: times}, events=events)
    assert bool(taken_from(burst, JOB, None)) is blamed
    assert taken_from(but(burst, events=()), JOB, None) == ""


@pytest.mark.parametrize("back", [True, False])
def test_a_burst_that_ends_before_the_cause_of_its_loss_is_known_tells_why(back):
    times = JobTimes(submitted=T0, started=T0 + 1, finished=T0 + 99, result="failed")
    events = [Event(T0 + 100, "lost", {"ranks": "4"})]
    events += [Event(T0 + 105, "back", {"ranks": "4"})] if back else []
    ends = {"type": "failed", "severity": 0, "note": "its job there was canceled"}
    events.append(Event(T0 + 110, "exception", ends))
    burst = Burst(lease=LEASE, since=T0, times={JOB: times}, events=tuple(events))
    told = f"burst {burst.id}: its job there was canceled"
    assert taken_from(burst, JOB, None) == ("" if back else told)


def test_what_took_nodes_of_an_isolated_burst_took_none_of_a_job_that_ran_elsewhere():
    lease = but(LEASE, hosts=(), ranks=(), isolated=Isolated(kind="service"))
    events = (Event(T0 + 100, "reclaimed", {"note": "its VMs are gone", "ranks": ""}),)
    burst = Burst(lease=lease, since=T0, events=events)
    ran = {"ran_on": frozenset({0}), "t_start": T0 + 1, "t_finish": T0 + 99}
    view = job(1, whole(1), state=JobState.INACTIVE, result="failed", **ran)
    assert taken_from(burst, JOB, view) == ""


@pytest.mark.parametrize("back", [True, False])
def test_what_is_lost_of_a_burst_that_is_taken_down_is_kept_and_told(back):
    sim, jobs = running()
    host, rank = sim.burst.lease.hosts[0], sim.burst.lease.ranks[0]
    victim = next(j for j in jobs if rank in sim.lead.jobs[j].ranks)
    (innocent,) = set(jobs) - {victim}
    sim.take_down(sim.burst.id, "taken down by hand")
    sim.tick(2)
    assert sim.burst.state is State.DRAIN
    sim.provider.lose(sim.burst.id, [host])
    sim.tick(1)
    assert sim.burst.lost_since == sim.now
    assert note(sim).startswith("taken down by hand; jobs still run")
    sim.provider.evict(sim.burst.id, host, WHY)
    sim.tick(3)
    assert sentence(the_loss(sim)) == f"it lost rank 2: {host} {WHY}"
    assert f"taken down by hand; {host} {WHY}; jobs still run" in note(sim)
    told = f"it ended: failed; burst {sim.burst.id}: {host} {WHY}"
    assert sim.explained(victim)["why"] == told
    if back:
        sim.provider.restore(sim.burst.id)
        sim.tick(3)
        assert sim.burst.lost_since is None
        assert WHY not in note(sim)
    assert sim.burst.state is State.DRAIN
    assert sim.lead.jobs[innocent].state is JobState.RUN
    sim.lead.finish(innocent)
    sim.until(lambda: not sim.burst.live)
    assert sim.names().count("lost") == 1
    assert note(sim) == "taken down by hand"
    assert sim.explained(victim)["why"] == told
