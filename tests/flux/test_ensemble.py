# SPDX-License-Identifier: MIT
"""An ensemble on real Flux with the local provider."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cli.cli_harness import DaemonProcess
from tests.flux.site import Site
from tests.intake.modes import CONFINING
from tests.support.ensemble_story import ensemble, until_told
from tests.support.waiting import wait_until

pytestmark = pytest.mark.flux


FILE = """
name = "sweep"
checkSeconds = "0.3s"
growWindow = "0.5s"
shrinkWindow = "0.5s"

[[members]]
name = "md"
provider = "local"
min = 1
max = 2
jobs = [{{ name = "step", command = "{command}", count = 4 }}]

[members.algorithm]
name = "workload-demand"
options = {{ scaleUpChecks = 1, terminateChecks = 5 }}
"""


def up_until_told(site: Site) -> Path:
    """Start an ensemble whose jobs run until the file is made that is returned."""
    step, go = until_told(site.instance.directory)
    file = site.instance.directory / "sweep.toml"
    file.write_text(FILE.format(command=step))
    said = site.cli.run("ensemble", "up", str(file))
    assert said.status == 0, said
    return go


def put_on_disk(site: Site) -> None:
    """Have on the lead's disk what it knows of the jobs that run: that lags behind."""
    running = site.flux("jobs", "--filter=running", "-no", "{id}").split()
    for job in running:
        site.wait_for_start(job)
    site.write_kvs()


def member(site: Site) -> Any:
    return ensemble(site.cli)["members"]["md"]


def wait_for_running(site: Site, jobs: int) -> None:
    """Wait until so many run, and their shells, which come after the state RUN."""

    def run() -> bool:
        its = member(site)
        events = its["jobs"]["step"]["tally"]["events"] if "jobs" in its else {}
        running = its.get("queue", {}).get("run", 0)
        return bool(running == jobs and events.get("start", 0) >= jobs)

    wait_until(run, lambda: f"{jobs} jobs to run: {ensemble(site.cli)}")


def wait_for_end(site: Site) -> dict[str, int]:
    """Return how its jobs ended, once it has ended and nothing is left."""
    wait_until(
        lambda: ensemble(site.cli)["state"] == "ended",
        lambda: f"its end: {ensemble(site.cli)}",
    )
    site.check_that_nothing_is_left()
    tally = member(site)["jobs"]["step"]["tally"]
    names = [name for name in site.names() if "/md/step/" in name]
    assert len(names) == len(set(names)) == tally["events"]["submit"], "each job once"
    return {key: tally[key] for key in ("success", "failed")}


def test_it_lives_through_a_lead_and_a_daemon_that_are_killed(site: Site) -> None:
    # A burst that had not joined counts as one that failed, and its offer is set aside.
    site.write(limits={"cooldown": "0.1s"})
    with site.cli.daemon() as daemon:
        go = up_until_told(site)
        wait_for_running(site, 2)
        put_on_disk(site)
        daemon.end(signal.SIGKILL)
    site.instance.kill()
    site.instance.start()
    with site.cli.daemon():
        go.touch()
        found = wait_for_end(site)
        assert found["success"] + found["failed"] == 4, "none is lost"
        # What ran has failed; what waited runs on new nodes.
        assert found["failed"] >= 1, found
        assert found["success"] >= 1, found


def test_in_mode_queue_its_jobs_are_moved_to_its_nodes(site: Site) -> None:
    """Fluxion needs that mode. Flux moves no job that names its nodes."""
    site.instance.reload_config(CONFINING["queue"])
    site.flux("queue", "start", "--queue=batch")
    site.write(intake={"mode": "queue"})
    with site.cli.daemon():
        go = up_until_told(site)
        wait_for_running(site, 2)
        go.touch()
        assert wait_for_end(site) == {"success": 4, "failed": 0}


@contextmanager
def running(site: Site) -> Iterator[DaemonProcess]:
    """`burst ensemble run`; it is ended in any case."""
    with DaemonProcess(site.cli, words=("ensemble", "run")) as process:
        process.says("runs the ensembles of")
        yield process


def test_in_a_process_of_its_own_it_survives_the_daemon_and_goes_on_from_its_records(
    site: Site,
) -> None:
    site.write(ensemble={"in_daemon": False})
    with running(site) as first:
        with site.cli.daemon() as daemon:
            refused = DaemonProcess(site.cli, words=("ensemble", "run"))
            assert refused.wait() == 1
            assert "another process serves burst-ensemble" in refused.log
            go = up_until_told(site)
            wait_for_running(site, 2)
            daemon.end(signal.SIGKILL)
        # It answers without a daemon, and takes orders, by what is on record.
        shown = ensemble(site.cli)
        assert shown["state"] == "running"
        assert shown["members"]["md"]["member"]["nodes"] == 2
        assert site.cli.run("ensemble", "resize", "sweep", "md", "2").status == 0
        with site.cli.daemon():
            wait_for_running(site, 2)
            first.end(signal.SIGKILL)
            alone = site.cli.run("ensemble", "status")
            assert "ensembles do not run in the daemon" in alone.error
            with running(site):
                wait_for_running(site, 2)
                go.touch()
                assert wait_for_end(site) == {"success": 4, "failed": 0}
