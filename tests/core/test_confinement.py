# SPDX-License-Identifier: MIT
"""On an instance with guests, a job has the lent nodes of its own bursts alone."""

import pytest

from burst.core.actions import ConfineJobs, HoldJobs, MoveJobs, ReleaseJobs
from burst.core.jobs.confinement import confines_jobs, keeps_users_apart
from burst.core.plan.capacity import own_ranks
from burst.core.plan.growth import free_above
from burst.core.plan.leasable import free_ranks
from burst.core.plan.slots import find_slots
from burst.core.records import Records
from burst.core.tick import run_tick
from burst.model.burst import Tag
from burst.model.hold import Hold, HoldState
from burst.model.jobid import JobId
from burst.model.lead import GuestAccess, JobState
from burst.model.reason import Reason
from burst.model.request import BurstPreferences
from tests.builders import LENT, T0, but, identity, job, settings, view, whole, world
from tests.core.ticks import recorded
from tests.lifecycles import LEASE, WHOLE_WAY, run, with_jobs

ONE = JobId(1)
NONE: frozenset[int] = frozenset()
ITS = frozenset(LEASE.ranks)
QUEUES = {"burst": ("burst",), "burst-ready": ("burst",)}
LEAD = identity(queues=QUEUES, access=GuestAccess(allow_guest_user=True))
ALONE = identity(queues=QUEUES)
UP = run(*WHOLE_WAY[:4])
"""A burst of two nodes for job 1, on ranks 2 and 3."""
COMING = run(*WHOLE_WAY[:3])
HELD = Hold(urgency=16, state=HoldState.HELD, since=T0)


def tick(waiting, *bursts, hold=None, lead=LEAD, online=(0, 1), mode="hold", **plan):
    records = recorded(*bursts, holds={ONE: hold} if hold else {})
    seen = world(view(waiting, online=online, lead=lead), lead)
    tables = {"intake": {"mode": mode}, "plan": plan}
    return run_tick(records, seen, settings(**tables), T0 + 100)


def held(**changes):
    return job(1, whole(2), **{"urgency": 0, "confined_to": NONE, **changes})


UP_NOW = (0, 1, 2, 3)


@pytest.mark.parametrize("mode", ["hold", "queue", "scheduler"])
def test_users_are_kept_apart_where_there_are_guests(mode):
    asked = settings(intake={"mode": mode})
    shared = settings(plan={"share_users": True}, intake={"mode": mode})
    for_all = settings(intake={"mode": mode, "any_job": True})
    assert keeps_users_apart(LEAD, asked)
    assert confines_jobs(LEAD, asked) is (mode != "scheduler")
    for site in shared, for_all:
        assert not keeps_users_apart(LEAD, site)
        assert not confines_jobs(LEAD, site)
    assert not confines_jobs(ALONE, asked)


def test_a_job_is_let_to_its_nodes_first_and_released_when_the_lead_shows_them():
    first = tick(held(), UP, hold=HELD, online=UP_NOW)
    assert first.actions == (ConfineJobs({ONE: ITS}),)
    assert first.decisions[1].reason is Reason.RELEASED
    (let,), hold = first.records.bursts.values(), first.records.holds[ONE]
    after = held(confined_to=ITS)
    then = tick(after, let, hold=hold, online=UP_NOW)
    assert then.actions == (ReleaseJobs({ONE: 16}),)
    told = [event.name for made in (first, then) for _, event in made.events]
    assert told.count("job-release") == 1


def test_nothing_is_given_while_the_burst_comes():
    assert tick(held(), COMING, hold=HELD).actions == ()


def test_one_that_was_never_held_is_let_to_its_nodes_too():
    made = tick(held(urgency=16), UP, online=UP_NOW)
    assert made.actions == (ConfineJobs({ONE: ITS}),)


LATE = job(1, whole(3), confined_to=ITS)


