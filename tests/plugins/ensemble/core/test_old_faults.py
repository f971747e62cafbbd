# SPDX-License-Identifier: MIT
"""The faults of the algorithms that the Ensemble Operator and ensemble-python had.

Each test fails on what they did.
"""

from __future__ import annotations

from typing import Any

from burst_ensemble.algorithm import JobGroup, JobTally, MemberView
from burst_ensemble.core.job_rows import JobsSeen, SizedReading, count_jobs
from burst_ensemble.core.record import MemberRecord

from burst.model.lead import JobState
from tests.plugins.ensemble.core.ensembles import (
    NOW,
    looked_at,
    make,
    queued,
    reading,
    row,
    view,
)


def demand(views: list[MemberView], **options: Any) -> list[int | None]:
    """The sizes that workload-demand asks for."""
    answers = looked_at(make("workload-demand", **options), views)
    return [each.nodes for each in answers]


def test_progress_begins_the_wait_anew() -> None:
    """The number of jobs was compared with a mapping, and never stored before."""
    many, fewer = view(4, **queued(2, 2, 2)), view(4, **queued(2, 2))
    assert demand([many] * 4 + [fewer] * 5)[-1] is None
    assert demand([many] * 4 + [fewer] * 6)[-1] == 6


def test_nodes_that_stay_free_are_given_back() -> None:
    """The number of free nodes was compared with the counter of checks itself."""
    idle = view(6, 3, queue=reading().queue, jobs=())
    assert demand([idle] * 8, terminateChecks=100) == [None] * 7 + [3]


def test_only_what_was_free_all_the_time_is_given_back() -> None:
    busy, idle = view(6, 1), view(6, 4)
    assert demand([idle, busy] + [idle] * 6, terminateChecks=100)[-1] == 5


def read(*jobs: tuple[int, JobState, int, int]) -> SizedReading:
    """What is read of jobs: number, state, nodes, urgency."""
    rows = [
        row(number, state, nodes=nodes, urgency=urgency)
        for number, state, nodes, urgency in jobs
    ]
    return count_jobs(MemberRecord(started=0.0), JobsSeen(rows, {}), NOW).reading


def test_jobs_that_have_ended_or_run_do_not_wait() -> None:
    """get_waiting_sizes counted every job of the listing."""
    found = read(
        (1, JobState.INACTIVE, 4, 16),
        (2, JobState.RUN, 2, 16),
        (3, JobState.CLEANUP, 2, 16),
        (4, JobState.DEPEND, 3, 16),
        (5, JobState.SCHED, 5, 16),
        (6, JobState.SCHED, 1, 16),
        (7, JobState.PRIORITY, 5, 20),
    )
    assert found.waiting == {1: 1, 5: 2}
    assert found.next_jobs == (5, 5, 1)
    assert (found.queue.inactive, found.queue.run, found.queue.sched) == (1, 1, 2)
    assert found.queue.active == 6


def test_the_next_jobs_are_the_first_of_the_queue() -> None:
    """The listing was cut at eleven before it was put in order."""
    jobs = [(n, JobState.SCHED, n, 31 if n > 25 else 16) for n in range(1, 31)]
    assert read(*jobs).next_jobs == (26, 27, 28, 29, 30, 1, 2, 3, 4, 5, 6)


def test_it_does_not_shrink_below_the_least() -> None:
    """The minimum was ignored."""
    idle = view(6, 6, least=3)
    assert demand([idle] * 8, terminateChecks=100)[-1] == 3


def test_the_option_of_the_example_is_read() -> None:
    """`scaleUpChecks` of the example had no effect."""
    waits = view(4, **queued(2))
    assert demand([waits] * 2, scaleUpChecks=1)[-1] == 6
    assert demand([waits] * 9, scaleUpChecks=9)[-1] is None


def test_jobs_that_depend_on_others_do_not_make_it_grow() -> None:
    waits = read((1, JobState.DEPEND, 8, 16))
    seen = view(4, queue=waits.queue, waiting=waits.waiting)
    assert demand([seen] * 20)[-1] is None


def test_nodes_that_are_free_or_boot_count() -> None:
    """It grew by the whole size of the job, whatever was free."""
    assert demand([view(4, 1, **queued(3))] * 6)[-1] == 6
    booting = view(6, nodes_up=4, nodes_free=0, **queued(2))
    assert demand([booting] * 20)[-1] is None


def tallied(success: int = 0, **events: int) -> MemberView:
    tally = JobTally(success=success, finished=success, events=events)
    return view(jobs=(JobGroup(name="x", count=2, left=0, tally=tally),), tally=tally)


def test_a_count_that_jumps_over_a_number_has_reached_it() -> None:
    """`when: 3` held only while the count was exactly 3."""
    rule = {
        "trigger": "metric",
        "name": "count.x.success",
        "when": 3,
        "action": {"name": "submit", "label": "x"},
    }
    answers = looked_at(
        make("triggers", rules=[rule]), [tallied(n) for n in (0, 2, 5, 6)]
    )
    assert [each.again for each in answers] == [(), (), ("x", "x"), ()]


def test_no_event_is_lost_between_two_looks() -> None:
    """Events that came while it did not listen were lost."""
    rule = {
        "trigger": "job-finish",
        "name": "x",
        "action": {"name": "grow", "repetitions": 5},
    }
    seen = [tallied(finish=n) for n in (0, 3, 3, 4, 9)]
    sizes = [each.nodes for each in looked_at(make("triggers", rules=[rule]), seen)]
    assert sizes == [None, 7, 7, 8, 8]
