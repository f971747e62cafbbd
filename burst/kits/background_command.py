# SPDX-License-Identifier: MIT
"""Runs shell commands in the background, which outlive the daemon that started them.

Their state is in their log: the first line has the task's name and the process group,
the last line the exit status. While one of their processes runs, it holds a lock on the
log, which is its standard output. So a later daemon knows that they run, even if
process ids were reused.
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
echo "$$"
trap 'echo "exit $?"' EXIT
set -e
"""
_FIRST = re.compile(r"(\w+) (?:(\d+)\n)?")
_LAST = re.compile(r"^exit (\d+)\n\Z", re.MULTILINE)
_LONGEST_WORDS = 800
# How lines that name a step begin: lines of kind, and of `command`.
_STEPS = ("•", "✓", "✗", ">")
# kind's symbols around a step.
_DECORATION = re.compile(r"[^\x20-\x7e]+|\.\.\.\s*$|^\W+")

# Children are kept to wait for them: until their parent does, they are zombies.
_children: dict[int, subprocess.Popen[bytes]] = {}


class BackgroundCommand(msgspec.Struct, frozen=True):
    """The state of the last background command."""

    what: str = ""
    """The name of the task; empty if there was none."""
    group: int = 0
    """The process group; 0 until it has begun to run."""
    running: bool = False
    status: int | None = None
    """The exit status; None while it runs, or if it was killed."""
    message: str = ""
    """The error message if it failed, else the present or last step."""

    def stop(self) -> None:
        """Kill the process group, which contains all processes that hold the lock."""
        if self.running and self.group:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.group, signal.SIGKILL)


def start(
    what: str, commands: Sequence[str], log: Path, environment: Mapping[str, str]
) -> None:
    """Start a list of commands for sh; it ends at the first command that fails.

    `what` is the name of the task, one word. Raises Transient if a background command
    with this log is running.
    """
    _reap_zombies()
    try:
        file = os.open(log, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
    except OSError as error:
        raise Transient(f"{log}: cannot be written: {error.strerror}") from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(file, 0)
        # Not in the script, as it begins to run only some time later.
        os.write(file, f"{what} ".encode())
        script = _SCRIPT + "\n".join(commands)
        child = subprocess.Popen(
            ["/bin/sh", "-c", script],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            env=environment,
            start_new_session=True,
        )
    except BlockingIOError as error:
        raise Transient(
            f"{log}: a command is still running", "wait for its end"
        ) from error
    except OSError as error:
        raise Transient(f"/bin/sh cannot be run now: {error.strerror}") from error
    finally:
        os.close(file)
    _children[child.pid] = child


def command(step: str, argv: Sequence[str], source: str = "") -> str:
    """Return lines for sh that print the name of a step and then run its command.

    `source` is a file for the command's standard input; empty for none.
    """
    given = f" < {shlex.quote(source)}" if source else ""
    return f"echo {shlex.quote(f'> {step}')}\n{shlex.join(argv)}{given}"


def status_of(log: Path) -> BackgroundCommand:
    """Return the state of the background command with this log."""
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
        group=int(first[2] or 0) if first else 0,
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
    # kind may quote a long output; the cause is at the beginning or the end of it.
    text = " / ".join(_DECORATION.sub("", line).strip() for line in told)
    half = _LONGEST_WORDS // 2
    return text if len(text) <= 2 * half else f"{text[:half]} … {text[-half:]}"


def _reap_zombies() -> None:
    # Use a copy, as another provider's thread may start a command meanwhile.
    for pid, child in list(_children.items()):
        if child.poll() is not None:
            _children.pop(pid, None)
