# SPDX-License-Identifier: MIT
"""Which burst a person means."""

from __future__ import annotations

import pytest

from burst.cli.typed_names import find_burst
from burst.errors import BurstError

FIRST, SECOND, THIRD = "burst-0-3fa9c1", "burst-0-3fb000", "burst-1-0a0a0a"
ENDED = "burst-1-0b0b0b"
STATUS = {
    "bursts": [
        # In the order in which they were made; the job of the last one came first.
        {"id": ENDED, "t_submit": 1.0, "state": "inactive"},
        {"id": SECOND, "t_submit": 2.0, "state": "online"},
        {"id": THIRD, "t_submit": 3.0, "state": "quarantined"},
        {"id": FIRST, "t_submit": 1.0, "state": "online"},
    ]
}


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("burst-1", THIRD),
        ("burst-1-0b", ENDED),
        ("burst-0-3fa", FIRST),
        ("last", FIRST),
    ],
)
def test_a_prefix_or_last_is_found(typed: str, meant: str) -> None:
    assert find_burst(typed, lambda: STATUS) == meant


@pytest.mark.parametrize("typed", ["burst-2", "0a0a0a", ""])
def test_what_no_id_begins_with_is_refused(typed: str) -> None:
    """The empty text, too: of a variable of the shell that is not set."""
    with pytest.raises(BurstError, match=f"there is no burst '{typed}', and odd"):
        find_burst(typed, lambda: STATUS, ", and odd")


def test_a_whole_id_is_not_looked_up() -> None:
    """One whose record cannot be read is not in the status."""
    assert find_burst("burst-7-abcdef", dict) == "burst-7-abcdef"


def test_a_prefix_of_several_is_refused_with_their_ids() -> None:
    with pytest.raises(BurstError, match=f"2 bursts: {FIRST}, {SECOND}"):
        find_burst("burst-0-3f", lambda: STATUS)


def test_last_where_there_is_none() -> None:
    with pytest.raises(BurstError, match="there is no burst"):
        find_burst("last", lambda: {"bursts": []})
