# SPDX-License-Identifier: MIT
"""kill -9 of the daemon at each step of a burst, of followers, and of the lead."""

from __future__ import annotations

import pytest

from tests.flux.crash_story import SOON, UNTIL_TOLD, kill_at_each_step
from tests.flux.site import Site
from tests.support.waiting import wait_until

pytestmark = pytest.mark.flux


def test_a_burst_goes_on_under_the_next_daemon_at_each_step_of_its_life(
    site: Site,
) -> None:
    kill_at_each_step(site)


def test_a_batch_job_that_goes_on_without_a_follower_keeps_its_burst(
    site: Site,
) -> None:
    """Flux ends an instance of flux batch only if it loses its first node."""
    site.write(deadlines=SOON | {"rejoin": "0.5s"})
    with site.cli.daemon():
        program = "touch began; while [ ! -e go ]; do sleep 0.05; done"
        words = ("-N2", "--setattr=burstable", "--requires=burst")
        job = site.flux("batch", *words, "--wrap", program).strip()
        wait_until((site.instance.directory / "began").exists, "its program")
        burst_id = site.wait_for_burst("online")
        assert site.kill_follower("burst-0-1")
        site.cli.wait_for_state(burst_id, "reap")
        note = "jobs still run on rank 2; they are not killed"
        wait_until(
            lambda: site.cli.row(burst_id)["note"].endswith(note),
            lambda: f"the note: {site.cli.row(burst_id)}",
        )
        assert site.job(job) == "RUN"
        (site.instance.directory / "go").touch()
        site.wait_for_job(job, "COMPLETED")
        assert site.wait_for_end(burst_id)["result"] == "failed"
        site.check_that_nothing_is_left()


def test_a_lead_that_was_killed_comes_back_and_what_was_left_is_reaped(
    site: Site,
) -> None:
    site.write(deadlines=SOON)
    with site.cli.daemon() as daemon:
        job = site.submit("-N2", "--requires=burst", *UNTIL_TOLD)
        # A lead that is killed loses what it has not written: it would know of no start
        # of the job, and still keep its nodes for it.
        site.wait_for_start(job)
        burst_id = site.wait_for_burst("online")
        before = site.followers()
        assert len(before) == 2
        site.write_kvs()
        site.instance.kill()
        daemon.says("looking for the lead again")
        site.instance.start()
        daemon.says(" serves ", times=2)
        site.wait_for_end(burst_id)
        site.check_that_nothing_is_left()
        site.wait_for_job(job, "FAILED")
        assert site.jobs("{exception.type}", job) == "exec", "of Flux's own making"
