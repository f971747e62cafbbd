# SPDX-License-Identifier: MIT
"""A job that loses a follower on a real Flux is run again, as its user submitted it."""

from __future__ import annotations

import os
import signal

import pytest

from tests.flux.site import Site
from tests.support.waiting import wait_until

pytestmark = pytest.mark.flux

SOON = {"idle": "0.3s", "rejoin": "0.5s"}
UNTIL_TOLD = ("sh", "-c", "echo $COLOR; while [ ! -e go ]; do sleep 0.05; done")
WANTED = ("-N1", "--requires=burst", "--env=COLOR=red", "--setattr=burst.requeue=true")


@pytest.mark.parametrize(
    "end", [signal.SIGKILL, signal.SIGTERM], ids=["killed", "in-order"]
)
def test_a_job_is_run_again_whose_follower_ends(
    end: signal.Signals, site: Site
) -> None:
    """In order too, as where a cloud warns a node before it takes it back."""
    # Flux may take a while to start it, and would then be told to put it first.
    site.write(deadlines=SOON, intake={"release_urgency": 0})
    with site.cli.daemon():
        job = site.submit(*WANTED, "--urgency=10", *UNTIL_TOLD)
        site.wait_for_start(job)
        site.wait_for_burst("online")
        (follower,) = site.followers().values()
        os.kill(follower.pid, end)
        site.wait_for_job(job, "FAILED")

        def again() -> str:
            told: str = site.cli.run("explain", job, "--json").json["again"]
            return told

        wait_until(lambda: "submitted again as" in again(), again)
        second = again().rpartition(" ")[2]
        site.wait_for_job(second, "RUN")
        assert site.jobs("{urgency}", second) == "10"
        told = site.cli.run("explain", job).stdout
        assert f"it was submitted again as {second}" in told
        (site.instance.directory / "go").touch()
        site.wait_for_job(second, "COMPLETED")
        assert site.output(second) == ["red"]
        assert len(site.names()) == 2
        wait_until(lambda: not site.followers(), "the end of all bursts")
        site.check_that_nothing_is_left()
