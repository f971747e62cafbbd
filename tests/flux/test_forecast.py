# SPDX-License-Identifier: MIT
"""When a job that simply waits is told to start; more in test_forecast_mixed.py."""

from __future__ import annotations

import pytest

from burst.model.jobid import JobId, format_f58
from tests.flux.forecasting import daemon
from tests.flux_instance import FluxInstance
from tests.support.waiting import HANG_S, wait_until

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
        wanted = ("job", "wait-event", f"--timeout={HANG_S:g}", format_f58(before))
        began = float(instance.flux(*wanted, "start").split()[0])
        waits = submit(instance, 1.0, 60.0)
        wait_until(lambda: waits in serving.told, "its start to be told")
        story = serving.ask("explain", id=format_f58(waits))
        assert story["verdict"] == "not-burstable"
        assert story["here"]["after"] == format_f58(before)
        assert abs(story["here"]["expected"] - (began + 300.0)) < 10.0
        instance.cancel(before)
        # What was told rested on the end of that job: it is told no more.
        wait_until(
            lambda: not serving.ask("status")["forecasts"]["jobs"],
            "nothing to be told any more",
        )
