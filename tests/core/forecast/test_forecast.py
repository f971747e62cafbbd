# SPDX-License-Identifier: MIT
from typing import Any

import pytest

from burst.core.forecast.forecast import (
    NEVER,
    forecast,
    kind_of,
    line_up,
    own_nodes_queue,
)
from burst.core.forecast.history import JobKind, RunHistory
from burst.core.records import Records
from burst.model.active_job import ActiveJob, QueuePicture, picture_of
from burst.model.hold import Hold, HoldState
from burst.model.jobid import JobId
from burst.model.lead import JobState, QueueView
from burst.model.request import BurstPreferences
from burst.model.scheduler import FLUXION, Scheduler, order_of
from burst.model.shape import Shape
from tests import builders
from tests.builders import T0, but, slots, whole


def waiting(number: int, **fields: Any) -> ActiveJob:
    """A job that waits; it asks for two cores and ten minutes."""
    given = {"state": JobState.SCHED, "request": slots(2), "duration": 600.0}
    given |= {"userid": 1, "name": "app", "priority": 16, **fields}
    return ActiveJob(id=JobId(number), **given)


def running(number: int, cores: dict[int, int], **fields: Any) -> ActiveJob:
    given = {"state": JobState.RUN, "t_start": T0 - 60.0, **fields}
    taken = {rank: Shape(count) for rank, count in cores.items()}
    return waiting(number, taken=taken, **given)


def world(**changes: Any) -> Any:
    """Two own nodes of two cores, and lent ones, which are down."""
    view = but(builders.view(), **changes)
    return builders.world(view)


def starts(picture: QueuePicture, history: RunHistory | None = None, **fields: Any):
    own = but(own_nodes_queue(Records(), world()), **fields)
    return forecast(picture, own, history or RunHistory(), T0).starts


def test_own_nodes_are_those_that_are_up_and_not_leased() -> None:
    assert own_nodes_queue(Records(), world()).ranks == {0, 1}
    drained = world(drained={1: "disk"})
    assert own_nodes_queue(Records(), drained).ranks == {0}
    stopped = world(queues={"a": QueueView(started=False), "b": QueueView()})
    assert own_nodes_queue(Records(), stopped).stopped == {"a"}


def test_a_job_starts_once_the_one_before_it_ends() -> None:
    busy = [running(1, {0: 2, 1: 2})]
    found = starts(picture_of([*busy, waiting(2), waiting(3), waiting(4)]))
    assert found[JobId(2)].expected == T0 + 540.0
    assert found[JobId(2)].after == 1
    assert found[JobId(3)].expected == T0 + 540.0
    assert found[JobId(4)].expected == T0 + 540.0 + 600.0


def test_run_times_of_the_past_make_it_earlier_than_the_limits() -> None:
    history = RunHistory()
    history.add(JobKind(1, "app", 2), 100.0)
    found = starts(picture_of([running(1, {0: 2, 1: 2}), waiting(2)]), history)
    assert found[JobId(2)].expected == T0 + 40.0
    assert found[JobId(2)].latest == T0 + 540.0


def test_run_times_that_are_known_are_told() -> None:
    own = own_nodes_queue(Records(), world())
    picture = picture_of([waiting(1), waiting(2, duration=0.0)])
    assert forecast(picture, own, RunHistory(), T0).run_times == {1: 600.0}


def test_what_runs_on_lent_ranks_takes_nothing() -> None:
    picture = picture_of([running(1, {2: 4, 3: 4}), waiting(2)])
    assert starts(picture)[JobId(2)].expected == T0


def test_what_own_nodes_cannot_hold_never_starts_and_blocks_nobody() -> None:
    odd = waiting(2, request=None)
    elsewhere = waiting(3, request=slots(1, constraint='{"properties":["burst"]}'))
    here = waiting(4, request=slots(1, constraint='{"properties":["local"]}'))
    picture = picture_of([waiting(1, request=whole(4)), odd, elsewhere, here])
    found = starts(picture)
    assert [found[JobId(n)] for n in (1, 2, 3)] == [NEVER] * 3
    assert found[JobId(4)].expected == T0


def test_who_cannot_start_on_own_nodes_is_left_out() -> None:
    held = waiting(2, priority=0)
    picture = picture_of([waiting(1), held, waiting(3, queue="closed")])
    found = starts(picture, elsewhere=frozenset({JobId(1)}), stopped={"closed"})
    assert found == {}


@pytest.mark.parametrize(
    "wish", [BurstPreferences(tag="night"), BurstPreferences(mode="isolated")]
)
@pytest.mark.parametrize("urgency", [0, 16])
def test_a_held_job_that_never_runs_on_own_nodes_takes_none(wish, urgency) -> None:
    """One that its user released may start there."""
    hold = Hold(urgency=16, state=HoldState.HELD, since=T0)
    seen = builders.job(1, whole(2), urgency=urgency, preferences=wish)
    own = own_nodes_queue(
        Records(holds={} if urgency else {seen.id: hold}),
        builders.world(builders.view(seen)),
    )
    jobs = waiting(1, request=whole(2), priority=urgency), waiting(2)
    found = forecast(picture_of(jobs), own, RunHistory(), T0).starts
    assert (JobId(1) in found) == bool(urgency)
    assert found[JobId(2)].expected == T0 + (600.0 if urgency else 0.0)


