# SPDX-License-Identifier: MIT
"""When a job that simply waits is told to start; more in test_forecast_mixed.py."""

from __future__ import annotations

import time

import pytest

from burst.model.jobid import JobId, format_f58
from tests.flux.forecasting import daemon
from tests.flux_instance import FluxInstance
from tests.support.waiting import wait_until

pytestmark = pytest.mark.flux


def submit(instance: FluxInstance, run: float, limit: float) -> JobId:
    """Submit a job that needs both cores of the lead."""
    return instance.submit(
        slots=2,
        burstable=False,
        command=("sleep", str(run)),
        attributes={"duration": limit},
    )


def test_a_job_that_simply_waits_is_told_when_it_starts(instance: FluxInstance) -> None:
    with daemon(instance, {}) as serving:
        before = submit(instance, 600.0, 300.0)
        waits = submit(instance, 1.0, 60.0)
        wait_until(lambda: waits in serving.told, "its start to be told")
        story = serving.ask("explain", id=format_f58(waits))
        assert story["verdict"] == "not-burstable"
        assert story["here"]["after"] == format_f58(before)
        assert 200 < story["here"]["expected"] - time.time() < 310
        instance.cancel(before)
        # What was told rested on the end of that job: it is told no more.
        wait_until(
            lambda: not serving.ask("status")["forecasts"]["jobs"],
            "nothing to be told any more",
        )
