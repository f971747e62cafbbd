# SPDX-License-Identifier: MIT
"""What each key of `burst watch` does, and how keys are read of bytes."""

from __future__ import annotations

import os
import pty
import termios
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from burst.cli.terminal_keys import TerminalKeys, split_keys
from burst.cli.watch_screen import HELP
from burst.cli.watch_state import WatchState, press, told
from tests.cli.watch_answers import answer, burst_row, job_row, provider_row, slot_row


def state_of(**changes):
    return WatchState().answered(answer(**changes))


def pressed(state, *keys):
    """Return the state after these keys, and what the last one asks."""
    call = None
    for key in keys:
        state, call = press(state, key, HELP)
    return state, call


def select(state, kind):
    """Select the first row of a kind."""
    while state.selected is None or state.selected[0] != kind:
        state, _ = pressed(state, "tab")
    return state


def text(state):
    return "\n".join(line.plain for line in state.page or ())


def test_the_first_row_is_selected_and_keys_move_on():
    state = state_of()

    assert state.selected == ("burst", "burst-0-aaaaaa")
    assert pressed(state, "down", "j")[0].selected == ("burst", "burst-2-cccccc")
    assert pressed(state, "j", "k")[0].selected == state.selected
    assert pressed(state, "up")[0].selected == state.selected
    assert pressed(state, "end")[0].selected == ("budget", "everything, per week")
    assert pressed(state, "end", "tab")[0].selected == state.selected
    assert pressed(state, "end", "home")[0].selected == state.selected
    assert pressed(state, "page-down", "page-up")[0].selected == state.selected


def test_a_row_stays_selected_wherever_it_is():
    state, _ = pressed(select(state_of(), "job"), "down")
    assert state.selected == ("job", "ƒjob2")

    state = state.answered(answer(jobs=[job_row(n) for n in (9, 8, 2)]))
    assert state.selected == ("job", "ƒjob2")
    state = state.answered(answer(jobs=[job_row(n) for n in (9, 8, 7)]))
    assert state.selected == ("job", "ƒjob7")


def test_where_nothing_is_no_key_does_anything():
    nothing: dict[str, Any] = {
        "bursts": [],
        "jobs": [],
        "slots": [],
        "providers": [],
        "budgets": [],
    }
    for state in (WatchState(), state_of(**nothing)):
        for key in ("up", "tab", "enter", "d", "r", "x", "escape"):
            after, call = pressed(state, key)
            assert call is None
            assert after.page is None
            assert not after.over


def test_a_job_or_burst_is_explained_by_the_daemon():
    _, call = pressed(state_of(), "enter")
    assert (call.method, call.payload) == ("explain", {"id": "burst-0-aaaaaa"})
    _, call = pressed(select(state_of(), "job"), "e")
    assert call.payload == {"id": "ƒjob1"}
    _, call = pressed(select(state_of(), "slot"), "e")
    assert call.payload == {"id": "burst-0-aaaaaa"}


def test_what_is_explained_is_read_until_q():
    state, call = pressed(select(state_of(), "job"), "e")
    found: dict[str, Any] = {
        "id": "ƒjob1",
        "state": "sched",
        "needs": "",
        "why": "it waits\x1b[2J\nfor long",
        "here": None,
        "held": None,
        "refusals": [],
        "bursts": [],
    }
    state = told(state, call, found)

    assert "ƒjob1: sched\n" in text(state)
    assert "it waits\N{REPLACEMENT CHARACTER}[2J for long" in text(state)
    assert pressed(state, "d", "r")[0].page is not None
    assert pressed(state, *["down"] * 99)[0].offset == len(state.page or ()) - 1
    assert pressed(state, "down", "up")[0].offset == 0
    state, _ = pressed(state, "q")
    assert state.page is None
    assert not state.over


@pytest.mark.parametrize(
    ("kind", "rows", "lines"),
    [
        ("slot", {"slots": [slot_row(state="drained")]}, ["drained", "burst-0-[0-3]"]),
        ("budget", {}, ["budget everything, per week: 287.50 of 300.00"]),
        (
            "provider",
            {"providers": [provider_row(disabled="no quota", trouble="late")]},
            ["burst enable gke", "late", "9 of 10 within 2m00s"],
        ),
        (
            "provider",
            {"providers": [provider_row(breaker_until=1_700_000_240.0)]},
            ["no new bursts until 2023-11-1"],
        ),
    ],
)
def test_of_other_rows_the_last_answer_tells(kind, rows, lines):
    state, call = pressed(select(state_of(**rows), kind), "enter")

    assert call is None
    assert all(line in text(state) for line in lines)


