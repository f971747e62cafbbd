# SPDX-License-Identifier: MIT
"""The shell commands on pages of the docs, and whether a page says how they are run.

Above a block a comment says where its commands are run by a test, or why they are not:

    <!-- run: lead -->
    <!-- not run: no cluster here -->
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

TOP = Path(__file__).parents[2]
PAGES = [
    *sorted((TOP / "docs").glob("*.md")),
    *sorted((TOP / "examples").glob("*/README.md")),
    *sorted((TOP / "manifests").rglob("README.md")),
    TOP / "README.md",
    TOP / "SECURITY.md",
]
_FENCED = re.compile(
    r"(?:^<!-- (?P<mark>(?:not )?run): (?P<said>[^\n]*?) -->\n)?"
    r"^[ ]*```(?P<kind>\w*)\n(?P<text>.*?)^[ ]*```$",
    re.M | re.S,
)
_INDENTED = re.compile(r"(?<=\n\n)(?:    [^\n]*\n)+", re.M)
_SPAN = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_PROGRAM = re.compile(r"(?:^|\s)(?:flux burst|burst|run-burst)(?=\s|$)")
_SHELL = ("sh", "console")


class Block(NamedTuple):
    """A block of commands."""

    page: Path
    commands: str
    mark: str
    """`run`, `not run`, or empty."""
    said: str
    """Where it is run, or why it is not."""


def blocks(page: Path) -> list[Block]:
    """Return the fenced blocks of a page that are for a shell."""
    return [
        Block(page, _typed(found["text"]), found["mark"] or "", found["said"] or "")
        for found in _FENCED.finditer(page.read_text(encoding="utf-8"))
        if found["kind"] in _SHELL
    ]


def _typed(text: str) -> str:
    """Return what is typed; where lines have a prompt the others are output."""
    lines = [line.strip() for line in text.splitlines()]
    if any(line.startswith("$ ") for line in lines):
        lines = [line[2:] for line in lines if line.startswith("$ ")]
    return "\n".join(lines)


def typed_commands(page: Path) -> Iterator[list[str]]:
    """Yield each command line of ours in the blocks of a page, as words."""
    text = page.read_text(encoding="utf-8")
    found = [match["text"] for match in _FENCED.finditer(text)]
    found += _INDENTED.findall(_FENCED.sub("", text))
    for block in found:
        for line in _typed(block.replace("\\\n", " ")).splitlines():
            if _PROGRAM.match(line.strip()):
                yield from _ours(line.strip())


def told_commands(page: Path) -> Iterator[list[str]]:
    """Yield each command of ours that the prose of a page names."""
    text = _INDENTED.sub("", _FENCED.sub("", page.read_text(encoding="utf-8")))
    for span in _SPAN.findall(" ".join(text.split())):
        if _PROGRAM.match(span):
            yield from _ours(re.sub(r"[\[\]]|\.\.\.", "", span))


def _ours(line: str) -> Iterator[list[str]]:
    """Yield our commands of a line, without what pipes and other programs have."""
    words = shlex.split(re.sub(r"\s{2,}[^-<\s].*$", "", line), comments=True)
    command: list[str] = []
    for word in [*words, ";"]:
        if word in {"|", "||", "&&", "&", ";", ">", "2>", "<"}:
            if command[:2] == ["flux", "burst"]:
                command = command[1:]
            if command and command[0] in {"burst", "run-burst"}:
                yield command
            command = []
        else:
            command.append(word.removesuffix(";"))
