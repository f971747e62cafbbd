# SPDX-License-Identifier: MIT
"""The requests to the site's program, and its answers, as docs/command.md tells them.

The exit statuses are those of sysexits.h. A call that outlives the daemon, such as
after `kill -9`, is found by a note: the next daemon does not see in the list yet what
that call is about to make, and would have it made a second time.
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
from burst_command.settings import CommandSettings

_BOOT = Path("/proc/sys/kernel/random/boot_id")
# Positions among the fields after the name in proc_pid_stat(5).
_STATE, _START = 0, 19
# The process notes itself before it becomes the program, so no program lacks a note.
_SCRIPT = f'cat "/proc/$$/stat" {_BOOT} > "$0" && exec "$@"'
# A daemon that lives kills it earlier, and reports that it took too long.
_SPARE_S = 1.0


def noted(argv: Sequence[str], note: Path, limit: float) -> list[str]:
    """Return a command that notes its process in a file, and then runs `argv`.

    It is killed with its process group soon after `limit` seconds, even if no daemon
    lives.
    """
    ends = ["timeout", "-s", "KILL", f"{limit + _SPARE_S:g}"]
    return [*ends, "/bin/sh", "-c", _SCRIPT, str(note), *argv]


def running(note: Path) -> int:
    """Return the pid of the call that a file notes, if it runs on this host, or 0.

    Raises OSError.
    """
    try:
        said = note.read_text()
        pid = int(said.split(maxsplit=1)[0])
        stat, boot = said.rstrip().rsplit("\n", 1)
        before, now = _fields(stat), _fields(Path(f"/proc/{pid}/stat").read_text())
        same = now[_START] == before[_START] and boot == _BOOT.read_text().strip()
    except (FileNotFoundError, ProcessLookupError, IndexError, ValueError):
        # Without a complete note the program was not started.
        return 0
    return pid if same and now[_STATE] not in "ZX" else 0


def _fields(stat: str) -> list[str]:
    """Return the fields after the name, which may have spaces and parentheses."""
    return stat.rpartition(")")[2].split()


_ADVICE = "correct the program, or its table in burst.toml"
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
"""What an exit status means, by the word of the call; any other is Transient."""
LIMIT_S = 60.0
"""Seconds that a call may take: `begin` only asks for nodes, `list` tells the rest."""
_SHOWN = 200
_WORDS = 3
"""Parts of a name: owner, provider and burst."""

State = Literal["pending", "running", "failed", "ending"]


class BeginRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Make these nodes, and run `sh START HOST` for each of `hosts` on one of them."""

    name: str
    """`OWNER.PROVIDER.BURST`; none of the three has a dot."""
    hosts: Sequence[str]
    cores: int
    gpus: int
    start: str
    log: str
    """The file that should get what the followers write."""
    seconds: int
    """How long the nodes are needed at most; 0 for no end."""
    users: Sequence[int]
    """Ids of users whose jobs the nodes are for; empty if a person requested them."""
    arguments: Mapping[str, Any]


class ListRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Print all bursts, of all owners, that exist in whole or in part."""

    dir: str
    arguments: Mapping[str, Any]


class EndRequest(ListRequest, frozen=True, kw_only=True):
    """Delete all of a burst, or go on deleting it."""

    name: str


class Node(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A node whose state is not that of its burst."""

    host: str
    state: State
    why: str = ""
    lost: str = ""
    reclaimed: bool = False


class ListedBurst(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """A burst that exists, of any owner."""

    name: str
    state: State
    why: str = ""
    cause: Literal["", "capacity", "refused", "reclaimed"] = ""
    """Cause of the state `failed`; empty for any other cause."""
    nodes: tuple[Node, ...] = ()

    @property
    def over(self) -> bool:
        """Whether it has ended: never, because what the program lists exists."""
        return False


class SiteProgram:
    """Calls the site's program."""

    def __init__(self, settings: CommandSettings, limit: float = LIMIT_S) -> None:
        self._argv, self._limit = settings.program, limit
        self._shown = " ".join(settings.program)
        self._dir, self._arguments = settings.dir, settings.arguments

    def begin(self, asked: BeginRequest, note: Path) -> None:
        """Have the program begin a burst; note its process in a file.

        Raises InsufficientCapacity, SpecRefused, Transient, Refused.
        """
        self._ask("begin", asked, note)

    def still_begins(self, note: Path) -> Transient | None:
        """Return the error to raise while a `begin` of an earlier daemon runs, or None.

        Call it before `list`: what that `begin` makes is listed once it has ended.
        """
        with disk_errors(note):
            pid = running(note)
        if not pid:
            return None
        return Transient(
            f"`{self._shown} begin`, which an earlier daemon called, still runs as"
            f" process {pid}: it may take {self._limit:g} s in all"
        )

    def end(self, name: str) -> None:
        """Have the program end a burst. Raises Transient, Refused."""
        asked = EndRequest(name=name, dir=self._dir, arguments=self._arguments)
        self._ask("end", asked)

    def list(self) -> Mapping[str, Sequence[ListedBurst]]:
        """Return the bursts that the program lists, by name. Raises Transient, Refused.

        An answer that cannot be read is Transient: what is not listed counts as gone.
        """
        asked = ListRequest(dir=self._dir, arguments=self._arguments)
        said = self._ask("list", asked).strip()
        try:
            listed = from_json(said, list[ListedBurst])
        except msgspec.MsgspecError as error:
            raise Transient(
                f"`{self._shown} list` did not print a list of bursts: {error}; it"
                f" printed {said[:_SHOWN]!r}"
            ) from error
        found: dict[str, list[ListedBurst]] = {}
        for each in listed:
            words = each.name.split(".")
            if len(words) != _WORDS or not all(map(is_safe_name, words)):
                raise Transient(
                    f"`{self._shown} list` printed the name {each.name[:_SHOWN]!r}, a"
                    " name that `begin` was never given"
                )
            found.setdefault(each.name, []).append(each)
        return found

    def _ask(self, word: str, asked: msgspec.Struct, note: Path | None = None) -> str:
        argv = [*self._argv, word]
        return run(
            noted(argv, note, self._limit) if note else argv,
            shown=f"{self._shown} {word}",
            limit=self._limit,
            given=msgspec.json.encode(asked).decode() + "\n",
            patterns=PATTERNS[word],
        )
