# SPDX-License-Identifier: MIT
"""A small ensemble in a file, and commands about it."""

from __future__ import annotations

from pathlib import Path

import click.testing
import pytest

from burst.cli import group

FILE = """\
name = "lammps"
[limits]
nodes = 8
money = 5.0
time = "2h"
[[members]]
name = "small"
max = 4
algorithm = { name = "workload-demand", options.scaleChecks = 3 }
[[members.jobs]]
name = "two"
command = "lmp"
count = 5
nodes = 2
duration = "10m"
[[members]]
name = "rules"
[[members.algorithm]]
name = "triggers"
options.rules = [{ trigger = "start", action = { name = "end" } }]
[[jobs]]
name = "any"
command = "true"
count = 2
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "burst.toml").write_text('[providers.here]\ntype = "local"\n')
    (tmp_path / "e.toml").write_text(FILE)
    return tmp_path


def run(place: Path, command: str, *options: str) -> click.testing.Result:
    arguments = ["ensemble", command, str(place / "e.toml"), *options]
    arguments += ["-c", str(place / "burst.toml")]
    runner = click.testing.CliRunner()
    return runner.invoke(group, arguments, catch_exceptions=False)
