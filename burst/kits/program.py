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
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from typing import IO

import msgspec

from burst.errors import ConfigError, ProviderError, Refused, Transient

_PIECE = 64 * 1024
# Seconds between two checks whether the program has ended, as another process may hold
# its pipes open.
_POLL_S = 0.1


class FloodError(Exception):
    """A program wrote more than it may."""


def read_output(
    child: subprocess.Popen[bytes], given: bytes, limit: float, most: int
) -> tuple[str, str]:
    """Give a program its input; return its standard output and error once it ended.

    `Popen.communicate` has no limit on memory, and waits for all processes that hold
    the pipes, even for those that the program left running when it ended.

    `child` must have pipes for all three. `limit` is in seconds; `most` is the limit in
    bytes for both outputs together. Raises subprocess.TimeoutExpired, which may have
    the standard error so far, and FloodError; then the program still runs. Bytes that
    are not UTF-8 are replaced.
    """
    ends = time.monotonic() + limit
    with selectors.DefaultSelector() as selector:
        pipes = _Pipes(child, given, selector)
        while selector.get_map():
            # Check this before the pipes: they then have all that it wrote until its
            # end.
            ended = child.poll() is not None
            has_read = pipes.move(0 if ended else _POLL_S)
            if sum(map(len, pipes.read.values())) > most:
                raise FloodError
            if ended and not has_read:
                break
            if time.monotonic() >= ends:
                _, complaint = pipes.texts()
                raise subprocess.TimeoutExpired(child.args, limit, stderr=complaint)
    child.wait(max(0.0, ends - time.monotonic()))
    return pipes.texts()


class _Pipes:
    """The pipes of a program: the input left to write, and the outputs read so far."""

    def __init__(
        self,
        child: subprocess.Popen[bytes],
        given: bytes,
        selector: selectors.BaseSelector,
    ) -> None:
        assert child.stdin is not None
        self._stdin = child.stdin
        self._left = memoryview(given)
        self._selector = selector
        outputs = [pipe for pipe in (child.stdout, child.stderr) if pipe is not None]
        self.read: dict[int, bytearray] = {
            pipe.fileno(): bytearray() for pipe in outputs
        }
        for pipe in (self._stdin, *outputs):
            os.set_blocking(pipe.fileno(), False)
            writes = pipe is self._stdin
            event = selectors.EVENT_WRITE if writes else selectors.EVENT_READ
            selector.register(pipe, event)

    def texts(self) -> tuple[str, str]:
        """Return what was read of standard output and error."""
        said, complaint = self.read.values()
        return said.decode(errors="replace"), complaint.decode(errors="replace")

    def move(self, seconds: float) -> bool:
        """Write and read what is possible; return whether an output was read.

        It waits at most `seconds` until something is possible.
        """
        has_read = False
        for key, _ in self._selector.select(seconds):
            if key.fd in self.read:
                has_read = True
                piece = os.read(key.fd, _PIECE)
                self.read[key.fd] += piece
                if not piece:
                    self._selector.unregister(key.fileobj)
                continue
            self._left = _write(self._stdin, self._left)
            if not self._left:
                self._selector.unregister(self._stdin)
                self._stdin.close()
        return has_read


def _write(pipe: IO[bytes], data: memoryview) -> memoryview:
    """Write what fits into the pipe; return the rest, empty if nobody reads it."""
    try:
        return data[os.write(pipe.fileno(), data[:_PIECE]) :] if data else data
    except BlockingIOError:
        return data
    except BrokenPipeError:
        return data[:0]


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
