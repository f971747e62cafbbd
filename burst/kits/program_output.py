# SPDX-License-Identifier: MIT
"""Reads what a program writes, with a bound on how long that takes and how much it is.

`Popen.communicate` has no bound on memory, and waits for all who hold the pipes: also
for what a program has left running when it ended.
"""

from __future__ import annotations

import os
import selectors
import subprocess
import time
from typing import IO

_PIECE = 64 * 1024
# Pipes that something left behind holds open are looked at so often, in seconds.
_POLL_S = 0.1


class FloodError(Exception):
    """A program wrote more than it may."""


def read_output(
    child: subprocess.Popen[bytes], given: bytes, limit: float, most: int
) -> tuple[str, str]:
    """Give a program its input; return its standard output and error once it ended.

    `child` has pipes for all three. `limit` is in seconds, `most` in bytes of both
    together. Raises subprocess.TimeoutExpired and FloodError; the program still runs
    then. What is no UTF-8 is replaced.
    """
    ends = time.monotonic() + limit
    with selectors.DefaultSelector() as selector:
        pipes = _Pipes(child, given, selector)
        while selector.get_map():
            # Asked before the pipes: what it wrote until it ended is then in them.
            ended = child.poll() is not None
            has_read = pipes.move(0 if ended else _POLL_S)
            if sum(map(len, pipes.read.values())) > most:
                raise FloodError
            if ended and not has_read:
                break
            if time.monotonic() >= ends:
                raise subprocess.TimeoutExpired(child.args, limit)
    child.wait(max(0.0, ends - time.monotonic()))
    said, complaint = (text.decode(errors="replace") for text in pipes.read.values())
    return said, complaint


class _Pipes:
    """Of a program: what is left to write, and what was read of its outputs."""

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

    def move(self, seconds: float) -> bool:
        """Write and read what can be; wait so long. Tell whether any was read."""
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
    """Write what fits; return what is left, nothing if nobody reads it."""
    try:
        return data[os.write(pipe.fileno(), data[:_PIECE]) :] if data else data
    except BlockingIOError:
        return data
    except BrokenPipeError:
        return data[:0]
