# SPDX-License-Identifier: MIT
"""A daemon that loses Slurm's controller while a burst comes, runs and goes.

How long the controller is away only changes how often it is asked in vain. While a
provider cannot be read, its bursts count as not seen, neither as gone nor as failed
(`burst.core.observation`), and the time for which a job is in no list begins at a list.
So the controller stays away until calls have failed, and not for a time. A daemon that
is killed does with each provider what it does in tests/flux/test_crash.py; the contract
says that a provider goes on with what it began.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.flux.crash_story import UNTIL_TOLD
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


def the_row(site: Site) -> Any:
    """Return the row of the one burst."""
    [row] = site.bursts()
    return row


def wait_for_trouble(site: Site) -> None:
    """Wait until the daemon says that it could not read the provider."""

    def trouble() -> str:
        [provider] = site.cli.status()["providers"]
        told: str = provider["trouble"]
        return told

    wait_until(trouble, lambda: f"its trouble: {the_row(site)}")


def test_a_controller_that_is_stopped_loses_no_burst_and_makes_none_twice(
    site: Site, cluster: SlurmLab
) -> None:
    site.write(deadlines={"idle": "1h"})
    for gate in ("join", "before-reap"):
        site.close_gate(gate)
    with site.cli.daemon():
        # It goes away before it has answered sbatch, and the job waits for nodes.
        cluster.slurm("sbatch", *_FULL, "--wrap=sleep inf")
        lost = cluster.lose_an_answer()
        job = site.submit("-N2", "--requires=burst", *UNTIL_TOLD)
        wait_until(lambda: not lost.exists(), "sbatch")
        with cluster.controller_away():
            wait_for_trouble(site)
        told = "waits for nodes that are in use (Resources)"
        wait_until(lambda: told in site.explain(job), lambda: the_row(site))
        cluster.slurm("scancel", "--name=others")
        # Before the followers join, which they do without it.
        burst_id = site.wait_for_burst("join")
        # Without its controller Slurm starts no task of a job that runs.
        wait_until(lambda: len(brokers(burst_id)) == 2, lambda: the_row(site))
        with cluster.controller_away():
            wait_for_trouble(site)
            site.open_gate("join")
            site.wait_for_job(job, "RUN")
            site.wait_for_burst("online")
            (site.instance.directory / "go").touch()
            site.wait_for_job(job, "COMPLETED")
        # As the burst is to be reaped.
        site.cli.run("down", burst_id, "--no-wait")
        site.wait_at_gate("before-reap")
        with cluster.controller_away():
            site.open_gate("before-reap")
            unreachable = "Unable to contact slurm controller"
            wait_until(
                lambda: unreachable in the_row(site)["note"], lambda: the_row(site)
            )
        assert site.wait_for_end(burst_id)["result"] == "canceled"
        assert len(site.bursts()) == 1
        site.check_that_nothing_is_left()
    check_that_nothing_is_left(cluster, burst_id)
