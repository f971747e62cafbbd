# SPDX-License-Identifier: MIT
"""The whole way of a job on real Flux, by the commands that a user types."""

from __future__ import annotations

import pytest

from tests.flux.site import HOSTNAME, Site
from tests.support.waiting import wait_until

pytestmark = pytest.mark.flux


def test_a_job_waits_runs_on_borrowed_nodes_and_leaves_nothing(site: Site) -> None:
    site.write(deadlines={"idle": "0.5s"})
    site.close_gate("join")
    with site.cli.daemon() as daemon:
        # `burst` is a command of flux, too.
        lines = site.flux("burst", "status").splitlines()
        assert lines[0] == "no bursts"
        assert lines[3].split()[:2] == ["burst-0", "2-5"]
        assert str(daemon.process.pid) in site.flux("burst", "status", "--json")
        refused = site.try_flux("burst", "down", "burst-9")
        assert refused.returncode == 1
        assert refused.stderr.startswith("burst: ERROR: there is no burst 'burst-9'")

        job = site.submit("-N4", *HOSTNAME)
        burst_id = site.wait_for_burst("join")
        wait_until(
            lambda: site.jobs("{user.burst.state}", job) == "join 0/4",
            lambda: site.jobs("{user.burst.state} {user.burst.why}", job),
        )
        assert site.jobs("{status} {urgency}", job) == "SCHED 0", "it is held"
        assert burst_id in site.jobs("{user.burst.why}", job)
        assert site.flux("run", "-n1", "hostname"), "it blocks nobody"
        site.open_gate("join")
        site.wait_for_job(job, "COMPLETED")
        output = site.output(job)
        assert sorted(output) == [f"burst-0-{i}" for i in range(4)]
        row = site.wait_for_end(burst_id)
        assert (row["result"], row["note"]) == ("completed", "idle for 500ms")
        assert list(row["timeline"]) == [
            *("submit", "hold", "provision", "joined", "online"),
            *("released", "started", "finished", "drained", "reaped"),
        ]
        site.check_that_nothing_is_left()
