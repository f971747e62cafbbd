# SPDX-License-Identifier: MIT
"""The next hours of rank slots, as they are drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from burst.cli.picture import PictureError
from burst.cli.plan import plan
from burst.cli.plan_timeline import timeline_lines, write_picture
from burst.model.decision import moment

NOW = 1_000_000.0
HOUR = 3600.0


def clock(seconds: float) -> str:
    return moment(seconds).rpartition(" ")[2]


def row(
    holder: str, begins: float = 0.0, until: float | None = None, **more: Any
) -> dict[str, Any]:
    fields = {"slot": "burst-0", "ranks": "2-3", "burst": None, "jobs": [], **more}
    ends = None if until is None else NOW + until
    return {"holder": holder, "from": NOW + begins, "until": ends, **fields}


BURST: dict[str, Any] = {"burst": "burst-0-ab12", "jobs": ["f1", "f2"]}
LATER: dict[str, Any] = {"slot": "burst-1"}
ROWS = [
    row("burst", until=HOUR, **BURST),
    row("promised", HOUR, jobs=["f3"], known=True),
    row("promised", 0.0, HOUR, jobs=["f3"], known=False, **LATER),
    row("promised", 0.0, jobs=["f3"], known=True, **LATER),
    row("free", ranks="4", **LATER),
    row("closed", ranks="5", **LATER),
    row("planned", ranks="6-7", burst="burst-1-cd34", jobs=["f4"], **LATER),
    row("burst", until=0.0, ranks="8", burst="burst-1-ef56", **LATER),
    row("burst", ranks="9", burst="burst-1-ab78", **LATER),
    row("ending", ranks="10", **LATER),
    row("ending", ranks="10", burst="burst-1-ab78", **LATER),
    row("closed", ranks="11", **{**BURST, **LATER}),
    row("burst", ranks="12", burst="b", jobs=["f1", "f2", "f3", "f4"], **LATER),
]


def test_each_row_is_a_bar_and_who_has_it() -> None:
    head, *lines = timeline_lines(ROWS, NOW, 120)
    assert head.split() == ["slot", "ranks", clock(NOW), clock(NOW + 1.2 * HOUR)]
    labels = [line[120 - 44 :] for line in lines]
    assert labels == [
        f"burst-0-ab12 for f1 f2, until {clock(NOW + HOUR)}",
        f"kept for f3 from about {clock(NOW + HOUR)}",
        f"kept for f3 until {clock(NOW + HOUR)}, as no end is known",
        "kept for f3 as soon as they are free",
        "free",
        "closed: drained, excluded or of unknown use",
        "burst-1-cd34 would get the ranks for f4, without a known end",
        "burst-1-ef56, without jobs",
        "burst-1-ab78, without a known end",
        "free soon: the burst that had the ranks has ended",
        "free soon: burst-1-ab78 shrinks",
        "closed: burst-0-ab12 is quarantined",
        "b for f1 f2 and 2 more, without a known end",
    ]
    bars = [line[16 : -len(label)] for line, label in zip(lines, labels, strict=True)]
    assert [bar.strip()[:1] for bar in bars] == [*"#:::.x+##--x#"]
    assert [bar.rstrip()[-1] for bar in bars] == [*"#>:>.x>#>--x>"]
    # A bar begins where the one before it ends; what is over is one mark.
    assert bars[0].rindex("#") + 1 == bars[1].index(":")
    assert bars[7].count("#") == 1
    assert lines[1].startswith("         2-3")


def test_far_times_are_told_with_their_day_and_a_day_is_drawn_at_most() -> None:
    far = [row("burst", until=40 * HOUR, **BURST)]
    head, line = timeline_lines(far, NOW, 20)
    day = moment(NOW + 24 * HOUR).partition("-")[2]
    assert head.endswith(f"{clock(NOW)} {day}")
    assert line.endswith(moment(NOW + 40 * HOUR))
    head, _ = timeline_lines([row("free")], NOW, 80)
    assert head.split()[-1] == clock(NOW + HOUR)


def test_the_same_is_a_picture(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / "plan.svg"
    write_picture(path, ROWS, NOW)
    assert "<svg" in path.read_text()
    with pytest.raises(PictureError, match="cannot be written"):
        write_picture(tmp_path / "nowhere" / "plan.svg", ROWS, NOW)
    for name in ("-", "plan", "plan.txt"):
        with pytest.raises(PictureError, match="cannot be written"):
            write_picture(tmp_path / name, ROWS, NOW)
    assert [each.name for each in tmp_path.iterdir()] == ["plan.svg"]


@pytest.mark.parametrize("other", [["--json"], ["-o", "{id}"]])
@pytest.mark.parametrize("drawn", [["--timeline"], ["--svg", "plan.svg"]])
def test_it_is_drawn_or_listed(drawn: list[str], other: list[str]) -> None:
    done = CliRunner().invoke(plan, [*drawn, *other])
    assert done.exit_code == 2
    assert "cannot be used with --json or -o" in done.output
