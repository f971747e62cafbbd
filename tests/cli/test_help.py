# SPDX-License-Identifier: MIT
"""What `--help` of a group shows."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from burst.cli import group


def test_commands_are_in_three_parts() -> None:
    said = CliRunner().invoke(group, ["--help"]).output
    titles = [line for line in said.splitlines() if line and not line.startswith(" ")]
    assert titles[1:] == ["Options:", "Jobs:", "Bursts:", "Administration:"]
    for name in ("explain", "status", "ensemble", "daemon"):
        assert said.count(f"\n  {name} ") == 1


@pytest.mark.parametrize("words", [(), ("lead",), ("policy",), ("ensemble",)])
def test_no_text_is_cut_off(words: tuple[str, ...]) -> None:
    said = CliRunner().invoke(group, [*words, "--help"]).output
    _, _, commands = said.partition("Show this message and exit.\n")
    assert commands
    assert "..." not in commands
