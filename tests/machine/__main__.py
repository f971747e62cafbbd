# SPDX-License-Identifier: MIT
"""Explores for as long as one says: `python -m tests.machine [30m] [SEED]`.

It begins at a seed that it draws and prints, unless one is given, with a worker for
each processor. It ends at the first failure, which is printed so that it can be
replayed.
"""

from __future__ import annotations

import argparse
import itertools
import logging
import multiprocessing
import os
import secrets
import sys
import time
from multiprocessing.synchronize import Event
from typing import NamedTuple

from burst.model.fsd import parse_fsd
from tests.machine.explore import Failure, explore

_stopped: Event


class Share(NamedTuple):
    """What one worker explores: each so many seeds one, until then."""

    first: int
    stride: int
    ends: float


def _begin(stopped: Event) -> None:
    global _stopped  # noqa: PLW0603 - one for each worker's process
    _stopped = stopped
    logging.disable(logging.CRITICAL)


def _work(share: Share) -> tuple[int, Failure | None]:
    """Explore until the time is over or somebody has found a failure."""
    done = 0
    for seed in itertools.count(share.first, share.stride):
        if _stopped.is_set() or time.monotonic() > share.ends:
            break
        done += 1
        if failure := explore(seed):
            _stopped.set()
            return done, failure
    return done, None


def main(arguments: list[str] | None = None) -> int:
    """Explore; return 1 if something broke."""
    parser = argparse.ArgumentParser(prog="python -m tests.machine")
    parser.add_argument("duration", nargs="?", default="10m", type=parse_fsd)
    parser.add_argument("seed", nargs="?", default=secrets.randbits(40), type=int)
    given = parser.parse_args(arguments)
    workers = os.cpu_count() or 1
    sys.stdout.write(f"seeds from {given.seed}, {workers} workers\n")
    sys.stdout.flush()
    ends = time.monotonic() + given.duration
    shares = [Share(given.seed + number, workers, ends) for number in range(workers)]
    with multiprocessing.Pool(workers, _begin, (multiprocessing.Event(),)) as pool:
        found = pool.map(_work, shares, chunksize=1)
    for _, failure in found:
        if failure:
            sys.stdout.write(failure.show())
    done = sum(count for count, _ in found)
    sys.stdout.write(f"interleavings of users, faults and crashes: {done}\n")
    return 1 if any(failure for _, failure in found) else 0


if __name__ == "__main__":
    sys.exit(main())
