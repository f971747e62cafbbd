# SPDX-License-Identifier: MIT
"""A job of real Flux runs on VMs of an imitation of EC2, which are deleted after it."""

from __future__ import annotations

import pytest

from tests.cli.cli_harness import open_harness
from tests.flux_instance import FLUX, MISSING, flux_instance
from tests.plugins.vm.hypervisor import Hypervisor
from tests.support.waiting import wait_until

pytestmark = [
    pytest.mark.flux,
    pytest.mark.skipif(not FLUX, reason=MISSING),
]


def test_a_job_runs_on_vms_and_they_are_deleted_after_it(hosts: Hypervisor) -> None:
    table = hosts.table(flux=FLUX)
    with flux_instance() as lead, open_harness(lead) as cli:
        cli.write(providers={"cloud": table}, deadlines={"idle": "1s"})
        with cli.daemon():
            job = lead.flux("submit", "--setattr=burstable", "-N2", "-n2", "hostname")
            wait_until(
                lambda: lead.job_line("{status}", job) == "COMPLETED",
                lambda: cli.run("explain", job).stdout,
            )
            [row] = cli.status()["bursts"]
            assert len(hosts.vms) == 2
            cli.wait_for_state(row["id"], "inactive")
            row = cli.row(row["id"])
            assert (row["result"], row["note"]) == ("completed", "idle for 1s")
        assert hosts.cloud.vms() == []
        assert list((hosts.cloud.path / "notes").iterdir()) == []
