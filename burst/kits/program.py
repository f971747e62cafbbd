# SPDX-License-Identifier: MIT
"""Runs a program with a time limit, and maps its error messages to exceptions.

    PATTERNS = (
        ErrorPattern("Invalid account", Refused, "set account to one of yours"),
        ErrorPattern("configuration is not available", InsufficientCapacity),
    )
    answer = run(["sbatch", "--parsable"], given=script, patterns=PATTERNS)

It is for programs that end within seconds. `burst.kits.background_command` runs those
that take minutes, as a provider must not wait so long.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
from collections.abc import Mapping, Sequence

import msgspec

from burst.errors import ConfigError, ProviderError, Refused, Transient
from burst.kits.program_output import FloodError, read_output

# `flux version` takes a hundredth of this time on an idle machine.
_DEADLINE_S = 60.0
_LONGEST_WORDS = 400
MOST_BYTES = 64 * 1024 * 1024
"""The most bytes that a program may write, as they are kept in the daemon's memory."""


class ErrorPattern(msgspec.Struct, frozen=True):
    """Maps a failure of a program or a service to the error to raise."""

    pattern: str
    """A regular expression to search in its error message; case is ignored."""
    error: type[ProviderError]
    advice: str = ""
    """What the reader of the error can do."""
    status: int | None = None
    """The exit status to which it applies; None for any status except 0."""


def find_pattern(
    patterns: Sequence[ErrorPattern], text: str, status: int = 0
) -> ErrorPattern | None:
    """Return the first pattern that matches a message, such as of a cloud, or None.

    `status` is the exit status of a program that has failed.
    """
    for each in patterns:
        is_for_it = each.status in (None, status)
        if is_for_it and re.search(each.pattern, text, re.IGNORECASE):
            return each
    return None


def run(  # noqa: PLR0913 - those with a name have a usual value
    argv: Sequence[str],
    *,
    shown: str = "",
    limit: float = 30.0,
    given: str = "",
    environment: Mapping[str, str] | None = None,
    patterns: Sequence[ErrorPattern] = (),
) -> str:
    """Return what the program wrote to standard output. `given` is its input.

    Errors name the program `shown`; the default is its name and first argument.

    After `limit` seconds, or MOST_BYTES of output, the program and all that it started
    are killed. Processes that it leaves behind when it ends are not waited for. The
    default of `environment` is that of this process. If the exit status is not 0, the
    first of `patterns` that matches decides which error is raised; if none matches, it
    is Transient. Also raises Refused if the program cannot be run, and Transient if it
    exceeds a limit. Errors never include standard output, as it may contain a token.
    """
    what = shown or " ".join([os.path.basename(argv[0]), *argv[1:2]])
    with _start(argv, environment) as child:
        try:
            said, complaint = read_output(child, given.encode(), limit, MOST_BYTES)
        except subprocess.TimeoutExpired as error:
            late = f"`{what}` did not end within {limit:g} s"
            words = _one_line(str(error.stderr or ""))
            raise Transient(f"{late}: {words}" if words else late) from error
        except FloodError as error:
            most = f"{MOST_BYTES >> 20} MiB"
            raise Transient(f"`{what}` wrote more than {most}") from error
        finally:
            if child.poll() is None:
                # Kill the whole group: what it started may hold the pipes open.
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGKILL)
    if child.returncode:
        raise _explain(what, complaint, child.returncode, patterns)
    return said


def _start(
    argv: Sequence[str], environment: Mapping[str, str] | None
) -> subprocess.Popen[bytes]:
    """Start the program in a session of its own. Raises Refused, Transient."""
    try:
        return subprocess.Popen(
            argv,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except (FileNotFoundError, PermissionError, NotADirectoryError) as error:
        raise Refused(
            f"{argv[0]} cannot be run: {error.strerror}",
            "install it, or set its path in the provider's table",
        ) from error
    except OSError as error:
        raise Transient(f"{argv[0]} cannot be run now: {error.strerror}") from error


def _explain(
    what: str, complaint: str, status: int, patterns: Sequence[ErrorPattern]
) -> ProviderError:
    words = _one_line(complaint)
    text = f"`{what}` failed: {words or _how_it_ended(status)}"
    found = find_pattern(patterns, complaint, status)
    return found.error(text, found.advice) if found else Transient(text)


def _how_it_ended(status: int) -> str:
    if status >= 0:
        return f"exit status {status}"
    try:
        return f"it was killed by {signal.Signals(-status).name}"
    except ValueError:  # a real-time signal
        return f"it was killed by signal {-status}"


def _one_line(complaint: str) -> str:
    """Return the end of a program's error message as one line."""
    return " ".join(complaint.split())[-_LONGEST_WORDS:]


def ask_flux(program: str, *words: str) -> str:
    """Return the output of a command of this flux program that needs no broker.

    Raises ConfigError if it fails.
    """
    # With FLUX_URI it would connect to that broker, which may not answer.
    plain = {key: value for key, value in os.environ.items() if key != "FLUX_URI"}
    try:
        return subprocess.run(
            [program, *words],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_DEADLINE_S,
            check=True,
            env=plain,
        ).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise ConfigError(
            f"`{' '.join([program, *words])}` failed: {error}",
            f"check that `{program} version` works as this user",
        ) from error


def flux_version(program: str) -> str:
    """Return the version of this flux program, such as `0.88.0`.

    Raises ConfigError if it cannot be run, or prints no version.
    """
    answer = ask_flux(program, "version")
    match = re.search(r"^commands:\s*(\S+)", answer, re.MULTILINE)
    if match is None:
        raise ConfigError(
            f"`{program} version` printed no version",
            "set flux to the program of flux-core",
        )
    return match[1]
