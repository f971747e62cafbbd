# SPDX-License-Identifier: MIT
"""Housekeeping on lent nodes: named, idle, and ended after its deadline."""

import signal

import pytest

from burst.core import commands
from burst.core.report import burst_note
from burst.errors import BurstError
from burst.model.burst import BurstId, Result, State
from burst.model.decision import exact_moment
from burst.model.lead import JobState
from tests.builders import LENT, whole
from tests.runtime.asking import Asking
from tests.sim import Sim

LIMITS = {"idle": "20s", "drain": "1h", "rejoin": "1000s", "housekeeping": "50s"}
TABLES = {"deadlines": LIMITS}
LENT_RANKS = tuple(range(2, 10))
TERM, KILL = int(signal.SIGTERM), int(signal.SIGKILL)


@pytest.fixture
def s() -> Sim:
    sim = Sim(**TABLES)
    sim.lead.cleans = LENT_RANKS
    return sim


def clean_after_a_job(s: Sim, nodes: int = 3) -> None:
    """Have housekeeping run on all nodes of a burst."""
    job = s.run_job(whole(nodes, constraint=LENT))
    s.tick()
    s.lead.finish(job)
    s.tick()
    assert set(s.lead.housekeeping) == {2, 3, 4}


def note(s: Sim) -> str:
    return burst_note(s.burst, s.engine.snapshot.world)


def test_it_is_named_and_counts_as_idle(s):
    clean_after_a_job(s)
    began = s.lead.housekeeping[2]
    assert note(s) == (
        "Flux's housekeeping has been running on ranks 2-4 since"
        f" {exact_moment(began)}, and no job runs there (flux housekeeping list);"
        f" housekeeping is ended at {exact_moment(began + 50)}"
    )
    assert s.burst.idle_since is not None
    s.until(s.in_state(State.DRAIN))
    s.tick()
    assert "idle for 20s; Flux's housekeeping has been running on ranks 2-4" in note(s)
    assert "jobs" not in note(s)


def test_it_is_ended_after_its_deadline_and_the_burst_goes(s):
    clean_after_a_job(s)
    s.until(lambda: s.lead.signals)
    assert s.lead.signals == [(frozenset({2, 3, 4}), TERM)]
    s.until(s.in_state(State.INACTIVE))
    assert s.burst.result is Result.COMPLETED
    (told,) = [e for e in s.burst.events if e.name == "housekeeping-kill"]
    assert told.context["ranks"] == "2-4"
    why = "longer than 50s; it is sent SIGTERM"
    assert why in told.context["note"]


@pytest.mark.parametrize("fatal", [(KILL,), ()], ids=["SIGKILL ends it", "none does"])
def test_what_ignores_sigterm_is_killed_and_waited_for_no_longer(s, fatal):
    s.lead.fatal_signals = fatal
    clean_after_a_job(s)
    s.until(s.in_state(State.INACTIVE), ticks=300)
    assert [signum for _, signum in s.lead.signals][:2] == [TERM, KILL]
    assert len(s.lead.signals) == 2 or not fatal


def test_an_epilog_that_does_not_end_is_named_and_waited_for_until_the_deadline(s):
    job = s.run_job(whole(3, constraint=LENT))
    s.tick()
    began = s.now
    epilog = {"job-manager.epilog": began}
    s.lead.change(job, state=JobState.CLEANUP, t_finish=began, epilogs=epilog)
    s.lead.epilogs = dict.fromkeys((2, 3, 4), began)
    s.tick()
    said = (
        f"an epilog has been running on ranks 2-4 since {exact_moment(began)}, and its"
        " job has ended (flux jobs -f cleanup); a burst that is taken down waits for it"
        f" until {exact_moment(began + 50)}"
    )
    assert note(s) == said
    s.until(s.in_state(State.DRAIN))
    s.tick()
    assert note(s) == f"idle for 20s; {said}"
    assert s.now - began < 50
    s.until(s.in_state(State.INACTIVE))
    assert s.now - began > 50
    assert s.lead.signals == []
    assert s.burst.result is Result.COMPLETED


def test_on_an_own_node_it_is_left_alone(s):
    s.lead.housekeeping = {0: s.now}
    s.tick(200)
    assert s.lead.signals == []


def test_a_job_beside_it_makes_the_burst_busy(s):
    clean_after_a_job(s)
    job = s.lead.submit(whole(1, constraint=LENT))
    s.lead.housekeeping.pop(2)
    s.until(lambda: bool(s.lead.jobs[job].ranks))
    s.tick(2)
    assert s.burst.idle_since is None
    s.take_down(s.burst.id)
    s.tick(2)
    assert "jobs still run on rank 2; they are not killed" in note(s)


def forcing(nodes: int = 3) -> tuple[Asking, str]:
    asking = Asking(**TABLES)
    (burst,) = asking.ask("request", nodes=nodes)["bursts"]
    asking.sim.until(asking.sim.in_state(State.ONLINE))
    return asking, burst


def test_force_ends_it_at_once(s):
    asking, burst = forcing()
    lead = asking.sim.lead
    lead.housekeeping = dict.fromkeys((2, 3, 4), asking.sim.now)
    asking.sim.tick()
    lead.fatal_signals = (KILL,)
    assert asking.ask("down", burst=burst, force=True) == {"burst": burst}
    assert lead.signals == [(frozenset({2, 3, 4}), TERM)]
    asking.sim.tick(50)
    assert [signum for _, signum in lead.signals] == [TERM]
    asking.sim.until(asking.sim.in_state(State.INACTIVE), ticks=40)
    assert [signum for _, signum in lead.signals] == [TERM, KILL]


def test_force_is_refused_where_there_is_none():
    asking, burst = forcing()
    with pytest.raises(BurstError, match="waits for every host"):
        asking.ask("down", burst=burst, force=True)


def test_nothing_is_known_of_a_lead_that_cannot_be_read():
    sim = Sim(**TABLES)
    sim.lead.submit(whole(3, constraint=LENT))
    sim.until(sim.in_state(State.ONLINE))
    sim.lead.unreadable = True
    sim.tick()
    world = sim.engine.snapshot.world
    assert not commands.has_housekeeping(sim.records, sim.burst.id, world)
    assert not commands.has_housekeeping(sim.records, BurstId("x"), world)


def test_what_was_sent_a_signal_is_told_when_the_next_comes(s):
    s.lead.fatal_signals = ()
    clean_after_a_job(s)
    began = s.lead.housekeeping[2]
    s.until(lambda: s.lead.signals)
    sent = s.now
    s.tick()
    assert note(s).endswith(
        "Flux's housekeeping has been running on ranks 2-4 since"
        f" {exact_moment(began)}, and no job runs there (flux housekeeping list);"
        " housekeeping was sent a"
        f" signal at {exact_moment(sent)}, and is sent SIGKILL at"
        f" {exact_moment(sent + 60)} if it has not ended"
    )
    s.until(lambda: len(s.lead.signals) == 2)
    assert s.lead.signals[-1][1] == KILL
    assert sent + 60 <= s.now < sent + 65
    # What runs later is none of that.
    s.lead.housekeeping = {3: s.now}
    s.tick()
    assert f"running on rank 3 since {exact_moment(s.now - 1)}" in note(s)
    assert "sent a signal" not in note(s)
