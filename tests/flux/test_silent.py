# SPDX-License-Identifier: MIT
"""Modules of the lead that are loaded anew while a daemon serves."""

from __future__ import annotations

import pytest

from tests.flux.site import HOSTNAME, Site

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
