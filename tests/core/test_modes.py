# SPDX-License-Identifier: MIT
"""How jobs come in, and what users wish: queue, scheduler, `flux submit --burst`."""

import pytest

from burst.core.actions import FailJob, HoldJobs, MoveJobs, ReleaseJobs
from burst.core.jobs.confinement import rank_leases
from burst.core.records import Records
from burst.core.tick import run_tick
from burst.model.hold import Hold, HoldState
from burst.model.jobid import JobId
from burst.model.lead import JobState, LeasedRanks, QueueView
from burst.model.reason import Reason
from burst.model.request import BurstPreferences, parse_request
from burst.model.scheduler import FLUXION, Scheduler
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
from tests.core.ticks import recorded
from tests.lifecycles import LEASE, WHOLE_WAY, run

ONE = JobId(1)
QUEUES = {"burst": ("burst",), "burst-ready": ("burst",), "batch": ()}
LEAD = identity(queues=QUEUES)
UP = run(*WHOLE_WAY[:4])
"""A burst of two nodes for job 1, on ranks 2 and 3."""
COMING = run(*WHOLE_WAY[:3])


SUBMITTED_HELD = {"urgency": 0, "held_at_submit": True}


def tick_once(seen, mode, records=None, limits=None, now=T0 + 100, **intake):
    tables = {"intake": {"mode": mode, **intake}, "limits": limits or {}}
    return run_tick(records or Records(), seen, settings(**tables), now)


def queued(queue="burst", constraint=LENT, **changes):
    return job(1, whole(2, constraint=constraint), queue=queue, **changes)


def kinds(made):
    return [type(action) for action in made.actions]


def test_what_another_mode_held_is_released():
    held = Hold(urgency=9, state=HoldState.HELD, since=T0)
    waiting = view(job(1, whole(4), urgency=0))

    made = tick_once(world(waiting), "scheduler", Records(holds={ONE: held}))

    assert ReleaseJobs({ONE: 9}) in made.actions


@pytest.mark.parametrize("mode", ["queue", "scheduler"])
def test_where_nothing_could_serve_a_job_it_is_failed_with_the_real_reason(mode):
    seen = world(view(job(1, whole(9))), local=(offer(total=8),))
    made = tick_once(seen, mode)

    assert made.actions == (
        FailJob(ONE, "it needs 9 nodes; the most that it could ever have is 8"),
    )


@pytest.mark.parametrize("most", [100, 3])
def test_a_job_larger_than_the_instance_waits_while_a_provider_could_serve_it(most):
    many = (offer(max_nodes=most),)

    made = tick_once(world(view(job(1, whole(100))), local=many), "scheduler")

    assert made.actions == ()
    assert made.decisions[1].reason is Reason.NO_ROOM
    assert "burst lead add-slot" in made.decisions[1].text()


COUNT = {"min": 2, "max": 8, "operator": "*", "operand": 2}
PER_SLOT = {"version": 1, "tasks": [], "attributes": {"system": {"duration": 0}}}
CORE = {"type": "core", "count": 4}
SLOT = {"type": "slot", "count": 1, "label": "a", "with": [CORE]}
NODES = {"type": "node", "count": COUNT, "with": [SLOT]}
SLOTS = {"type": "slot", "count": "2-8:2", "label": "a", "with": [CORE]}
CORES = {"type": "slot", "count": 4, "label": "a", "with": [{**CORE, "count": "4-8"}]}
DISCRETE = "its node or slot count specifies discrete valid values that {} does not"
NOT_READ = "{} cannot read a count of its jobspec: it reads a number, or a range with"


@pytest.mark.parametrize(
    ("resources", "mode", "scheduler", "why"),
    [
        (NODES, "hold", "sched-simple", DISCRETE),
        (SLOTS, "hold", "sched-simple", DISCRETE),
        (CORES, "hold", "sched-simple", ""),
        (NODES, "scheduler", "sched-burst", DISCRETE),
        (SLOTS, "scheduler", "sched-burst", DISCRETE),
        (NODES, "hold", FLUXION, ""),
        (SLOTS, "hold", FLUXION, NOT_READ),
        (CORES, "hold", FLUXION, NOT_READ),
        (CORES, "scheduler", FLUXION, NOT_READ),
        # None is loaded, and which one will be is not known.
        (NODES, "scheduler", "", ""),
        (SLOTS, "scheduler", "", ""),
    ],
)
def test_no_burst_is_made_for_a_count_that_the_scheduler_refuses(
    resources, mode, scheduler, why
):
    request = parse_request({**PER_SLOT, "resources": [resources]})
    seen = view(job(1, request), busy={0, 1}, scheduler=Scheduler(name=scheduler))
    made = tick_once(world(seen), mode)
    assert (HoldJobs in kinds(made)) is (mode == "hold")
    assert (FailJob in kinds(made)) is bool(mode == "scheduler" and why)
    assert bool(made.records.bursts) == (not why)
    title = Scheduler(name=scheduler).title
    assert made.decisions[1].text().startswith(why.format(title))


