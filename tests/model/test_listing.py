# SPDX-License-Identifier: MIT
"""Listings of commands, and the script that is made of one."""

import pytest

from burst.errors import ConfigError
from burst.model.listing import listing_script, parse_listing


def test_blank_lines_and_comments_are_no_jobs() -> None:
    text = "# all\n-N2 hostname\n\n  sh -c 'echo # no comment'\t\r\n\t# the end"
    assert parse_listing(text.encode()) == ("-N2 hostname", "sh -c 'echo # no comment'")


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing\n"])
def test_a_listing_without_a_command_is_an_error(text: str) -> None:
    with pytest.raises(ConfigError, match="no command"):
        parse_listing(text.encode())


def test_only_a_newline_ends_a_line() -> None:
    content = "\ufeff# from an editor\r\necho 'a\fb\u2028c'\r\ntrue".encode()
    assert parse_listing(content) == ("echo 'a\fb\u2028c'", "true")


@pytest.mark.parametrize(
    ("content", "why"),
    [(b"true\necho \xe9\n", "line 2 of the listing is not UTF-8"), (b"a\0b", "zero")],
)
def test_what_is_no_text_is_an_error(content: bytes, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        parse_listing(content)


def test_each_line_is_one_word_of_the_script() -> None:
    script = listing_script(("-N2 hostname", "echo 'a b'; exit 3"))
    assert script.startswith("#!/bin/sh\n")
    assert "submit '-N2 hostname'\n" in script
    assert """submit 'echo '"'"'a b'"'"'; exit 3'\n""" in script