@pytest.mark.parametrize(
    ("waiting", "hold", "mode"),
    [
        (but(LATE, urgency=0), HELD, "hold"),
        # Flux denies a job only if no nodes would ever do.
        (held(urgency=16, confined_to=ITS, t_submit=T0 + 99), None, "hold"),
        (LATE, but(HELD, state=HoldState.TAKEN_BACK), "hold"),
        (job(1, None, unreadable="no", confined_to=ITS), None, "hold"),
        (held(state=JobState.DEPEND, confined_to=ITS), None, "hold"),
        (held(confined_to=None), HELD, "hold"),
        (LATE, None, "scheduler"),
    ],
    ids=[
        *("held", "own nodes would do", "taken back", "unreadable", "not ready"),
        *("came before the frobnicator", "whatever the mode"),
    ],
)
def test_nodes_are_taken_from_a_job_that_is_to_have_none(waiting, hold, mode):
    assert ConfineJobs({ONE: NONE}) in tick(waiting, hold=hold, mode=mode).actions


def test_nodes_are_taken_from_a_job_only_after_it_is_held():
    made = tick(LATE)
    assert made.actions[-1] == HoldJobs((ONE,))
    assert not any(isinstance(action, ConfineJobs) for action in made.actions)


@pytest.mark.parametrize("mode", ["hold", "scheduler"])
def test_where_nobody_is_confined_nothing_is(mode):
    alone = job(1, whole(2), urgency=0)
    for lead, plan in (ALONE, {}), (LEAD, {"share_users": True}):
        made = tick(alone, UP, hold=HELD, lead=lead, online=UP_NOW, mode=mode, **plan)
        assert made.actions == (ReleaseJobs({ONE: 16}),)


def test_one_that_is_confined_is_kept_up_to_date_whatever_the_mode():
    waiting = held(urgency=16)
    made = tick(waiting, UP, online=UP_NOW, mode="scheduler")
    assert made.actions == (ConfineJobs({ONE: ITS}),)


OTHER = but(
    LEASE, id="burst-1-bbbbbb", slot="burst-1", hosts=("burst-1-0",), ranks=(6,)
)


def ending(seconds, jobs=frozenset()):
    """Another burst that is up, of which jobs can have so many seconds from now on."""
    lease = but(OTHER, created=T0, end=T0 + 100 + 1800 + seconds)
    return with_jobs(but(UP, lease=lease), *jobs)


@pytest.mark.parametrize("mode", ["hold", "queue"])
@pytest.mark.parametrize(
    ("duration", "lasts", "confined"),
    [(600.0, 2000.0, False), (3000.0, 2000.0, True), (0.0, 2000.0, True)],
)
def test_a_job_is_kept_off_bursts_whose_lease_ends_before_it(
    mode, duration, lasts, confined
):
    fields = {"duration": duration, "queue": "burst" if mode == "queue" else ""}
    waiting = job(1, whole(2), urgency=0 if mode == "hold" else 16, **fields)
    bursts = (UP, ending(lasts))
    seen = {"lead": ALONE, "online": (*UP_NOW, 6), "mode": mode}
    first = tick(waiting, *bursts, hold=HELD if mode == "hold" else None, **seen)
    lent = {ONE: ITS} if confined else {}
    if mode == "queue":
        assert first.actions == (MoveJobs({ONE: "burst-ready"}, lent),)
    elif confined:
        assert first.actions == (ConfineJobs(lent),)
        shown = but(waiting, confined_to=ITS)
        after = tick(shown, *bursts, hold=HELD, **seen)
        assert after.actions == (ReleaseJobs({ONE: 16}),)
    else:
        assert first.actions == (ReleaseJobs({ONE: 16}),)


