# SPDX-License-Identifier: MIT
"""The CPU time of `burst status` against that of `flux jobs`, with a running daemon.

The measure is the CPU seconds of each command with its children, user and system, in
turns. Both have their bytecode on disk, as in an installation.

    python benchmarks/start.py [--json]
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
from collections.abc import Mapping, Sequence

from benchmarks.table import Goal, Measure, Skipped, main_of
from tests.cli.cli_harness import BURST, open_harness
from tests.flux_instance import FLUX, MISSING, flux_instance

PAIRS = 11
_NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"


def measure() -> list[Measure]:
    """Return all measures."""
    if not FLUX:
        raise Skipped(MISSING)
    with flux_instance() as instance, open_harness(instance) as cli, cli.daemon():
        kept = {k: v for k, v in os.environ.items() if k != _NO_BYTECODE}
        environment = {**kept, "FLUX_URI": cli.uri}
        status = [BURST, "status", "-c", str(cli.config)]
        ours, theirs = compare(status, [FLUX, "jobs"], environment)
    return [
        Measure("burst status", ours * 1000, "ms"),
        Measure("flux jobs", theirs * 1000, "ms"),
        Measure("burst status against flux jobs", ours / theirs, "x", Goal("<=", 1.2)),
    ]


def compare(
    one: Sequence[str], other: Sequence[str], environment: Mapping[str, str]
) -> tuple[float, float]:
    """Return the median cost of each command, in CPU seconds."""
    costs = [(cost(one, environment), cost(other, environment)) for _ in range(PAIRS)]
    # The first run may have written bytecode, so it does not count.
    first, second = zip(*costs[1:], strict=True)
    return statistics.median(first), statistics.median(second)


def cost(command: Sequence[str], environment: Mapping[str, str]) -> float:
    """Return the CPU seconds of a command and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    user, system = after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime
    return user + system


if __name__ == "__main__":
    main_of(__doc__, measure)
