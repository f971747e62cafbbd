# SPDX-License-Identifier: MIT
"""Modules of the lead that are loaded anew, and a broker that stops for a while."""

from __future__ import annotations

import os
import signal

import pytest

from burst.flux.rpc import ANSWER_DEADLINE_S
from tests.flux.site import HOSTNAME, Site
from tests.support.waiting import HANG_S, wait_until

pytestmark = pytest.mark.flux

SOON = {"idle": "0.3s"}


RELOADS = [("sched-simple",), ("-f", "kvs"), ("-f", "resource"), ("-f", "job-manager")]


def test_a_daemon_goes_on_while_modules_are_loaded_anew(site: Site) -> None:
    site.write(deadlines=SOON)
    site.close_gate("join")
    # As flux.service has it. A module that asks one which is away may end with an
    # error, and a broker without this ends with it.
    site.flux("setattr", "broker.module-nopanic", "1")
    with site.cli.daemon() as daemon:
        job = site.submit("-N2", "--requires=burst", *HOSTNAME)
        site.wait_for_burst("join")
        for words in RELOADS:
            for _ in range(3):
                site.flux("module", "reload", *words)
            if site.try_flux("module", "reload", "sched-simple").returncode:
                # It ended with the module that it depends on.
                site.flux("module", "load", "sched-simple")
        # The new job manager does not know who executes jobs; who lists them has ended.
        site.flux("module", "reload", "-f", "job-exec")
        site.try_flux("module", "load", "job-list")
        site.open_gate("join")
        (burst,) = site.bursts()
        row = site.wait_for_end(burst["id"])
        assert daemon.process.poll() is None
        assert row["result"] == "completed"
        assert site.job(job) == "COMPLETED"
        assert len(site.bursts()) == 1
        site.check_that_nothing_is_left()


def test_a_deadline_does_not_run_while_the_broker_answers_nothing(site: Site) -> None:
    """Longer than all the time in which its followers are to join."""
    site.write(deadlines={**SOON, "join": "25s"})
    site.close_gate("join")
    broker = site.instance.pid("lead-0")
    with site.cli.daemon() as daemon:
        job = site.submit("-N2", "--requires=burst", *HOSTNAME)
        site.wait_for_burst("join")
        os.kill(broker, signal.SIGSTOP)
        try:
            wait_until(
                lambda: "the lead cannot be read" in daemon.log,
                lambda: daemon.log,
                limit=ANSWER_DEADLINE_S + HANG_S,
            )
        finally:
            os.kill(broker, signal.SIGCONT)
        daemon.says("the lead can be read again")
        site.open_gate("join")
        site.wait_for_job(job, "COMPLETED")
        (burst,) = site.bursts()
        assert site.wait_for_end(burst["id"])["result"] == "completed"
        assert " unread " in daemon.log
