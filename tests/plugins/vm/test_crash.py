# SPDX-License-Identifier: MIT
"""kill -9 of the daemon at each step of a burst of VMs."""

from __future__ import annotations

import signal

import pytest

from tests.cli.cli_harness import open_harness
from tests.flux.crash_story import kill_at_each_step
from tests.flux.site import open_site
from tests.flux_instance import FLUX, MISSING, flux_instance
from tests.flux_pool import FluxPool
from tests.plugins.vm.hypervisor import Hypervisor
from tests.plugins.vm.moto_cloud import MotoCloud
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.flux, pytest.mark.skipif(not FLUX, reason=MISSING)]


def test_a_burst_goes_on_under_the_next_daemon_at_each_step_of_its_life(
    flux_pool: FluxPool, hosts: Hypervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_site(pool=flux_pool, table=hosts.table()) as site:
        site.offer_provider(monkeypatch)
        # A VM fetches its files from a daemon: from the next one, if need be.
        kill_at_each_step(site, start_alone=False)
    check_that_nothing_is_left(hosts)


def test_a_daemon_killed_in_a_request_makes_no_second_vms(hosts: Hypervisor) -> None:
    """The cloud makes them, and nobody hears its answers."""
    assert isinstance(hosts.cloud, MotoCloud)
    with flux_instance() as lead, open_harness(lead) as cli:
        cli.write(providers={"cloud": hosts.table(flux=FLUX)}, deadlines={"idle": "1s"})
        with cli.daemon() as daemon:
            hosts.cloud.when_made = lambda: daemon.process.send_signal(signal.SIGKILL)
            job = lead.flux("submit", "--setattr=burstable", "-N2", "-n2", "hostname")
            assert daemon.wait() == -signal.SIGKILL
        assert hosts.cloud.vms()
        with cli.daemon():
            wait_until(
                lambda: lead.job_line("{status}", job) == "COMPLETED",
                lambda: cli.run("explain", job).stdout,
            )
            [row] = cli.status()["bursts"]
            cli.wait_for_state(row["id"], "inactive")
            row = cli.row(row["id"])
            assert (row["result"], row["note"]) == ("completed", "idle for 1s")
    check_that_nothing_is_left(hosts)


def check_that_nothing_is_left(hosts: Hypervisor) -> None:
    assert len(hosts.vms) == 2, "no VM was made twice"
    assert hosts.cloud.vms() == []
    assert list((hosts.cloud.path / "notes").iterdir()) == []
