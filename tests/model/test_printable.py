# SPDX-License-Identifier: MIT
"""What is shown of a text that others wrote."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from burst.model.printable import printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ƒ2aJemcj waits", "ƒ2aJemcj waits"),
        ("two\r\nlines", "two  lines"),
        ("\x1b[2J", "\N{REPLACEMENT CHARACTER}[2J"),
        (7, "7"),
    ],
)
def test_what_a_terminal_may_take_for_a_command_is_not_shown(text, shown):
    assert printable(text) == shown


@given(st.text())
def test_any_text_is_one_line_as_long_as_it_was(text: str) -> None:
    shown = printable(text)

    assert shown.isprintable()
    assert len(shown) == len(text)
