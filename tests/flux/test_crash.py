# SPDX-License-Identifier: MIT
"""kill -9 of the daemon at each step of a burst, of followers, and of the lead."""

from __future__ import annotations

import signal
import time

import pytest

from tests.flux.crash_story import SOON, UNTIL_TOLD, kill_at_each_step
from tests.flux.site import HOSTNAME, Site
from tests.flux_instance import FLUX, MISSING
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.flux, pytest.mark.skipif(not FLUX, reason=MISSING)]

DEAD_S = 3.0
"""For how long there is no daemon after a job has ended."""


def test_a_burst_goes_on_under_the_next_daemon_at_each_step_of_its_life(
    site: Site,
) -> None:
    kill_at_each_step(site)


def test_a_job_whose_follower_died_before_it_joined_gets_another_burst(
    site: Site,
) -> None:
    site.write(deadlines=SOON, limits={"cooldown": "0.1s"})
    site.close_gate("join")
    with site.cli.daemon():
        job = site.submit("-N2", "--requires=burst", *HOSTNAME)
        failed = site.wait_for_burst("join")
        site.kill_follower("burst-0-1")
        row = site.wait_for_end(failed)
        assert row["result"] == "failed"
        assert row["note"].startswith("burst-0-1 was killed by signal 9")
        site.open_gate("join")
        site.wait_for_job(job, "COMPLETED")
        second = site.bursts()[-1]["id"]
        assert second != failed
        site.wait_for_end(second)
        site.check_that_nothing_is_left()


def test_a_job_on_a_follower_that_dies_gets_fluxs_own_exception(site: Site) -> None:
    with site.cli.daemon():
        job = site.submit("-N3", "--requires=burst", *UNTIL_TOLD)
        site.wait_for_job(job, "RUN")
        burst_id = site.wait_for_burst("online")
        site.kill_follower("burst-0-1")
        site.wait_for_job(job, "FAILED")
        exception = site.jobs("{exception.type} {exception.note}", job)
        assert exception == "exec node failure on burst-0-1 (rank 3)"
        assert site.wait_for_end(burst_id)["result"] == "failed"
        site.check_that_nothing_is_left()


def test_time_without_a_daemon_is_no_work_of_a_job_that_has_ended(site: Site) -> None:
    """Flux tells the next daemon when that was."""
    # A unit for a second of a node.
    site.write(deadlines=SOON, prices={"local.local": 3600.0})
    with site.cli.daemon() as daemon:
        job = site.submit("-N2", "--requires=burst", *UNTIL_TOLD)
        daemon.says(" job-start ")
        daemon.end(signal.SIGKILL)
    (site.instance.directory / "go").touch()
    site.wait_for_job(job, "COMPLETED")
    ended = time.monotonic()
    wait_until(lambda: time.monotonic() > ended + DEAD_S, "the time to go by")
    with site.cli.daemon():
        site.wait_for_end(site.bursts()[0]["id"])
        (row,) = site.cli.run("cost", "--by", "provider", "--json").json["rows"]
    assert row["work"] > 0
    assert row["idle"] >= 2 * DEAD_S, "that of both nodes"


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
        site.kill_follower("burst-0-1")
        site.cli.wait_for_state(burst_id, "reap")
        note = "jobs still run on ranks 2; they are not killed"
        wait_until(
            lambda: site.cli.row(burst_id)["note"].endswith(note),
            lambda: f"the note: {site.cli.row(burst_id)}",
        )
        assert site.job(job) == "RUN"
        (site.instance.directory / "go").touch()
        site.wait_for_job(job, "COMPLETED")
        site.wait_for_end(burst_id)
        site.check_that_nothing_is_left()


def test_a_rank_that_a_person_drained_stays_drained_when_its_burst_ends(
    site: Site,
) -> None:
    with site.cli.daemon():
        burst_id = site.cli.run("request", "-N3").lines[0].rpartition(" ")[2]
        site.flux("resource", "drain", "burst-0-1", "bad", "fan")
        site.kill_follower("burst-0-2")
        site.cli.wait_for_state(burst_id, "inactive")
        wait_until(lambda: site.drained() == {"3": "bad fan"}, "our drains to go")
        assert not site.followers()
        (slot,) = [s for s in site.cli.status()["slots"] if s["name"] == "burst-0"]
        # Others of it can be had.
        assert slot["state"] == "free"


def test_a_lead_that_was_killed_comes_back_and_what_was_left_is_reaped(
    site: Site,
) -> None:
    site.write(deadlines=SOON | {"rejoin": "1s"})
    with site.cli.daemon() as daemon:
        job = site.submit("-N2", "--requires=burst", *UNTIL_TOLD)
        site.wait_for_job(job, "RUN")
        burst_id = site.wait_for_burst("online")
        before = site.followers()
        assert len(before) == 2
        # A lead that is killed loses what it has not written: it would know of no start
        # of the job, and still keep its nodes for it.
        site.flux("job", "wait-event", job, "start")
        site.flux("kvs", "put", "--sync", "written=true")
        site.instance.kill()
        daemon.says("looking for the lead again")
        site.instance.start()
        daemon.says(" serves ", times=2)
        site.wait_for_end(burst_id)
        site.check_that_nothing_is_left()
        assert site.job(job) == "FAILED"
        assert site.jobs("{exception.type}", job) == "exec", "of Flux's own making"


def test_a_burst_that_ended_as_its_lead_was_shut_down_has_not_failed(
    site: Site,
) -> None:
    with site.cli.daemon() as daemon:
        assert site.cli.run("request", "-N2").status == 0
        burst_id = site.wait_for_burst("online")
        site.flux("shutdown", "--quiet")
        assert daemon.wait() == 1
        site.instance.stop()
        site.instance.start()
    with site.cli.daemon():
        row = site.wait_for_end(burst_id)
        assert row["result"] == "canceled"
        assert "its followers ended as the lead did" in row["note"]
