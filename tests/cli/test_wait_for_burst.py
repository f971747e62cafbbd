# SPDX-License-Identifier: MIT
"""Who stops waiting for a burst is told that it goes on without them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from burst.cli.wait_for_burst import (
    bursts_of,
    joined_text,
    wait_for_burst,
    watch_resize,
)
from burst.errors import BurstError

ROW: dict[str, Any] = {
    "id": "burst-0-a",
    "online": 2,
    "nodes": 2,
    "note": "",
    "result": None,
    "resize": {"kind": "grow"},
}


def looks(state: str) -> Iterator[dict[str, Any]]:
    """What `burst status` shows, until somebody presses Ctrl-C."""
    yield {"bursts": [{**ROW, "state": state}]}
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("state", "until", "runs", "told"),
    [
        (
            "drain",
            "inactive",
            False,
            "is still being taken down; to see it: ",
        ),
        (
            "join",
            "online",
            False,
            "is still being made; to cancel it: ",
        ),
        ("join", "inactive", True, "still runs; to end it: "),
    ],
)
def test_an_interrupted_wait_says_that_it_goes_on(
    state: str, until: str, runs: bool, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    seen = looks(state)
    with pytest.raises(KeyboardInterrupt):
        wait_for_burst(lambda: next(seen), "burst-0-a", until, runs=runs)
    said = capsys.readouterr().err
    how = "burst status" if state == "drain" else "burst down burst-0-a"
    assert said == f"\nno longer waiting: burst-0-a {told}{how}\n"


@pytest.mark.parametrize(
    ("until", "advice"), [("online", "burst down burst-0-a"), ("inactive", "")]
)
def test_nobody_is_told_to_repeat_what_was_in_vain(until: str, advice: str) -> None:
    seen = {"bursts": [{**ROW, "state": "quarantined", "note": "odd"}]}
    with pytest.raises(BurstError, match="burst-0-a is quarantined: odd") as told:
        wait_for_burst(lambda: seen, "burst-0-a", until)
    assert told.value.advice == advice


@pytest.mark.parametrize(
    ("online", "told"),
    [
        (2, "h[0-1] joined as ranks 2-3"),
        (None, "h[0-1] joined as ranks 2-3"),
        (1, "1 of 2 nodes of h[0-1] joined (burst explain burst-0-a says which)"),
    ],
)
def test_a_burst_that_begins_with_fewer_nodes_is_not_told_to_have_all(
    online: int | None, told: str
) -> None:
    seen = {**ROW, "state": "online", "hosts": "h[0-1]", "ranks": "2-3"}
    (row,) = bursts_of({"bursts": [{**seen, "online": online}]})
    assert joined_text(row) == told


def test_so_it_does_while_the_first_line_is_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def said() -> Iterator[str]:
        yield "2 nodes of local/local as burst-0-a"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        wait_for_burst(dict, "burst-0-a", said=said())
    output, errors = capsys.readouterr()
    assert output == "2 nodes of local/local as burst-0-a\n"
    assert "no longer waiting: burst-0-a is still being made" in errors


def test_so_does_an_interrupted_wait_for_a_size(
    capsys: pytest.CaptureFixture[str],
) -> None:
    seen = looks("online")
    with pytest.raises(KeyboardInterrupt):
        watch_resize(lambda: next(seen), "burst-0-a", 4, ())
    assert "the resize of burst-0-a continues" in capsys.readouterr().err
