# SPDX-License-Identifier: MIT
"""The jobs of the benchmark `week`, on nodes that are there and in virtual time."""

import pytest

from benchmarks.week import CLOUD_BOOT_S, LAYOUTS, run_layout
from benchmarks.week_jobs import Order, WeekJob, make_jobs, run_on_nodes
from benchmarks.week_model import LOCAL_BOOT_S

FIRST: Order = "first come first served"


def test_jobs_are_drawn_as_described_and_always_the_same():
    jobs = make_jobs(200, 1)
    assert jobs == make_jobs(200, 1)
    assert jobs != make_jobs(200, 2)
    assert {job.nodes for job in jobs} == set(range(1, 9))
    assert all(1 <= job.duration <= 8 for job in jobs)
    assert 350 < jobs[-1].submitted < 550
    half = make_jobs(200, 1, 0.5)
    assert half[-1].submitted == pytest.approx(jobs[-1].submitted / 2)


def test_what_nodes_that_are_always_there_make_of_jobs():
    jobs = [WeekJob(0.0, 2, 10.0), WeekJob(1.0, 3, 5.0), WeekJob(2.0, 1, 4.0)]
    one = run_on_nodes(jobs, 3, FIRST)
    assert one.waits == {2: [0.0], 3: [9.0], 1: [13.0]}
    assert one.makespan == 19.0
    other = run_on_nodes(jobs, 3, "first fit")
    assert other.waits == {2: [0.0], 1: [0.0], 3: [9.0]}
    assert other.makespan == 15.0
    assert other.used == one.used == 39.0
    assert other.worst_wait == 3.0


@pytest.mark.no_cover
@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)
def test_what_is_paid_is_used_and_no_size_waits_for_ever(layout):
    jobs = make_jobs(60, 3)
    first = run_on_nodes(jobs, 9, FIRST)
    done = run_layout(jobs, layout, LOCAL_BOOT_S)
    assert done.started == len(jobs)
    assert done.makespan <= 1.25 * first.makespan
    # More than in the benchmark: the first and the last jobs weigh more here.
    assert done.used <= done.paid_at_end <= 1.6 * done.used
    assert done.worst_wait <= 2.5


@pytest.mark.no_cover
@pytest.mark.parametrize("layout", LAYOUTS[:2], ids=lambda layout: layout.name)
def test_what_takes_long_to_come_is_not_given_back_while_jobs_wait(layout):
    jobs = make_jobs(60, 3)
    first = run_on_nodes(jobs, 9, FIRST)
    done = run_layout(jobs, layout, CLOUD_BOOT_S)
    assert done.makespan <= first.makespan + 4 * CLOUD_BOOT_S
    assert done.paid_at_end <= 2.5 * done.used
