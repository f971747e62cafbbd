# SPDX-License-Identifier: MIT
"""`burst resize`, as a person types it, with followers that are processes."""

from __future__ import annotations

from burst.model.lead import JobState
from tests.cli.conftest import Shared
from tests.contract.instance import SLEEP
from tests.support.waiting import wait_until


def test_a_burst_grows_and_shrinks_while_a_job_runs_on_it(shared: Shared) -> None:
    instance, cli, _ = shared
    burst = cli.run("request", "-N1").lines[0].rpartition(" ")[2]
    job = instance.submit(nodes=1, command=SLEEP)
    wait_until(lambda: instance.info(job).state is JobState.RUN, "the job to run")
    said = cli.run("resize", burst, "3", "--note", "for the afternoon").lines
    assert said[0] == f"{burst} grows from 1 to 3 nodes"
    assert said[1].startswith(f"{burst} has 3 nodes, burst-0-[0-2], after ")
    assert cli.row(burst)["ranks"] == "2-4"
    assert cli.row(burst)["online"] == 3
    assert "for the afternoon" in cli.run("explain", burst).stdout
    assert cli.run("resize", burst, "3").lines[0] == f"{burst} has 3 nodes"
    said = cli.run("resize", burst, "1").lines
    assert said[0] == f"{burst} shrinks from 3 to 1 nodes"
    assert said[1].startswith(f"{burst} has 1 nodes, burst-0-0, after ")
    instance.cancel(job)
    cli.run("down", burst)
    assert cli.row(burst)["result"] == "canceled"
