# SPDX-License-Identifier: MIT
"""What the site's program is asked and answers: docs/command.md says it to its author.

The exit statuses are those of sysexits.h.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from burst.decode import from_json
from burst.errors import (
    InsufficientCapacity,
    Refused,
    SpecRefused,
    Transient,
)
from burst.kits.private_dir import disk_errors, is_safe_name
from burst.kits.program import ErrorPattern, run
from burst_command import called

_ADVICE = "mend what the program says, or its table in burst.toml"
_FOR_GOOD = tuple(
    ErrorPattern("", Refused, _ADVICE, status)
    for status in (os.EX_NOPERM, os.EX_CONFIG)
)
PATTERNS: Mapping[str, Sequence[ErrorPattern]] = {
    "begin": (
        ErrorPattern("", SpecRefused, status=os.EX_DATAERR),
        ErrorPattern("", InsufficientCapacity, status=os.EX_UNAVAILABLE),
        *_FOR_GOOD,
    ),
    "list": _FOR_GOOD,
    "end": _FOR_GOOD,
}
"""What an exit status means after each word; any other is Transient."""
_SHOWN = 200

State = Literal["pending", "running", "failed", "ending"]


class Name(msgspec.Struct, frozen=True):
    """Of a burst of any owner, as the program labels it: `OWNER.PROVIDER.BURST`.

    None of the three has a dot.
    """

    owner: str
    provider: str
    burst: str

    def __str__(self) -> str:
        return f"{self.owner}.{self.provider}.{self.burst}"


class BeginRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Make these nodes, and run `sh START HOST` for each of `hosts` on one of them."""

    name: str
    hosts: Sequence[str]
    cores: int
    gpus: int
    start: str
    log: str
    """Where what the followers write goes, at best."""
    seconds: int
    """For which they are needed at most; 0 for no end."""
    users: Sequence[int]
    """Whose jobs they are for; none where a person requested them."""
    arguments: Mapping[str, Any]


class ListRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Print all bursts of which anything exists, of all owners."""

    dir: str
    arguments: Mapping[str, Any]


class EndRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Delete all of this burst, or go on deleting."""

    name: str
    dir: str
    arguments: Mapping[str, Any]


class Node(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A node that is not as its burst."""

    host: str
    state: State
    why: str = ""
    lost: str = ""
    reclaimed: bool = False


class ListedBurst(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """A burst that exists."""

    name: str
    state: State
    why: str = ""
    cause: Literal["", "capacity", "refused", "reclaimed"] = ""
    """Of state `failed`."""
    nodes: tuple[Node, ...] = ()


class SiteProgram:
    """Runs the program."""

    def __init__(self, argv: Sequence[str], limit: float) -> None:
        """`limit`: seconds that it may take each time."""
        self._argv = argv
        self._shown = " ".join(argv)
        self._limit = limit

    def begin(self, asked: BeginRequest, note: Path) -> None:
        """Note the process in a file, for `still_begins`.

        Raises InsufficientCapacity, SpecRefused, Transient, Refused.
        """
        self._ask("begin", asked, note)

    def still_begins(self, note: Path) -> Transient | None:
        """Return what to raise while a `begin` runs that an earlier daemon has called.

        It is killed after its time limit, as that daemon would have done. To be asked
        before `list`: what it made is listed once it has ended.
        """
        with disk_errors(note):
            call = called.running(note)
        if call is None:
            return None
        if call.age > self._limit:
            call.kill()
        return Transient(
            f"`{self._shown} begin`, which an earlier daemon called, still runs as"
            f" process {call.pid}: it has {self._limit:g} s in all"
        )

    def end(self, asked: EndRequest) -> None:
        """Raises Transient, Refused."""
        self._ask("end", asked)

    def list(self, asked: ListRequest) -> Mapping[Name, Sequence[ListedBurst]]:
        """Return what exists, by name all that is printed. Raises Transient, Refused.

        An answer that cannot be read is Transient: what is not listed counts as gone.
        """
        said = self._ask("list", asked).strip()
        try:
            listed = from_json(said, list[ListedBurst])
        except msgspec.MsgspecError as error:
            raise Transient(
                f"`{self._shown} list` did not print a list of bursts: {error}; it"
                f" printed {said[:_SHOWN]!r}"
            ) from error
        found: dict[Name, list[ListedBurst]] = {}
        for each in listed:
            found.setdefault(self._parse(each.name), []).append(each)
        return found

    def _parse(self, text: str) -> Name:
        words = text.split(".")
        if len(words) != len(Name.__struct_fields__) or not all(
            map(is_safe_name, words)
        ):
            raise Transient(
                f"`{self._shown} list` printed the name {text[:_SHOWN]!r}, which is"
                " none that `begin` was given"
            )
        return Name(*words)

    def _ask(self, word: str, asked: msgspec.Struct, note: Path | None = None) -> str:
        argv = [*self._argv, word]
        return run(
            called.noted(argv, note) if note else argv,
            shown=f"{self._shown} {word}",
            limit=self._limit,
            given=msgspec.json.encode(asked).decode() + "\n",
            patterns=PATTERNS[word],
        )
