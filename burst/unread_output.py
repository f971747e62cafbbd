# SPDX-License-Identifier: MIT
"""Output that nobody reads any more, as with `| head` or a terminal that was closed."""

from __future__ import annotations

import os
from typing import IO, TextIO


def write_while_read(stream: TextIO, text: str) -> None:
    """Write to standard output or error at once; drop it if nobody reads it any more.

    All that follows is dropped, too. Python keeps what it could not write, and else
    would end with status 120, as it cannot write that at its end either.
    """
    try:
        stream.write(text)
        stream.flush()
    except OSError:
        drop_output(stream)


def drop_output(stream: IO[str]) -> None:
    """Drop all that is written to a stream from now on."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream.fileno())
    os.close(null)
