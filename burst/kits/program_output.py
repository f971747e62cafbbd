# SPDX-License-Identifier: MIT
"""Reads what a program writes, with limits on the time and on the size.

`Popen.communicate` has no limit on memory, and waits for all processes that hold the
pipes, even for those that the program left running when it ended.
"""

from __future__ import annotations

import os
import selectors
import subprocess
import time
from typing import IO

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
