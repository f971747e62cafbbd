# SPDX-License-Identifier: MIT
"""Starts follower processes, and reads the exit status of those that ended."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from burst.errors import Refused, Transient
from burst.kits.broker import FollowerPrograms, follower_argv
from burst.kits.followers import INHERITED
from burst.provider import BurstSpec
from burst_local.burst_dirs import FollowerDirectory
from burst_local.processes import Process

Command = Callable[[BurstSpec, str, Path, Path], list[str]]
"""Returns a follower's argv, for the spec, the host, broker.toml and the rundir."""

# A broker runs its rc scripts by $SHELL with a socket as standard input, which bash
# takes for a remote login: it would read ~/.bashrc.
_OURS = {"SHELL": "/bin/sh"}

# The exit status of timeout(1) if it had to end the command.
_TIMED_OUT = 124

# Followers that this process started and has not waited for, of all providers, by pid,
# each with its directory. One that has ended is a zombie until its parent waits for it.
_children: dict[int, tuple[subprocess.Popen[bytes], Path]] = {}
# By a follower's directory: pid and exit status of its last process that has ended.
_ends: dict[Path, tuple[int, int]] = {}


def follower_command(flux: str) -> Command:
    """Return the function that makes a follower's command."""

    def command(spec: BurstSpec, host: str, config: Path, rundir: Path) -> list[str]:
        program = shutil.which(flux)
        if program is None and not spec.lead.follower_module:
            raise Refused(
                f"there is no program {flux!r}",
                "install Flux, or set flux to the path of the lead's",
            )
        programs = FollowerPrograms(program or flux)
        return follower_argv(spec.lead, programs, config, host, rundir)

    return command


def limit_time(argv: list[str], lease_end: float) -> list[str]:
    """Return the command run by timeout(1), which ends it at `lease_end`; 0: never."""
    if not lease_end:
        return argv
    program = shutil.which("timeout")
    if program is None:
        raise Refused("there is no program 'timeout'", "install GNU coreutils")
    left = max(1.0, lease_end - time.time())
    return [program, "--kill-after=30", f"{left:.3f}", *argv]


def start(
    argv: list[str],
    place: FollowerDirectory,
    tags: Mapping[str, str],
    environment: Mapping[str, str],
) -> int:
    """Start a follower in a session of its own and return its pid.

    Raises Refused if the program cannot be run, Transient if the host is at a limit.
    """
    inherited = {key: os.environ[key] for key in INHERITED if key in os.environ}
    log = os.open(place.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        child = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=place.path,
            env={**inherited, **_OURS, **environment, **tags},
            start_new_session=True,
        )
    except (FileNotFoundError, PermissionError) as error:
        raise Refused(
            f"{argv[0]} cannot be run: {error.strerror}", "set flux to its path"
        ) from error
    except OSError as error:
        raise Transient(f"{argv[0]} cannot be run now: {error.strerror}") from error
    finally:
        os.close(log)
    _children[child.pid] = (child, place.path)
    _ends.pop(place.path, None)
    return child.pid


def how_it_ended(place: FollowerDirectory, pid: int) -> str:
    """Return how a follower that is gone ended, as far as that is known."""
    ended, status = _ends.get(place.path, (0, 0))
    if ended != pid:
        return "is gone"
    if status == _TIMED_OUT:
        return "exited with status 124, as at the end of its lease"
    if status < 0:
        return f"was killed by signal {-status}"
    return f"exited with status {status}"


def reap_zombies(ended: Iterable[Process], sessions: Mapping[int, Path]) -> None:
    """Wait for children that have ended, and keep their exit status.

    `ended` are all zombies. `sessions` has the directory of each of our followers, by
    the pid of its session's leader. A zombie may be our child and not in `_children`:
    this process started it before it executed itself again, or is process 1 of a
    container, which adopts processes without a parent.
    """
    # A copy, since another provider's thread may start a follower meanwhile.
    for pid, (child, path) in list(_children.items()):
        if child.poll() is not None:
            _ends[path] = (pid, child.returncode)
            _children.pop(pid, None)
    for process in ended:
        directory = sessions.get(process.session)
        if directory is None or process.parent != os.getpid():
            continue
        with contextlib.suppress(ChildProcessError):  # it was waited for just above
            _, status = os.waitpid(process.pid, os.WNOHANG)
            if process.pid == process.session:
                _ends[directory] = (process.pid, os.waitstatus_to_exitcode(status))


def forget(burst: Path) -> None:
    """Forget the exit statuses of a burst that has ended, given its directory."""
    for directory in [path for path in _ends if path.parent == burst]:
        _ends.pop(directory, None)
