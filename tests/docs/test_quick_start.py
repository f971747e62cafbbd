# SPDX-License-Identifier: MIT
"""What the README has a newcomer type works after what it has them install."""

from __future__ import annotations

import re
import tomllib

import pytest

from tests.cli.cli_harness import burst
from tests.docs.doc_pages import TOP

README = (TOP / "README.md").read_text(encoding="utf-8")


def test_what_is_installed_is_enough_for_the_commands_that_are_shown() -> None:
    (extras,) = re.findall(r"pip install '\.\[([a-z,]+)\]'", README)
    known = tomllib.loads((TOP / "pyproject.toml").read_text(encoding="utf-8"))
    optional = known["project"]["optional-dependencies"]
    assert set(extras.split(",")) <= optional.keys()
    assert any("matplotlib" in line for line in optional["plot"])
    assert "burst replay examples/hpc2n.swf.gz --frontier --picture" in README
    assert "plot" in extras.split(",")


def test_the_lead_that_is_made_first_lets_neither_jobs_nor_lent_nodes_wait() -> None:
    assert "burst lead init lead --mode scheduler" in README


@pytest.mark.no_cover
def test_the_replay_prints_what_is_shown_of_it() -> None:
    (shown,) = re.findall(r"\n(never  .*?)\n```", README, re.DOTALL)
    rows = [line.split() for line in shown.splitlines()]
    out = burst("replay", str(TOP / "examples/hpc2n.swf.gz"), "--frontier").stdout
    printed = [line.split() for line in out.splitlines()]
    for row in rows:
        assert any(line[: len(row)] == row for line in printed), row
