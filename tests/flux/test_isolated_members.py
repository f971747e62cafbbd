# SPDX-License-Identifier: MIT
"""A joined and an isolated member on real Flux; each job of the latter has a real
instance of its own.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.flux import instances
from tests.flux.site import Site
from tests.flux_instance import FLUX
from tests.support.ensemble_story import ensemble
from tests.support.waiting import wait_until

pytestmark = pytest.mark.flux

FILE = """
name = "both"
checkSeconds = "0.3s"
growWindow = "0.5s"
shrinkWindow = "0.5s"
limits.nodes = 4

[[members]]
name = "near"
provider = "local"
max = 2
jobs = [{{ name = "step", command = "sleep 1", count = 3 }}]

[[members]]
name = "far"
provider = "far"
mode = "isolated"
max = 3

[[members.algorithm]]
name = "workload-demand"
options = {{ order = "", scaleUpStrategy = "total" }}

[[members.algorithm]]
name = "stop"
options = {{ successTarget = 4, failureTarget = 9 }}

# The first: it has begun when the others have succeeded, which ends the member.
[[members.jobs]]
name = "bad"
command = "sh -c 'echo bad >> {log}; exit 3'"

[[members.jobs]]
name = "one"
command = "sh -c 'echo one >> {log}; sleep 3'"
count = 3

[[members.jobs]]
name = "two"
command = "sh -c 'echo two $(flux getattr size) >> {log}; echo told'"
nodes = 2
"""


class Both:
    """The ensemble, and what its isolated jobs have written."""

    def __init__(self, site: Site, directory: Path) -> None:
        self.site, self.log = site, directory / "log"
        self.file, self.home = directory / "both.toml", directory / "far"
        instances.install(site.cli.directory / "site")
        far = {"type": instances.TYPE, "dir": str(self.home), "flux": FLUX}
        local = {**site.cli.options, "type": "local", "flux": FLUX}
        site.cli.write(providers={"local": local, "far": far})

    def up(self) -> None:
        self.file.write_text(FILE.format(log=self.log))
        self.site.cli.run("ensemble", "check", str(self.file))
        assert self.site.cli.run("ensemble", "up", str(self.file)).status == 0

    def wait_for_its_end(self) -> None:
        """Wait for it; until then no more nodes are paid than the file allows."""

        def over() -> bool:
            row = ensemble(self.site.cli)
            paid = {name: self._paid(each) for name, each in row["members"].items()}
            assert sum(paid.values()) <= 4
            assert paid["far"] <= 3
            return bool(row["state"] == "ended")

        wait_until(over, lambda: f"its end: {ensemble(self.site.cli)}")

    def _paid(self, member: Any) -> int:
        return sum(
            burst["nodes"]
            for burst in member["member"]["bursts"]
            if burst["state"] != "inactive"
        )

    def check_each_ran_once(self) -> None:
        """By what the jobs have written, and by what the lead says of them."""
        ran = sorted(self.log.read_text().splitlines())
        # Of the job of two nodes both tasks.
        assert ran == ["bad", "one", "one", "one", "two 2", "two 2"]
        form = "{name}|{status}|{returncode}|{nodelist}"
        told = self.site.flux("jobs", "-a", "-n", "-o", form).splitlines()
        far = sorted(line for line in told if line.startswith("both.far."))
        ends = [line.partition(".far.")[2].partition("|") for line in far]
        assert [(name[:3], rest) for name, _, rest in ends] == [
            ("bad", "FAILED|3|"),
            *[("one", "COMPLETED|0|")] * 3,
            ("two", "COMPLETED|0|"),
        ]

    def check_that_nothing_is_left(self) -> None:
        self.site.check_that_nothing_is_left()
        assert list(self.home.iterdir()) == []


@pytest.fixture
def both(site: Site, tmp_path: Path) -> Both:
    return Both(site, tmp_path)


def test_each_job_runs_once_in_an_instance_of_its_own_though_a_daemon_is_killed(
    both: Both,
) -> None:
    with both.site.cli.daemon() as daemon:
        both.up()
        wait_until(
            both.log.exists,
            lambda: f"a job to run: {ensemble(both.site.cli)}",
        )
        daemon.process.kill()
        daemon.process.wait()
    with both.site.cli.daemon():
        both.wait_for_its_end()
        both.check_each_ran_once()
        row = ensemble(both.site.cli)["members"]
        assert "4 jobs have succeeded" in row["far"]["member"]["why"]
        jobs = row["far"]["jobs"]
        assert jobs["one"]["tally"]["duration"]["min"] >= 3.0
        assert jobs["bad"]["tally"]["failed"] == 1
        both.check_that_nothing_is_left()
