# SPDX-License-Identifier: MIT
"""What `burst watch` draws: whole frames, and what each size and answer changes."""

from __future__ import annotations

import io
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console, Group
from rich.text import Text

from burst.cli.watch_screen import HEIGHT, HELP, WIDTH, draw, share_out, wrapped
from burst.cli.watch_state import WatchState, press
from tests.cli.watch_answers import (
    NOW,
    answer,
    burst_row,
    job_row,
    offer_row,
    provider_row,
)

FRAMES = Path(__file__).parent / "frames"


@pytest.fixture(autouse=True)
def _in_utc(monkeypatch):
    """Frames have times of day."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def state_of(**changes):
    return WatchState().answered(answer(**changes))


def plain(state, width=80, height=24):
    """What a terminal of that size shows."""
    lines = draw(state, width, height)
    assert len(lines) <= height
    assert all(cell_len(line.plain) <= width for line in lines)
    return "".join(f"{line.plain.rstrip()}\n" for line in lines)


def lines_with(text, state, **size):
    return [line for line in plain(state, **size).splitlines() if text in line]


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 30), (80, 16)])
def test_a_frame_is_as_recorded(width, height):
    recorded = FRAMES / f"{width}x{height}.txt"

    assert plain(state_of(), width, height) == recorded.read_text(encoding="utf-8")


def test_a_page_is_as_recorded():
    state, _ = press(state_of(), "?", HELP)

    assert plain(state) == (FRAMES / "help.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize(("width", "height"), [(WIDTH - 1, 24), (80, HEIGHT - 1)])
def test_a_terminal_that_is_too_small_is_told_so(width, height):
    assert plain(state_of(), width, height).startswith(f"{width} columns, {height} l")


def test_before_the_first_answer_that_is_said():
    assert "the daemon is asked" in plain(WatchState())
    assert "no answer: no route; it is tried again" in plain(
        WatchState(failure="no route")
    )


def test_what_is_old_or_wrong_is_said_above_it():
    lead = {"uri": "local://", "trouble": "job manager is reloading"}
    state = state_of(daemon=None, lead=lead).change(failure="no daemon")

    assert plain(state).splitlines()[2:5] == [
        "no answer: no daemon; it is tried again",
        "the lead cannot be read: job manager is reloading",
        "no daemon serves this lead; this is what is on record",
    ]


def test_bursts_that_ended_a_while_ago_are_shown_where_that_is_wanted():
    state = state_of()

    assert lines_with("burst-3-dddddd", state) == []
    state, _ = press(state, "a", HELP)
    assert len(lines_with("burst-3-dddddd", state, height=40)) == 1


def test_a_table_shows_the_selected_row_and_where_it_is():
    state = state_of(jobs=[job_row(n) for n in range(1, 151)], pending=1000)
    for _ in range(100):
        state, _ = press(state, "down", HELP)
    (_, name) = state.selected or ("", "")

    (line,) = lines_with(f"{name} ", state)
    assert line.startswith("> ")
    assert " of 1000" in plain(state)
    assert lines_with("PROVIDER  HEALTH", state)


def test_an_idle_burst_tells_when_it_goes_before_how_it_came():
    row = burst_row(idle=40.0, down_in=260.0)
    (line,) = lines_with("burst-0-aaaaaa  gke", state_of(bursts=[row]), width=130)

    assert "idle 40s, down in 4m20s; provision 0.9s > join 12s" in line


@pytest.mark.parametrize(
    ("row", "told"),
    [
        (provider_row(), "ok           n2 4 cores at 2.50"),
        (provider_row(disabled="no quota"), "disabled     no quota"),
        (provider_row(breaker_until=NOW + 240), "paused 4m00s  n2 4 cores at 2.50"),
        (provider_row(breaker_until=NOW + 9, trouble="down"), "paused 9s  down"),
        (provider_row(breaker_until=NOW - 9), "ok  "),
        (provider_row(trouble="no answer"), "trouble  no answer"),
        (provider_row(offers=[]), "ok      -"),
        (
            provider_row(offers=[offer_row(price=0.0, set_aside_until=NOW + 61)]),
            "n2 4 cores, set aside for 1m01s",
        ),
    ],
)
def test_the_health_of_a_provider(row, told):
    (line,) = lines_with("  gke  ", state_of(providers=[row], bursts=[]))

    assert " ".join(told.split()) in " ".join(line.split())


def test_nothing_that_others_wrote_reaches_the_terminal_as_a_command():
    evil = "\x1b]0;owned\x07\x1b[2J\r\nx"
    rows = {
        "bursts": [burst_row(note=evil, jobs=[evil])],
        "jobs": [job_row(1, name=evil, why=evil, refusals=[], user=evil)],
        "providers": [provider_row(trouble=evil, disabled=evil)],
        "lead": {"uri": evil, "trouble": evil},
    }
    state = state_of(**rows).change(message=evil, failure=evil)
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, no_color=True, width=120)
    console.print(Group(*draw(state, 120, 30)))

    for sequence in ("\x1b]", "\x1b[2J", "\x07", "\r"):
        assert sequence not in screen.getvalue()
    assert "owned" in screen.getvalue()


def test_wide_characters_are_cut_by_their_columns():
    assert plain(state_of(jobs=[job_row(1, name="漢" * 60, why="字" * 99)]), 120, 30)


def test_a_long_line_of_a_page_is_broken_after_a_word():
    lines = wrapped([Text("  one two three four five"), Text("x" * 30)], 14)

    assert [line.plain for line in lines[:3]] == [
        "  one two",
        "      three",
        "      four",
    ]
    assert "".join(line.plain.strip() for line in lines[4:]) == "x" * 30


@given(st.lists(st.integers(0, 300), min_size=1, max_size=6), st.integers(-3, 80))
def test_lines_are_shared_out(wanted, room):
    shares = share_out(wanted, room)

    assert sum(shares) == min(max(0, room), sum(wanted))
    assert all(has <= want for has, want in zip(shares, wanted, strict=True))
    short = [has for has, want in zip(shares, wanted, strict=True) if has < want]
    assert not short or max(shares) - min(short) <= 1


@given(
    width=st.integers(1, 200),
    height=st.integers(1, 60),
    jobs=st.integers(0, 30),
    down=st.integers(0, 40),
)
def test_every_size_has_a_frame_that_fits(width, height, jobs, down):
    state = state_of(jobs=[job_row(n) for n in range(jobs)], pending=jobs).move(down)

    assert plain(state, width, height)