def test_what_the_daemon_holds_has_the_place_of_its_urgency() -> None:
    def hold(urgency: int, state: HoldState = HoldState.HELD) -> Hold:
        return Hold(urgency=urgency, state=state, since=T0)

    first, second = waiting(1), waiting(2)
    late, urgent, his = (waiting(n, priority=0) for n in (3, 4, 5))
    holds = {
        late.id: hold(16),
        urgent.id: hold(31),
        his.id: hold(16, HoldState.TAKEN_BACK),
    }
    line = line_up([first, second, late, urgent, his], (), holds)
    assert [job.id for job in line] == [4, 1, 2, 3]


def test_the_kind_of_a_job() -> None:
    assert kind_of(waiting(1, request=slots(3, cores=2))) == JobKind(1, "app", 6)
    assert kind_of(waiting(1, request=whole(4))).cores == 4
    assert kind_of(waiting(1, request=None)).cores == 0


def test_what_is_allocated_beyond_what_a_node_has_delays_others() -> None:
    busy = running(1, {0: 3}, duration=300.0)
    here = slots(2, constraint='{"ranks":["0"]}')
    found = starts(picture_of([busy, waiting(2, request=here), waiting(3)]))
    assert found[JobId(2)].expected == T0 + 240.0


def test_a_job_that_leaves_for_a_burst_is_in_nobodys_way() -> None:
    jobs = [running(1, {0: 2, 1: 2}), waiting(2, request=slots(4)), waiting(3)]
    asked: list[tuple[int, float]] = []

    def leaves(job: JobId, at: float) -> bool:
        asked.append((job, at - T0))
        return job == 2

    found = starts(picture_of(jobs), leaves=leaves)
    assert asked == [(2, 540.0), (3, 540.0)]
    assert found[JobId(3)].expected == T0 + 540.0


def fluxion(**policies: str) -> Scheduler:
    return Scheduler(name=FLUXION, policies=policies, order=order_of(policies))


def on_rank(number: int, rank: int, **fields: Any) -> ActiveJob:
    """A job that fills one own node."""
    request = slots(2, constraint=f'{{"ranks":["{rank}"]}}')
    return waiting(number, request=request, **fields)


def test_a_queue_of_fluxion_waits_for_none_that_has_other_nodes() -> None:
    jobs = [
        running(1, {0: 2}),
        on_rank(2, 0, queue="a"),
        on_rank(3, 1, queue="b"),
        on_rank(4, 1, queue="b", duration=60.0),
    ]
    apart = starts(picture_of(jobs), scheduler=fluxion(a="fcfs", b="fcfs"))
    assert [apart[JobId(n)].expected - T0 for n in (2, 3, 4)] == [540, 0, 600]
    # sched-simple and sched-burst have one line for all queues.
    together = starts(picture_of(jobs))
    assert [together[JobId(n)].expected - T0 for n in (2, 3, 4)] == [540, 540, 1140]


def test_queues_of_fluxion_that_share_nodes_count_as_one() -> None:
    jobs = [
        running(1, {0: 2}),
        on_rank(2, 0, queue="a"),
        on_rank(3, 1, queue="b"),
        waiting(4, request=slots(4), queue="c"),
    ]
    policies = fluxion(a="fcfs", b="fcfs", c="fcfs")
    found = starts(picture_of(jobs), scheduler=policies)
    assert [found[JobId(n)].expected - T0 for n in (2, 3, 4)] == [540, 540, 1140]


def test_each_queue_of_fluxion_has_its_policy() -> None:
    busy = [running(1, {0: 1}), running(6, {1: 1})]
    small = {rank: slots(1, constraint=f'{{"ranks":["{rank}"]}}') for rank in (0, 1)}
    jobs = [
        *busy,
        on_rank(2, 0, queue="a"),
        waiting(3, request=small[0], queue="a", duration=60.0),
        on_rank(4, 1, queue="b"),
        waiting(5, request=small[1], queue="b", duration=60.0),
    ]
    found = starts(picture_of(jobs), scheduler=fluxion(a="fcfs", b="easy"))
    assert [found[JobId(n)].expected - T0 for n in (2, 3, 4, 5)] == [540, 1140, 540, 0]


def test_without_named_queues_fluxion_has_the_default_one() -> None:
    jobs = [running(1, {0: 2}), waiting(2, request=slots(4)), waiting(3, duration=60.0)]
    found = starts(picture_of(jobs), scheduler=fluxion(default="easy"))
    assert [found[JobId(n)].expected - T0 for n in (2, 3)] == [540, 0]
    strict = starts(picture_of(jobs), scheduler=fluxion(default="fcfs"))
    assert strict[JobId(3)].expected == T0 + 1140
