# SPDX-License-Identifier: MIT
"""Why a job whose nodes are online does not start: what stands in its way."""

import pytest

from burst.core.jobs.hindrance import find_hindrance, is_displaced
from burst.core.plan.constraints import Constraints
from burst.model.burst import State
from burst.model.jobid import format_f58
from burst.model.lead import JobState, QueueView
from burst.model.reason import Reason
from burst.model.shape import Shape
from tests.builders import LENT, NODE, T0, identity, job, view, whole, world
from tests.builders import slots as cores
from tests.fakes import FakeLead
from tests.lifecycles import LEASE, run
from tests.sim import Sim

BURST = run("provision-start", "provision-finish", "online")
RANKS = frozenset(LEASE.ranks)
FACTS = {"by": " at 12:00:00", "ends": ""}
UP = {0, 1, *RANKS}
ADMITS = Constraints(identity())
FIRST, *_ = LEASE.ranks
ON_FIRST = '{"hostlist":["burst-0-0"]}'


def found(wanted, lead):
    return find_hindrance(wanted, [BURST], world(lead), ADMITS, FACTS)


def lead(*jobs, **changes):
    return view(*jobs, online=UP, **changes)


def test_nothing_where_its_nodes_are_free():
    wanted = job(5, whole(len(RANKS)))
    assert found(wanted, lead(wanted)) is None


@pytest.mark.parametrize("change", [{"urgency": 0}, {"state": JobState.PRIORITY}])
def test_nothing_where_flux_does_not_look_at_it_yet(change):
    wanted = job(5, whole(1), **change)
    assert found(wanted, lead(wanted, busy=RANKS)) is None


def test_priority_0():
    wanted = job(5, whole(1), priority=0)
    told = found(wanted, lead(wanted))
    assert told.reason is Reason.PRIORITY_ZERO
    assert "an administrator or a priority plugin" in told.text()
    assert "takes its nodes back at 12:00:00" in told.text()


def test_a_job_that_has_its_nodes():
    other = job(3, whole(1), state=JobState.RUN, ranks=RANKS)
    wanted = job(5, whole(1))
    told = found(wanted, lead(other, wanted, busy=RANKS))
    assert told.reason is Reason.NODES_TAKEN
    assert f" to job {format_f58(other.id)}; Flux" in told.text()
    assert format_f58(other.id) not in told.guests_text()
    assert " to another job; Flux" in told.guests_text()
    unknown = found(wanted, lead(wanted, busy=RANKS))
    assert " to a job that is not burstable" in unknown.text()


OTHER_SLOT = dict.fromkeys(range(6, 10), NODE)


@pytest.mark.parametrize(
    ("taken", "free", "displaced"),
    [
        ({}, {}, True),
        ({"duration": 60.0}, {}, False),  # ends in time
        ({"duration": 600.0}, {}, True),
        ({"ranks": frozenset(sorted(RANKS)[1:])}, {}, False),  # who has the first?
        ({}, OTHER_SLOT, False),  # Flux starts it there
    ],
)
def test_a_job_is_displaced_by_those_that_keep_its_nodes(taken, free, displaced):
    """What the lead shows as taken may be the job's own, if it began just now."""
    fields = {"state": JobState.RUN, "ranks": RANKS, "t_start": T0, **taken}
    other = job(3, whole(1), **fields)
    wanted = job(5, whole(1))
    seen = view(other, wanted, online=UP | free.keys(), allocated=RANKS, free={**free})
    ends = T0 + 300
    assert is_displaced(wanted, [BURST], world(seen), ADMITS, ends) is displaced


def test_free_nodes_that_its_constraint_excludes_are_of_no_use_to_a_job():
    """Not those of its burst, nor those of another."""
    other = job(3, whole(1), state=JobState.RUN, ranks={FIRST}, t_start=T0)
    wanted = job(5, whole(1, constraint=ON_FIRST))
    free = {**dict.fromkeys(RANKS - {FIRST}, NODE), **OTHER_SLOT}
    up = UP | OTHER_SLOT.keys()
    seen = view(other, wanted, online=up, allocated={FIRST}, free=free)
    told = found(wanted, seen)
    assert told.reason is Reason.NODES_TAKEN
    assert f"Flux has allocated rank {FIRST} to " in told.text()
    assert is_displaced(wanted, [BURST], world(seen), ADMITS, T0 + 300)
    assert found(wanted, view(wanted, online=UP)) is None


