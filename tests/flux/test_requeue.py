# SPDX-License-Identifier: MIT
"""A job that loses a follower on a real Flux is run again, as its user submitted it."""

from __future__ import annotations

import os
import signal

import pytest

from tests.flux.site import Site
from tests.support.waiting import wait_until

pytestmark = pytest.mark.flux

SOON = {"idle": "0.3s"}
UNTIL_TOLD = ("sh", "-c", "echo $COLOR; while [ ! -e go ]; do sleep 0.05; done")
WANTED = ("-N1", "--requires=burst", "--env=COLOR=red", "--setattr=burst.requeue=true")


def test_a_job_is_run_again_whose_follower_ends(site: Site) -> None:
    """Killed, and in order, as where a cloud warns a node before it takes it back."""
    site.write(deadlines=SOON)
    with site.cli.daemon():
        job = site.submit(*WANTED, "--urgency=10", *UNTIL_TOLD)
        for end in (signal.SIGKILL, signal.SIGTERM):
            lost, job = job, lose_follower(site, job, end)
            site.wait_for_job(job, "RUN")
            assert "urgency=10" in site.flux("job", "eventlog", job)
            told = site.cli.run("explain", lost).stdout
            assert f"it was submitted again as {job}" in told
        (site.instance.directory / "go").touch()
        site.wait_for_job(job, "COMPLETED")
        assert site.output(job) == ["red"]
        assert len(site.names()) == 3
        wait_until(lambda: not site.followers(), "the end of all bursts")
        site.check_that_nothing_is_left()


def lose_follower(site: Site, job: str, end: signal.Signals) -> str:
    """End the follower of a job; return the job that it was submitted again as."""
    site.wait_for_start(job)
    site.wait_for_burst("online")
    (follower,) = site.followers().values()
    os.kill(follower.pid, end)
    site.wait_for_job(job, "FAILED")
    if end is signal.SIGKILL:
        exception = site.jobs("{exception.type} {exception.note}", job)
        assert exception == "exec node failure on burst-0-0 (rank 2)", "Flux's own"

    def again() -> str:
        told: str = site.cli.run("explain", job, "--json").json["again"]
        return told

    wait_until(lambda: "submitted again as" in again(), again)
    return again().rpartition(" ")[2]
