# SPDX-License-Identifier: MIT
"""Bursts that grow and shrink while jobs run on them, on a real Flux."""

from __future__ import annotations

import signal

import pytest

from tests.flux.crash_story import UNTIL_TOLD
from tests.flux.site import Site
from tests.support.waiting import wait_until

pytestmark = pytest.mark.flux


def resized(site: Site, burst: str, nodes: int) -> None:
    """Wait until the burst has so many nodes, and no change is under way."""
    wait_until(
        lambda: (
            site.cli.row(burst)["resize"] is None
            and site.cli.row(burst)["nodes"] == nodes
        ),
        f"{burst} to have {nodes} nodes",
    )


def test_it_grows_and_shrinks_while_a_job_runs_and_a_daemon_dies(site: Site) -> None:
    with site.cli.daemon() as daemon:
        burst = site.cli.run("request", "-N1").lines[0].rpartition(" ")[2]
        first = site.submit("-N1", "--requires=host:burst-0-0", *UNTIL_TOLD)
        site.wait_for_job(first, "RUN")
        said = site.cli.run("resize", burst, "3", "--no-wait")
        assert said.lines == [f"{burst} grows from 1 to 3 nodes"]
        daemon.end(signal.SIGKILL)
    (record,) = site.records()
    assert record.lease.nodes == 3, "the intent was on record"
    with site.cli.daemon() as daemon:
        resized(site, burst, 3)
        assert set(site.followers()) == {"burst-0-0", "burst-0-1", "burst-0-2"}
        assert site.job(first) == "RUN"
        # A job that needs what it has got runs there.
        second = site.submit("-N2", "--requires=host:burst-0-[1-2]", *UNTIL_TOLD)
        site.wait_for_job(second, "RUN")
        site.cli.run("resize", burst, "1", "--no-wait")
        wait_until(
            lambda: list(site.drained()) == ["3-4"], "the last ranks to be drained"
        )
        daemon.end(signal.SIGKILL)
    with site.cli.daemon():
        assert site.job(second) == "RUN"
        assert len(site.followers()) == 3, "a job that runs is waited for"
        site.flux("cancel", second)
        resized(site, burst, 1)
        assert set(site.followers()) == {"burst-0-0"}
        assert site.job(first) == "RUN"
        assert not site.drained()
        (site.instance.directory / "go").touch()
        site.wait_for_job(first, "COMPLETED")
        site.cli.run("down", burst)
        site.check_that_nothing_is_left()
