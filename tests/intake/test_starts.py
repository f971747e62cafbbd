# SPDX-License-Identifier: MIT
"""sched-burst annotates pending jobs with the starts that the daemon tells it."""

from __future__ import annotations

import time

import pytest

from burst.model.jobid import parse_jobid
from tests.flux_instance import FluxInstance
from tests.intake.user_cli import UserCli
from tests.support.waiting import wait_until

pytestmark = pytest.mark.flux

BURST = "--setattr=burstable"


def tell(instance: FluxInstance, **starts: float) -> None:
    """Tell the scheduler as the daemon does."""
    known = {str(int(parse_jobid(job))): at for job, at in starts.items()}
    instance.rpc("sched-burst.starts", {"starts": known})


def estimate(user: UserCli, job: str) -> str:
    form = "{annotations.sched.t_estimate}"
    return user.do("jobs", "-n", "-o", form, job).strip()


@pytest.mark.parametrize("policy", ["fifo", "backfill"])
def test_all_pending_jobs_show_when_they_start(user: UserCli, policy: str) -> None:
    user.use_scheduler(f"policy={policy}")
    running = user.submit("-n2", "-t10m", "sleep", "600")
    stepped_over = user.submit(BURST, "-N4", "true")
    soon, later = time.time() + 1000.0, time.time() + 5000.0
    # The shipped scheduler has nothing in its queue to annotate.
    tell(user.instance, **{stepped_over: soon})
    wait_until(lambda: estimate(user, stepped_over) == str(soon), "an estimate")
    own = user.submit("-n2", "-t10m", "true")
    tell(user.instance, **{own: soon, stepped_over: later, running: soon})
    wait_until(lambda: estimate(user, own) == str(soon), "an estimate")
    wait_until(lambda: estimate(user, stepped_over) == str(later), "an estimate")
    assert estimate(user, running) == ""
    tell(user.instance, **{own: time.time() - 5.0})
    wait_until(lambda: estimate(user, own) == "", "no estimate that has gone by")
    wait_until(lambda: estimate(user, stepped_over) == "", "none that is not known")
    user.do("cancel", running)
    user.ended(own)
