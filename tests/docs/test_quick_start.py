# SPDX-License-Identifier: MIT
"""What the README has a newcomer install is there; what replay.md shows is printed."""

from __future__ import annotations

import re
import tomllib

import pytest

from tests.cli.cli_harness import burst
from tests.docs.doc_pages import TOP

README = (TOP / "README.md").read_text(encoding="utf-8")
REPLAY = (TOP / "docs/replay.md").read_text(encoding="utf-8")


def test_the_extras_that_are_named_are_there() -> None:
    (extras,) = re.findall(r"pip install '\.\[([a-z,]+)\]'", README)
    (more,) = re.findall(r"more extras: ([a-z, ]+)", README)
    known = tomllib.loads((TOP / "pyproject.toml").read_text(encoding="utf-8"))
    optional = known["project"]["optional-dependencies"]
    named = {*extras.split(","), *more.split(", ")}
    assert named == optional.keys() - {"dev"}


@pytest.mark.no_cover
def test_the_replay_prints_what_is_shown_of_it() -> None:
    (shown,) = re.findall(r"\n(never  .*?)\n```", REPLAY, re.DOTALL)
    rows = [line.split() for line in shown.splitlines()]
    # Of a frontier those that the page shows: all of it takes half a minute.
    worths = [word for row in rows if row[0] == "worth" for word in ("--worth", row[1])]
    assert len(worths) >= 6
    out = burst("replay", str(TOP / "examples/hpc2n.swf.gz"), *worths).stdout
    printed = [line.split() for line in out.splitlines()]
    for row in rows:
        assert any(line[: len(row)] == row for line in printed), row
