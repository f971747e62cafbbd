# SPDX-License-Identifier: MIT
"""Checks, without making anything, whether followers can run in the Slurm cluster."""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterator
from pathlib import Path

from burst.errors import ProviderError
from burst.model.finding import Finding, note, ok, wrong
from burst.model.fsd import format_fsd
from burst_slurm.jobs import Slurm
from burst_slurm.settings import SlurmSettings, job_options

_PROGRAMS = ("sbatch", "squeue", "scancel", "sinfo")


def examine(settings: SlurmSettings, log: Path, slurm: Slurm) -> Iterator[Finding]:
    """Yield the findings. Raises Transient or Refused if Slurm cannot be asked."""
    missing = [name for name in _PROGRAMS if not shutil.which(name)]
    if missing:
        yield wrong(
            f"not on PATH: {', '.join(missing)}",
            "install Slurm's client programs on this host, of the cluster's version",
        )
        return
    version = slurm.version()
    slurm.jobs()
    partitions = slurm.partitions(settings.partition)
    longest = max((each.limit for each in partitions), default=math.inf)
    yield ok(f"Slurm answers, and {shutil.which('sbatch')} is of {version}")
    for each in partitions:
        if each.state != "up":
            yield note(
                f"partition {each.name} is {each.state}, so no job starts there",
                f"once the reason is gone: scontrol update PartitionName={each.name}"
                " State=UP",
            )
    # Where EnforcePartLimits is not set, Slurm takes a longer job and never starts it.
    if longest < settings.time:
        yield wrong(
            f"partition {settings.partition or '(default)'} ends jobs after"
            f" {format_fsd(longest)}, and time is {settings.time}",
            f'set time to "{format_fsd(longest)}"',
        )
    yield _examine_submission(settings, log, slurm)


def _examine_submission(settings: SlurmSettings, log: Path, slurm: Slurm) -> Finding:
    """Let Slurm check whether it would take a job of one node, and the largest job.

    Slurm knows partitions and their limits, accounts, QOS, licenses and nodes.
    """
    for nodes in sorted({1, settings.max_nodes}):
        options = job_options(settings, "burst.test", log, nodes, settings.time)
        try:
            slurm.test(options)
        except ProviderError as error:
            return wrong(
                f"Slurm takes no job of {nodes} nodes: {error.what}",
                error.advice or "compare this table with `scontrol show partition`",
            )
    return ok(f"Slurm takes jobs of 1 to {settings.max_nodes} nodes")
