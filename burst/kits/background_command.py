# SPDX-License-Identifier: MIT
"""A few commands, one after the other, that go on when the daemon does not.

Their log is all there is to it: its first line says what they are for and which
process group they are, its last how they ended. While any of them runs it holds the
lock of the log, which is its standard output; so a later daemon knows that it does,
whatever became of the numbers of processes.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shlex
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from burst.errors import Transient

_SCRIPT = """\
echo "$1 $$"
trap 'echo "exit $?"' EXIT
set -e
"""
_FIRST = re.compile(r"(\w+) (\d+)\n")
_LAST = re.compile(r"^exit (\d+)\n\Z", re.MULTILINE)
_LONGEST_WORDS = 800
# How lines begin that say what is being done: kind's own, and ours.
_STEPS = ("•", "✓", "✗", ">")
# What kind decorates them with.
_DECORATION = re.compile(r"[^\x20-\x7e]+|\.\.\.\s*$|^\W+")

# Only their parent can wait for them, and until it does they are zombies.
_children: dict[int, subprocess.Popen[bytes]] = {}


class BackgroundCommand(msgspec.Struct, frozen=True):
    """How the last command is doing."""

    what: str = ""
    """What it is for; empty if there was none."""
    group: int = 0
    running: bool = False
    status: int | None = None
    """Exit status; None while it runs, and if it was cut short."""
    message: str = ""
    """What it is at, or was; the complaint, if there was one."""

    def stop(self) -> None:
        """Have it end now. Whoever holds the lock is of its group, and dies."""
        if self.running and self.group:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.group, signal.SIGKILL)


def start(
    what: str, commands: Sequence[str], log: Path, environment: Mapping[str, str]
) -> None:
    """Start commands for sh, each of which must succeed for the next to be run.

    Raises Transient if another command is running.
    """
    _reap_zombies()
    try:
        file = os.open(log, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
    except OSError as error:
        raise Transient(f"{log}: cannot be begun: {error.strerror}") from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(file, 0)
        script = _SCRIPT + "\n".join(commands)
        child = subprocess.Popen(
            ["/bin/sh", "-c", script, "sh", what],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            env=environment,
            start_new_session=True,
        )
    except BlockingIOError as error:
        raise Transient(f"{log}: somebody is at work there", "wait") from error
    except OSError as error:
        raise Transient(f"/bin/sh cannot be run now: {error.strerror}") from error
    finally:
        os.close(file)
    _children[child.pid] = child


def command(step: str, argv: Sequence[str], source: str = "") -> str:
    """Return a command for sh that says its step first.

    `source` is a file, its standard input.
    """
    given = f" < {shlex.quote(source)}" if source else ""
    return f"echo {shlex.quote(f'> {step}')}\n{shlex.join(argv)}{given}"


def status_of(log: Path) -> BackgroundCommand:
    """Return how the command with this log is doing."""
    _reap_zombies()
    try:
        with log.open(errors="replace") as file:
            running = _is_locked(file.fileno())
            said = file.read()
    except FileNotFoundError:
        return BackgroundCommand()
    first, last = _FIRST.match(said), _LAST.search(said)
    body = said[first.end() if first else 0 : last.start() if last else None]
    status = int(last[1]) if last and not running else None
    return BackgroundCommand(
        what=first[1] if first else "",
        group=int(first[2]) if first else 0,
        running=running,
        status=status,
        message=_words(body, failed=bool(status)),
    )


def _is_locked(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def _words(said: str, failed: bool) -> str:
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    steps = [line for line in lines if line.startswith(_STEPS)]
    errors = [n for n, line in enumerate(lines) if line.startswith("ERROR")]
    last = (lines if failed else steps or lines)[-1:]
    told = lines[errors[0] :] if errors else last
    # What kind quotes may be long; why it failed is at its ends.
    text = " / ".join(_DECORATION.sub("", line).strip() for line in told)
    half = _LONGEST_WORDS // 2
    return text if len(text) <= 2 * half else f"{text[:half]} … {text[-half:]}"


def _reap_zombies() -> None:
    # A copy, since another provider's thread may begin one meanwhile.
    for pid, child in list(_children.items()):
        if child.poll() is not None:
            _children.pop(pid, None)