def test_a_drained_node_of_its_own_is_not_said_to_be_taken():
    wanted = job(5, whole(1, constraint=ON_FIRST))
    seen = lead(wanted, drained={FIRST: "a broken fan"})
    assert found(wanted, seen) is None
    assert not is_displaced(wanted, [BURST], world(seen), ADMITS, T0 + 300)


def test_many_jobs_are_counted():
    others = [job(n, cores(1), state=JobState.RUN, ranks=RANKS) for n in range(1, 6)]
    wanted = job(9, whole(1))
    told = found(wanted, lead(*others, wanted, busy=RANKS))
    assert "and 2 more; Flux" in told.text()


def test_room_beside_a_job_that_is_not_given():
    wanted = job(5, cores(1))
    free = dict.fromkeys(RANKS, Shape(NODE.cores - 1))
    told = found(wanted, lead(wanted, allocated=RANKS, free=free))
    assert told.reason is Reason.NODES_SHARED
    assert "the scheduler gives whole nodes (as Fluxion's lonodex)" in told.text()


def test_housekeeping():
    wanted = job(5, whole(1))
    cleaned = dict.fromkeys(RANKS, T0)
    told = found(wanted, lead(wanted, busy=RANKS, housekeeping=cleaned))
    assert told.reason is Reason.NODES_CLEANED
    assert "Flux starts it once housekeeping has ended" in told.text()


def test_jobs_ahead_of_it():
    wanted = job(5, whole(1))
    ahead = [job(3, whole(9)), job(7, whole(9), urgency=20)]
    behind = [job(6, whole(9)), job(2, whole(9), urgency=8)]
    told = found(wanted, lead(*ahead, *behind, wanted))
    assert told.reason is Reason.JOBS_AHEAD
    names = " ".join(format_f58(each.id) for each in ahead)
    assert f"it is queued behind jobs {names}" in told.text()


def test_a_job_in_a_stopped_queue_is_not_ahead_of_it():
    wanted = job(5, whole(1), queue="burst-ready")
    waits = job(3, whole(9), queue="burst")
    for started, expected in ((True, Reason.JOBS_AHEAD), (False, None)):
        queues = {"burst": QueueView(started=started), "burst-ready": QueueView()}
        told = found(wanted, lead(waits, wanted, queues=queues))
        assert (told and told.reason) is expected


class StuckLead(FakeLead):
    """Its scheduler starts nothing."""

    def schedule(self):
        """Start nothing."""


def stuck() -> Sim:
    s = Sim(StuckLead(), deadlines={"release": "1m", "idle": "1m"})
    s.tick(2)
    return s


@pytest.mark.parametrize(
    ("change", "stood"),
    [
        ({"priority": 0}, "its priority is 0, so Flux does not start it"),
        ({"state": JobState.PRIORITY}, "Flux has no priority for it yet"),
        ({}, "the cause is not known (flux jobs, flux resource list)"),
    ],
)
def test_what_stood_in_the_way_is_told_once_it_has_left(change, stood):
    s = stuck()
    number = s.lead.submit(whole(4, constraint=LENT))
    s.until(s.in_state(State.ONLINE))
    s.until(lambda: s.lead.jobs[number].urgency)
    s.tick(2)
    s.lead.change(number, **change)
    s.until(lambda: s.names().count("job-leave") or not s.burst.jobs, ticks=80)
    if "state" in change:
        s.lead.change(number, state=JobState.SCHED)
        s.tick()
    told = s.decision(number)
    assert told.reason is Reason.NOT_STARTED
    assert stood in told.text()
    assert told.next_step().startswith("the daemon tries it again at ")


def test_a_prolog_or_an_epilog_that_runs_is_named():
    s = Sim()
    number = s.lead.submit(whole(2))
    s.tick(2)
    s.lead.change(number, t_start=0.0, prologs={"job-manager.prolog": T0})
    s.tick()
    row = s.explained(number)
    assert row["why"].startswith(
        "its job-manager.prolog has been running on lead-[0-1] since "
    )
    assert row["next"].startswith("Flux starts it once the prolog has ended")
    s.lead.change(number, t_start=T0, epilogs={"job-manager.epilog": T0})
    s.tick()
    row = s.explained(number)
    assert "keeps lead-[0-1] while its job-manager.epilog runs" in row["why"]
    assert row["next"].startswith("Flux frees its nodes once the epilog has ended")
    s.lead.change(number, t_start=T0, prologs={}, epilogs={})
    s.tick()
    row = s.explained(number)
    assert row["verdict"] == "running"
