# SPDX-License-Identifier: MIT
"""Checks, without making anything, whether followers can run in the Slurm cluster."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

from burst.errors import ProviderError
from burst.kits.examine_lead import examine_lead
from burst.kits.private_dir import PrivateDirectory
from burst.kits.shared_dir import examine_shared_dir
from burst.model.finding import Finding, ok, wrong
from burst.model.fsd import format_fsd
from burst.model.lead import LeadIdentity
from burst_slurm.job_options import job_options
from burst_slurm.jobs import Slurm
from burst_slurm.settings import SlurmSettings

_PROGRAMS = ("sbatch", "squeue", "scancel", "sinfo")


def examine(
    settings: SlurmSettings,
    home: PrivateDirectory,
    slurm: Slurm,
    lead: LeadIdentity | None,
) -> Iterator[Finding]:
    """Yield what is found; nothing of the cluster if Slurm cannot be asked."""
    yield from examine_lead(lead)
    yield examine_shared_dir(home)
    missing = [name for name in _PROGRAMS if not shutil.which(name)]
    if missing:
        yield wrong(
            f"not on PATH: {', '.join(missing)}",
            "install Slurm's client programs on this host, of the cluster's version",
        )
        return
    try:
        version = slurm.version()
        slurm.jobs()
        longest = slurm.time_limit(settings.partition)
    except ProviderError as error:
        yield wrong(str(error), "have squeue and sinfo work on this host, as this user")
        return
    yield ok(f"Slurm answers, and {shutil.which('sbatch')} is of {version}")
    # Where EnforcePartLimits is not set, Slurm takes a longer job and never starts it.
    if longest < settings.time:
        yield wrong(
            f"partition {settings.partition or '(default)'} ends jobs after"
            f" {format_fsd(longest)}, and time is {settings.time}",
            f'set time to "{format_fsd(longest)}"',
        )
    yield _examine_submission(settings, home, slurm)


def _examine_submission(
    settings: SlurmSettings, home: PrivateDirectory, slurm: Slurm
) -> Finding:
    """Have Slurm say whether it would take a job of one node, and the largest.

    It knows partitions and their limits, accounts, QOS, licenses and nodes.
    """
    log, time = home.path / "log", settings.time
    for nodes in sorted({1, settings.max_nodes}):
        options = job_options(settings, "burst.test", log, nodes, time)
        try:
            slurm.test(options)
        except ProviderError as error:
            return wrong(
                f"Slurm takes no job of {nodes} nodes: {error.what}",
                error.advice or "compare this table with `scontrol show partition`",
            )
    return ok(f"Slurm takes jobs of 1 to {settings.max_nodes} nodes")
