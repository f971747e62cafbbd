# SPDX-License-Identifier: MIT
"""Start times that were told against those that Flux then gave."""

from __future__ import annotations

import time
from contextlib import closing

import pytest

from burst.model.jobid import JobId, format_f58
from tests.contract.whole_queue import QueueReader
from tests.flux.forecasting import daemon
from tests.flux_instance import FluxInstance
from tests.support.waiting import HANG_S

pytestmark = pytest.mark.flux

# Seconds that each runs, and its time limit: a row of long ones, and short ones behind.
WORKLOAD = [*[(1.0, 2.0)] * 8, *[(0.1, 2.0)] * 8]
# Flux takes a moment to end one job and start the next, the more so on a busy machine.
# It is what the daemon allows, too, where it grades its forecasts.
_LATE_S = 5.0


def submit(instance: FluxInstance, run: float, limit: float) -> JobId:
    """Submit a job that needs both cores of the lead."""
    return instance.submit(
        slots=2,
        burstable=False,
        command=("sleep", str(run)),
        attributes={"duration": limit},
    )


def test_the_daemon_grades_what_it_told_as_the_journal_does(
    instance: FluxInstance,
) -> None:
    """How many start within their interval depends on how busy this machine is."""
    with (
        closing(instance.lead()) as other,
        daemon(instance, {"daemon": {"forecast": "200ms"}}) as serving,
    ):
        follower = QueueReader(other)
        follower.lead.follow_queue(follower)
        other.listen(lambda: None)
        began = time.monotonic()
        for run, limit in WORKLOAD:
            submit(instance, run, limit)
        while len(serving.told) < len(WORKLOAD) / 2:
            assert time.monotonic() < began + HANG_S
            time.sleep(0.1)
        last = max(serving.told)
        here = serving.ask("explain", id=format_f58(last))["here"]
        while len(follower.over) < len(WORKLOAD):
            assert time.monotonic() < began + HANG_S
            time.sleep(0.1)
        status = serving.ask("status")
    inside = {
        job: start.earliest - 0.1
        <= follower.over[job].t_start
        <= start.latest + _LATE_S
        for job, start in serving.told.items()
    }
    assert len(inside) > len(WORKLOAD) / 2, "too few had to wait"
    assert any(inside.values())
    assert here is None or "on own nodes" in here["text"]
    grade = status["forecasts"]["grade"]
    assert abs(grade["inside"] - sum(inside.values()) / len(inside)) <= 0.1, inside


def test_a_job_that_simply_waits_is_told_when_it_starts(instance: FluxInstance) -> None:
    with daemon(instance, {}) as serving:
        before = submit(instance, 600.0, 300.0)
        waits = submit(instance, 1.0, 60.0)
        ends = time.monotonic() + HANG_S
        while waits not in serving.told:
            assert time.monotonic() < ends
            time.sleep(0.05)
        story = serving.ask("explain", id=format_f58(waits))
        assert story["verdict"] == "not-burstable"
        assert story["here"]["after"] == format_f58(before)
        assert 200 < story["here"]["expected"] - time.time() < 310
        instance.cancel(before)
        # What was told rested on the end of that job: it is told no more.
        while serving.ask("status")["forecasts"]["jobs"]:
            assert time.monotonic() < ends
            time.sleep(0.05)
