# SPDX-License-Identifier: MIT
"""A daemon that loses Slurm's controller, or is killed, in each state of a burst.

How long the controller is away only changes how often it is asked in vain. While a
provider cannot be read, its bursts count as not seen, neither as gone nor as failed
(`burst.core.observation`), and the time for which a job is in no list begins at a list.
So the controller stays away until calls have failed, and not for a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.flux.crash_story import UNTIL_TOLD, kill_at_each_step
from tests.flux.site import Site, open_site
from tests.flux_instance import FLUX, MISSING
from tests.flux_pool import FluxPool
from tests.slurm.slurm_lab import SlurmLab
from tests.support.brokers import brokers
from tests.support.waiting import wait_until

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.flux,
    pytest.mark.skipif(not FLUX, reason=MISSING),
]

_FULL = ("--nodes=4", "--exclusive", "--job-name=others", "--output=/dev/null")


@pytest.fixture
def site(
    cluster: SlurmLab, flux_pool: FluxPool, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Site]:
    table = {
        "type": "slurm",
        "dir": str(cluster.dir),
        "time": "1h",
        "cores": 4,
        "gpus": 1,
        "max_nodes": 4,
    }
    with open_site(pool=flux_pool, table=table) as site:
        site.offer_provider(monkeypatch)
        try:
            yield site
        finally:
            cluster.cancel_all()


def check_that_nothing_is_left(cluster: SlurmLab, burst_id: str) -> None:
    """Fail if there is more than one job of the burst, or a trace of it."""
    names = cluster.slurm("squeue", "--noheader", "--states=all", "--format=%j")
    assert names.count(burst_id) == 1
    assert cluster.jobs() == []
    assert list(cluster.dir.iterdir()) == []
    assert list(Path("/tmp").glob(f"{burst_id}-*")) == []


def test_a_burst_goes_on_under_the_next_daemon_at_each_step_of_its_life(
    site: Site, cluster: SlurmLab
) -> None:
    check_that_nothing_is_left(cluster, kill_at_each_step(site))


class Outage:
    """A job's burst, and the cluster whose controller goes away."""

    def __init__(self, site: Site, cluster: SlurmLab) -> None:
        self.site = site
        self.cluster = cluster
        self.job = ""

    def submit(self) -> None:
        """Submit a job that runs until it is told to end."""
        self.job = self.site.submit("-N2", "--requires=burst", *UNTIL_TOLD)

    def run(self) -> None:
        """Have the job run on its burst."""
        self.submit()
        self.site.wait_for_job(self.job, "RUN")
        self.site.wait_for_burst("online")

    def end_job(self) -> None:
        """Have the job end, if there is one."""
        (self.site.instance.directory / "go").touch()
        if self.job:
            self.site.wait_for_job(self.job, "COMPLETED")

    @property
    def row(self) -> Any:
        """Of the one burst."""
        [row] = self.site.bursts()
        return row

    def down(self) -> None:
        """Take the burst down, without waiting for that."""
        self.site.cli.run("down", self.row["id"], "--no-wait")

    def told(self) -> None:
        """Wait until the daemon says that it could not read the provider."""
        wait_until(self._trouble, lambda: f"its trouble: {self.row}")

    def call_failed(self) -> None:
        """Wait until the call of the burst has failed, and is told."""
        unreachable = "Unable to contact slurm controller"
        wait_until(lambda: unreachable in self.row["note"], lambda: self.row)

    def _trouble(self) -> str:
        [provider] = self.site.cli.status()["providers"]
        trouble: str = provider["trouble"]
        return trouble


def provision(outage: Outage) -> Iterator[None]:
    """It is away when `provision` is called."""
    outage.site.close_gate("before-provision")
    outage.submit()
    outage.site.wait_at_gate("before-provision")
    yield
    outage.site.open_gate("before-provision")
    outage.call_failed()


def pending(outage: Outage) -> Iterator[None]:
    """It goes away before it has answered sbatch, and the job waits for nodes."""
    outage.cluster.slurm("sbatch", *_FULL, "--wrap=sleep inf")
    lost = outage.cluster.lose_an_answer()
    outage.submit()
    wait_until(lambda: not lost.exists(), "sbatch")
    yield
    outage.told()


def starting(outage: Outage) -> Iterator[None]:
    """It goes away before the followers join, which they do without it."""
    outage.site.close_gate("join")
    outage.submit()
    burst_id = outage.site.wait_for_burst("join")
    # Without its controller Slurm starts no task of a job that runs.
    wait_until(lambda: len(brokers(burst_id)) == 2, lambda: outage.row)
    yield
    outage.told()
    outage.site.open_gate("join")
    outage.site.wait_for_job(outage.job, "RUN")


def idle(outage: Outage) -> Iterator[None]:
    assert outage.site.cli.run("request", "-N2").status == 0
    outage.site.wait_for_burst("online")
    yield
    outage.told()


def busy(outage: Outage) -> Iterator[None]:
    outage.run()
    yield
    outage.told()
    assert outage.site.job(outage.job) == "RUN"


def draining(outage: Outage) -> Iterator[None]:
    """Its job ends while it is away, so that the burst is to be reaped."""
    outage.run()
    outage.down()
    outage.site.wait_for_burst("drain")
    yield
    outage.told()
    outage.end_job()
    outage.site.wait_for_burst("reap")
    outage.call_failed()


def reaping(outage: Outage) -> Iterator[None]:
    outage.site.close_gate("before-reap")
    outage.run()
    outage.end_job()
    outage.down()
    outage.site.wait_at_gate("before-reap")
    yield
    outage.site.open_gate("before-reap")
    outage.call_failed()


@pytest.mark.parametrize(
    "state", [provision, pending, starting, idle, busy, draining, reaping]
)
def test_a_controller_that_is_stopped_loses_no_burst_and_makes_none_twice(
    site: Site, cluster: SlurmLab, state: Callable[[Outage], Iterator[None]]
) -> None:
    site.write(deadlines={"idle": "1h"})
    outage = Outage(site, cluster)
    with site.cli.daemon():
        steps = state(outage)
        next(steps)
        with cluster.controller_away():
            next(steps, None)
        if state is pending:
            told = "waits for nodes that are in use (Resources)"
            wait_until(lambda: told in site.explain(outage.job), lambda: outage.row)
            cluster.slurm("scancel", "--name=others")
        if outage.job and state not in (draining, reaping):
            site.wait_for_job(outage.job, "RUN")
        outage.end_job()
        if state not in (draining, reaping):
            outage.down()
        burst_id = outage.row["id"]
        assert site.wait_for_end(burst_id)["result"] == "canceled"
        assert len(site.bursts()) == 1
        site.check_that_nothing_is_left()
    check_that_nothing_is_left(cluster, burst_id)