def test_a_job_may_have_all_bursts_that_end_no_earlier_than_its_own():
    waiting = job(1, whole(2), urgency=0)
    lease = but(LEASE, created=T0, end=T0 + 9000)
    own = but(UP, lease=lease)
    seen = {"hold": HELD, "lead": ALONE, "online": (*UP_NOW, 6)}
    made = tick(waiting, own, ending(5000.0), **seen)
    assert made.actions == (ReleaseJobs({ONE: 16}),)
    # One that has no burst waits for own nodes, and is held until it gets some.
    none = tick(waiting, ending(5.0), **seen)
    assert not any(isinstance(action, ConfineJobs) for action in none.actions)


def test_while_its_burst_comes_it_is_not_confined():
    waiting = job(1, whole(2), urgency=0, duration=3000.0)
    made = tick(waiting, COMING, ending(5.0), hold=HELD, lead=ALONE, online=(0, 1, 6))
    assert not any(isinstance(action, ConfineJobs) for action in made.actions)


def queued(queue="burst", **changes):
    asked = whole(2, constraint=f'{{"and":[{LENT},{LENT}]}}')
    return job(1, asked, queue=queue, **{"confined_to": NONE, **changes})


def test_a_job_is_moved_with_its_nodes_in_one_step():
    made = tick(queued(), UP, online=UP_NOW, mode="queue")
    assert made.actions == (MoveJobs({ONE: "burst-ready"}, {ONE: ITS}),)


def test_it_is_moved_back_without_any():
    lost = tick(queued("burst-ready", confined_to=ITS), UP, online=(0, 1), mode="queue")
    assert lost.actions == (MoveJobs({ONE: "burst"}, {ONE: NONE}),)


@pytest.mark.parametrize("before", [None, ITS])
def test_in_the_stopped_queue_a_job_has_none(before):
    made = tick(queued(confined_to=before), COMING, mode="queue")
    assert made.actions == (MoveJobs({ONE: "burst"}, {ONE: NONE}),)


@pytest.mark.parametrize("change", [{"urgency": 0}, {"state": JobState.DEPEND}])
def test_one_that_its_user_holds_or_that_is_not_ready_stays_as_it_is(change):
    made = tick(queued(**change), UP, online=UP_NOW, mode="queue")
    assert not any(isinstance(a, MoveJobs | ConfineJobs) for a in made.actions)


def test_ranks_that_a_pending_job_may_have_are_leased_to_nobody():
    waiting = held(confined_to=frozenset({2}))
    seen = view(waiting, lead=LEAD)
    slots = find_slots(LEAD)
    assert seen.promised == {2}
    assert free_ranks(slots, (), seen) == {*range(3, 10)}
    over = view(held(confined_to=frozenset({2}), state=JobState.RUN), lead=LEAD)
    assert free_ranks(slots, (), over) == {*range(2, 10)}
    records = Records(bursts={UP.id: UP})
    spare = view(held(confined_to=frozenset({4})), online=UP_NOW, lead=LEAD)
    assert free_above(UP, slots, records, spare) == {5}
    assert free_ranks(slots, [UP], spare) == {*range(5, 10)}


def test_a_lent_rank_without_a_lease_is_no_own_one_where_there_are_guests():
    """Somebody started its broker by hand."""
    seen = view(online=(0, 2))
    assert own_ranks(Records(), seen, ALONE) == {0, 2}
    assert own_ranks(Records(), seen, LEAD) == {0}


def test_a_job_is_kept_off_nodes_with_a_tag_that_it_has_not():
    tagged = but(UP, lease=but(UP.lease, tag=Tag("night", 100)))
    idle = with_jobs(tagged)

    def seen(mode="hold", waits=None, **changes):
        return tick(
            job(1, whole(2), **changes),
            *([waits or idle]),
            lead=ALONE,
            online=UP_NOW,
            mode=mode,
        ).actions

    confined = ConfineJobs({ONE: NONE})
    assert confined in seen(t_submit=T0 + 99)
    assert not any(isinstance(each, ConfineJobs) for each in seen("scheduler"))
    night = BurstPreferences(tag="night")
    same = seen(waits=tagged, preferences=night, userid=100)
    assert not any(isinstance(each, ConfineJobs) for each in same)
