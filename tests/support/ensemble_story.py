# SPDX-License-Identifier: MIT
"""An ensemble of two members from its start to its end, whatever the lead is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.cli.cli_harness import CliHarness
from tests.support.waiting import wait_until

FILE = """
name = "sweep"
checkSeconds = "0.3s"
growWindow = "0.5s"
shrinkWindow = "0.5s"

[[members]]
name = "md"
provider = "local"
min = 1
max = 3
jobs = [{ name = "step", command = "sleep 1", count = 6 }]
algorithm = [
    { name = "workload-demand", options = { scaleUpStrategy = "total" } },
    { name = "stop", options = { successTarget = 6 } },
]

[[members]]
name = "post"
provider = "local"
min = 1
max = 1
jobs = [{ name = "plot", command = "false", count = 2 }]
algorithm = [
    { name = "more-jobs", options = {} },
    { name = "stop", options = { failureTarget = 2 } },
]
"""


def ensemble(cli: CliHarness) -> Any:
    """The one ensemble, as `burst ensemble status --json` has it."""
    (row,) = cli.run("ensemble", "status", "--json").json["ensembles"]
    return row


def until_told(directory: Path) -> tuple[Path, Path]:
    """Return a command that runs until a file is made, and that file."""
    step, go = directory / "step.sh", directory / "go"
    step.write_text(f"#!/bin/sh\nwhile [ ! -e {go} ]; do sleep 0.1; done\n")
    step.chmod(0o700)
    return step, go


def run_to_its_end(cli: CliHarness, directory: Path) -> dict[str, Any]:
    """Start the ensemble, see it grow and end by itself; return how large it was.

    Its jobs run until it had a look at the ensemble as large as it may be.
    """
    file = directory / "sweep.toml"
    step, go = until_told(directory)
    file.write_text(FILE.replace("sleep 1", str(step)))
    assert "sweep" in cli.run("ensemble", "check", str(file)).lines[0]
    said = cli.run("ensemble", "up", str(file))
    assert said.lines == ["ensemble sweep is started: md, post"]
    largest = 0

    def has_three() -> bool:
        nonlocal largest
        largest = nodes_up(cli)
        return largest >= 3

    wait_until(has_three, lambda: f"three nodes: {ensemble(cli)}")
    go.touch()
    wait_until(
        lambda: ensemble(cli)["state"] == "ended",
        lambda: f"its end: {ensemble(cli)}",
    )
    return {"largest": largest, "row": ensemble(cli)}


def nodes_up(cli: CliHarness) -> int:
    found: int = ensemble(cli)["members"]["md"].get("nodes", {}).get("node_up_count", 0)
    return found