@pytest.mark.parametrize("key", ["max_nodes", "max_nodes_per_user"])
def test_a_job_that_a_limit_keeps_out_for_ever_is_failed_with_that_limit(key):
    seen = world(view(job(1, whole(100))), local=(offer(max_nodes=100),))
    made = tick_once(seen, "scheduler", limits={key: 50})

    text = f"it needs 100 nodes; the limit limits.{key} is 50"
    assert made.actions == (FailJob(ONE, text),)


def test_a_job_that_the_own_nodes_could_run_is_never_failed():
    one_down = view(job(1, whole(2)), online=(0,))

    made = tick_once(world(one_down), "scheduler", limits={"max_nodes": 1})

    assert made.actions == ()
    assert made.decisions[1].reason is Reason.TURNED_DOWN


def test_in_mode_hold_impossible_jobs_are_held():
    seen = world(view(job(1, whole(9))), local=(offer(total=8),))
    made = tick_once(seen, "hold")

    assert made.decisions[1].reason is Reason.TOO_LARGE
    assert made.actions == (HoldJobs((ONE,)),)


@pytest.mark.parametrize(
    ("queue", "burst", "online", "moved"),
    [
        ("burst", UP, (0, 1, 2, 3), "burst-ready"),
        ("burst", COMING, (0, 1, 2), ""),
        ("burst-ready", UP, (0, 1, 2), "burst"),
        ("burst-ready", UP, (0, 1, 2, 3), ""),
    ],
    ids=["they are up", "they come", "they are lost", "they are still up"],
)
def test_a_job_is_in_the_stopped_queue_until_its_nodes_are_online(
    queue, burst, online, moved
):
    seen = world(view(queued(queue), online=online, lead=LEAD), LEAD)

    made = tick_once(seen, "queue", recorded(burst))

    assert made.actions == ((MoveJobs({ONE: moved}),) if moved else ())
    released = "job-release" in [event.name for _, event in made.events]
    up = len(online) == 4
    assert (made.decisions[1].reason is Reason.RELEASED, released) == (up, up)


def test_a_job_whose_nodes_are_lost_stays_while_the_stopped_queue_takes_no_jobs():
    closed = {"burst": QueueView(enabled=False)}
    there = queued("burst-ready")
    seen = world(view(there, online=(0, 1, 2), lead=LEAD, queues=closed), LEAD)

    made = tick_once(seen, "queue", recorded(UP))

    assert made.actions == ()


def test_in_the_stopped_queue_nothing_starts_on_nodes_that_are_up():
    queues = {**QUEUES, "burst": ()}
    lead = identity(queues=queues)
    seen = world(view(queued(constraint=""), lead=lead), lead)

    made = tick_once(seen, "queue", now=T0 + 2)

    assert made.decisions[1].reason is Reason.PROPOSED


def test_burst_jobs_of_other_queues_are_held_as_without_queues():
    seen = world(view(job(1, whole(4), queue="batch"), lead=LEAD), LEAD)

    made = tick_once(seen, "queue")

    assert HoldJobs((ONE,)) in made.actions


def test_a_job_that_cannot_change_its_queue_is_failed_and_told_why():
    own = '{"and":[{"properties":["burst"]},{"hostlist":["burst-0-1"]}]}'
    seen = world(view(queued(constraint=own), lead=LEAD), LEAD)

    made = tick_once(seen, "queue")

    assert made.decisions[1].reason is Reason.UNMOVABLE
    assert "submit it without --requires" in made.decisions[1].text()
    assert kinds(made) == [FailJob]


@pytest.mark.parametrize(("asked", "given"), [(9, 9), (16, 16), (31, 16)])
def test_a_job_submitted_held_is_released_with_no_more_than_the_default(asked, given):
    wish = BurstPreferences(urgency=asked)
    waiting = job(1, whole(2), preferences=wish, **SUBMITTED_HELD)
    seen = world(view(waiting, online=(0, 1, 2, 3)))

    made = tick_once(seen, "hold", recorded(UP))

    assert made.actions == (ReleaseJobs({ONE: given}),)


def test_what_somebody_held_later_is_not_taken_for_ours_whatever_its_user_wrote():
    """An owner holds a guest's job, who had marked it as one that waits for us."""
    wish = BurstPreferences(urgency=16)
    seen = world(view(job(1, whole(2), urgency=0, preferences=wish)))

    made = tick_once(seen, "scheduler")

    assert made.actions == ()
    assert made.records.holds == {}
    assert made.decisions[1].reason is Reason.USER_HOLD