def test_a_burst_is_taken_down_after_a_y_alone():
    state, call = pressed(state_of(), "d")
    assert (state.confirm, call) == ("burst-0-aaaaaa", None)

    for key in ("n", "enter", "q", "escape", "Y"):
        refused, call = pressed(state, key)
        assert call is None
        assert refused.message == "burst-0-aaaaaa is left as it is"
        assert (refused.confirm, refused.over) == (None, False)
    done, call = pressed(state, "y")
    assert (call.method, call.payload["burst"]) == ("down", "burst-0-aaaaaa")
    assert done.confirm is None
    message = told(done, call, {"burst": "burst-0-aaaaaa"}).message
    assert message == "burst-0-aaaaaa is being taken down"


def test_the_burst_that_is_asked_about_is_the_one_that_is_taken_down():
    state, _ = pressed(state_of(), "d")
    state = state.answered(answer(bursts=[burst_row("burst-9-zzzzzz")]))

    _, call = pressed(state, "y")
    assert call.payload["burst"] == "burst-0-aaaaaa"


def test_the_burst_of_a_slot_is_taken_down_and_of_a_free_one_nothing():
    state = select(state_of(), "slot")

    assert pressed(state, "d")[0].confirm == "burst-0-aaaaaa"
    free = pressed(state, "down", "d")[0]
    assert (free.confirm, free.message) == (None, "select a burst to take it down")


def test_a_held_job_is_released():
    state, call = pressed(select(state_of(), "job"), "r")
    assert (call.method, call.payload) == ("release", {"ids": ["ƒjob1"]})
    assert told(state, call, {"released": ["ƒjob1"]}).message == "released: ƒjob1"
    assert told(state, call, {"released": []}).message.endswith("nothing is held")

    free = select(state_of(jobs=[job_row(1, held=None)]), "job")
    assert pressed(free, "r")[0].message == "ƒjob1 is not held"
    assert pressed(state_of(), "r")[0].message == "select a job to release it"


def test_q_quits_and_all_bursts_are_shown_and_hidden_again():
    assert pressed(state_of(), "q")[0].over
    state, _ = pressed(state_of(), "a")
    assert (state.everything, state.message) == (True, "all bursts on record are shown")
    assert not pressed(state, "a")[0].everything


@pytest.mark.parametrize(
    ("bytes_", "keys"),
    [
        ("jk", ["j", "k"]),
        ("\x1b[A\x1b[6~\tq", ["up", "page-down", "tab", "q"]),
        ("\x1bOB\r", ["down", "enter"]),
        ("\x1b[1;5Cq", ["q"]),
        ("\x1bq", ["escape", "q"]),
        ("ƒ", ["ƒ"]),
    ],
)
def test_keys_are_told_apart(bytes_, keys):
    assert split_keys(bytes_) == (keys, "")


@given(st.integers(0, 9))
def test_where_the_bytes_are_parted_changes_nothing(at):
    text = "\x1b[5~\x1bOAjq"
    keys, rest = split_keys(text[:at])
    more, rest = split_keys(rest + text[at:])

    assert ([*keys, *more], rest) == (["page-up", "up", "j", "q"], "")


@contextmanager
def terminal():
    ours, theirs = pty.openpty()
    try:
        yield ours, theirs
    finally:
        os.close(ours)
        os.close(theirs)


def read_and_be_stopped(ours, theirs):
    with TerminalKeys(theirs) as keys:
        assert termios.tcgetattr(theirs)[3] & termios.ICANON == 0
        os.write(ours, b"\x1b[Bx")
        assert keys.read(5.0) == ["down", "x"]
        os.write(ours, b"\x1b")
        assert keys.read(5.0) == ["escape"]
        assert keys.read(0.0) == []
        raise KeyboardInterrupt


def test_a_terminal_is_restored_however_the_block_ends():
    with terminal() as (ours, theirs):
        before = termios.tcgetattr(theirs)
        with pytest.raises(KeyboardInterrupt):
            read_and_be_stopped(ours, theirs)
        assert termios.tcgetattr(theirs) == before
