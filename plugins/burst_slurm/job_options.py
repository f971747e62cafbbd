# SPDX-License-Identifier: MIT
"""The batch script of a burst's Slurm job, and the options it is submitted with."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator
from pathlib import Path

from burst_slurm.settings import SlurmSettings

# `--cpus-per-task` would confine a task to fewer CPUs than the job has on the node;
# from Slurm 24.05 on srun also reads it from SLURM_TRES_PER_TASK. sbatch gives a job
# all SLURM_* of the daemon, but srun does not work with its token.
# The end of one task must not end the others, because jobs run there.
_SCRIPT = """\
#!/bin/sh
unset SLURM_CPUS_PER_TASK SRUN_CPUS_PER_TASK SLURM_TRES_PER_TASK SLURM_JWT
exec srun --label --no-kill --kill-on-bad-exit=0 --wait=0 --cpu-bind=none --mpi=none \\
  --input=none sh {task}
"""


def batch_script(task: Path) -> str:
    """Return the batch script of a job whose tasks run that script."""
    return _SCRIPT.format(task=shlex.quote(str(task)))


def job_options(
    settings: SlurmSettings, name: str, log: Path, nodes: int, seconds: float
) -> list[str]:
    """Return the options of sbatch for a job of this name, number of nodes and time.

    The comment is the name, too, for the case that somebody renames the job.
    A second job of the same name, as after a submission whose answer was lost, waits
    until the first has ended (`singleton`). The job has the limits (setrlimit(2)) of
    the nodes, not those of the daemon, to which systemd gives little locked memory.
    sbatch exports all its variables, which are few: with a list of names Slurm would
    also run the user's login shell on the node, and would hold the job if that failed,
    for example for a user without a login shell.
    """
    return [
        *(f"--job-name={name}", f"--comment={name}", "--dependency=singleton"),
        *("--no-requeue", "--no-kill"),
        *(f"--output={log}", "--chdir=/", "--export=ALL", "--propagate=NONE"),
        *(f"--nodes={nodes}", f"--ntasks={nodes}", "--ntasks-per-node=1"),
        *(f"--cpus-per-task={settings.cores}", f"--time={math.ceil(seconds / 60)}"),
        *_chosen(settings),
        *settings.options,
    ]


def _chosen(settings: SlurmSettings) -> Iterator[str]:
    """Yield the options for keys of the settings that are set."""
    keys = ("partition", "account", "qos", "reservation", "constraint", "licenses")
    for key in keys:
        if value := getattr(settings, key):
            yield f"--{key}={value}"
    if settings.gpus:
        kind = f"{settings.gpu_type}:" if settings.gpu_type else ""
        yield f"--gres=gpu:{kind}{settings.gpus}"
    if settings.exclusive:
        yield from ("--exclusive", "--mem=0")
