# SPDX-License-Identifier: MIT
from burst.kits.shorten import shorten


def test_a_text_of_others_is_one_line_of_300_characters() -> None:
    assert shorten(" a\n\tb ") == "a b"
    assert shorten("x" * 300) == "x" * 300
    assert shorten("x" * 301) == "x" * 300 + "…"