def test_a_held_job_that_waits_for_another_is_taken_later():
    held = {**SUBMITTED_HELD, "state": JobState.DEPEND}
    waiting = job(1, whole(4), preferences=BurstPreferences(urgency=16), **held)

    made = tick_once(world(view(waiting)), "hold")

    assert made.records.holds == {}


def test_a_held_job_that_its_user_holds_again_is_his():
    released = Hold(urgency=16, state=HoldState.RELEASED, since=T0)
    waiting = job(1, whole(4), urgency=0, preferences=BurstPreferences(urgency=16))

    made = tick_once(world(view(waiting)), "hold", Records(holds={ONE: released}))

    assert made.records.holds[ONE].state is HoldState.TAKEN_BACK
    assert made.actions == ()


TAKEN = Hold(urgency=16, state=HoldState.TAKEN_BACK, since=T0)


@pytest.mark.parametrize("mode", ["hold", "scheduler"])
def test_a_job_that_its_user_took_back_is_left_alone_and_told_so(mode):
    made = tick_once(world(view(job(1, whole(4)))), mode, Records(holds={ONE: TAKEN}))

    assert made.decisions[1].reason is Reason.TAKEN_BACK
    assert "its user submits it again" in made.decisions[1].next_step()
    assert made.actions == ()
    assert made.records.bursts == {}


def test_a_job_taken_back_that_is_in_the_stopped_queue_can_start_by_a_burst_alone():
    seen = world(view(queued(), lead=LEAD), LEAD)

    made = tick_once(seen, "queue", Records(holds={ONE: TAKEN}))

    assert made.decisions[1].reason is Reason.PROPOSED


def test_no_isolated_burst_is_made_for_a_job_that_flux_could_start():
    isolated = (offer(modes=("isolated",)),)
    far = queued(preferences=BurstPreferences(mode="isolated"))
    seen = world(view(far, lead=LEAD), LEAD, local=isolated)

    made = tick_once(seen, "queue", Records(holds={ONE: TAKEN}))

    refusals = made.decisions[1].refusals
    assert [refusal.reason for refusal in refusals] == [Reason.NOT_HELD]


def test_jobs_of_one_plan_share_no_burst_that_is_too_dear_for_one_of_them():
    dear = (offer(price=2.0),)
    wish = BurstPreferences(max_price=1.0)
    cheap = job(2, whole(1, constraint=LENT), preferences=wish)

    made = tick_once(
        world(view(job(1, whole(1)), cheap, online=()), local=dear), "hold"
    )

    assert made.decisions[1].reason is Reason.PROPOSED
    assert made.decisions[2].reason is Reason.TURNED_DOWN


@pytest.mark.parametrize(
    ("wait", "reason"),
    [(None, Reason.LOCAL), (0.0, Reason.PROPOSED), (50.0, Reason.LOCAL)],
)
def test_how_long_nodes_that_are_up_are_tried_is_the_users_to_say(wait, reason):
    waiting = job(1, whole(1), preferences=BurstPreferences(wait=wait))

    made = tick_once(world(view(waiting)), "hold", now=T0 + 40)

    assert made.decisions[1].reason is reason


NOBODY = view()


def test_a_job_gets_its_ranks_once_all_of_them_are_online():
    ranks = frozenset({2, 3})
    none = LeasedRanks({ONE: frozenset()}, ranks)
    assert rank_leases(recorded(COMING), NOBODY) == none
    assert rank_leases(recorded(UP), NOBODY) == LeasedRanks({ONE: ranks}, ranks)


def test_a_job_with_two_bursts_waits_for_both():
    other = but(COMING, lease=but(LEASE, id="burst-1-b", ranks=(6, 7)))

    assert rank_leases(recorded(UP, other), NOBODY).jobs == {ONE: frozenset()}
    ranks = frozenset({2, 3, 6, 7})
    assert rank_leases(recorded(UP, other), NOBODY).ranks == ranks


def test_a_job_that_lacks_nodes_gets_none_from_the_scheduler():
    lent = rank_leases(recorded(UP), view(job(1, whole(3)), online=(0, 1, 2, 3)))

    assert lent == LeasedRanks({ONE: frozenset()}, frozenset({2, 3}))


def test_what_is_taken_down_is_nobodys_and_still_leased():
    draining = run(*WHOLE_WAY[:8])

    assert rank_leases(recorded(draining), NOBODY) == LeasedRanks({}, frozenset({2, 3}))
    assert rank_leases(Records(), NOBODY) == LeasedRanks()
