# SPDX-License-Identifier: MIT
"""The keys of `[providers.NAME]` with `type = "slurm"`, and the job that they describe:
its batch script, and the options it is submitted with.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar

from burst.config import Seconds
from burst.kits.node_settings import NodeSettings

_LEAST_TIME_S = 60.0
_OPTION = re.compile(r"--(?P<name>[a-z][a-z0-9-]*)(=.*)?\Z", re.S)
# Options of sbatch(1) that the provider sets, or with which its jobs cannot work.
_OURS = frozenset(
    (
        *("job-name", "output", "error", "input", "open-mode", "chdir", "export"),
        *("export-file", "nodes", "ntasks", "ntasks-per-node", "tasks-per-node"),
        *("cpus-per-task", "time", "dependency", "requeue", "no-requeue", "no-kill"),
        *("parsable", "quiet", "test-only", "wait", "wrap", "array", "partition"),
        *("account", "exclusive", "gres"),
        *("clusters", "cluster", "help", "usage", "version"),
        # With these the job would end before its burst, or its scripts would die.
        *("time-min", "signal"),
    )
)


class SlurmSettings(NodeSettings, frozen=True, kw_only=True):
    """`[providers.NAME]` with `type = "slurm"`."""

    time: Seconds
    """Longest lifetime of a burst, from 1m. The time limit of its job is this, or what
    is left of the burst's lease if that is less."""
    partition: str = ""
    """One partition or several, as sbatch(1) takes them; Slurm's default if empty."""
    account: str = ""
    """Account that pays for the jobs; the user's default if empty."""
    cluster: str = ""
    """Cluster for `sbatch --clusters`, if there are several; slurm.conf's if empty."""
    gpu_type: str = ""
    """Type of the `gpus`, such as `"a100"` (`--gres=gpu:a100:N`); any if empty."""
    exclusive: bool = True
    """Whether a burst has its nodes, and all their memory, to itself. If not, Slurm
    gives each follower `cores` and the partition's default memory, or what `options`
    say."""
    options: tuple[str, ...] = ()
    """More options of sbatch(1), such as `["--qos=high", "--constraint=intel&ib"]`.
    Options that this table's keys or the provider itself set are refused, but not
    `--comment`: with it a job that is renamed is not found any more. `cores` are CPUs
    (`--cpus-per-task`): where Slurm counts threads, add `--hint=nomultithread`."""

    retired: ClassVar[Mapping[str, str]] = {
        key: f'write it in options: "--{key}=..."'
        for key in ("constraint", "licenses", "qos", "reservation")
    }

    def __post_init__(self) -> None:
        """Check what the types cannot express. Raises ValueError."""
        super().__post_init__()
        if "%" in self.dir:
            raise ValueError(f"dir: {self.dir!r} is not an absolute path without %")
        if not _LEAST_TIME_S <= self.time < math.inf:
            raise ValueError(f"time: {self.time} is less than 1m, or has no end")
        # With several clusters, scancel would cancel a job with that number in each.
        if "," in self.cluster or self.cluster == "all":
            raise ValueError(f"cluster: {self.cluster!r} is not one cluster")
        if self.gpu_type and not self.gpus:
            raise ValueError("gpu_type: set gpus, too")
        for option in self.options:
            _check_option(option)


def _check_option(option: str) -> None:
    """Raise ValueError unless it is a long option that the provider does not set."""
    match = _OPTION.match(option)
    if match is None:
        raise ValueError(
            f"options: {option!r} is not of the form --NAME or --NAME=VALUE"
        )
    # sbatch also takes the beginning of an option's name.
    if any(ours.startswith(match["name"]) for ours in _OURS):
        raise ValueError(
            f"options: {option!r} is set by a key of this table, or by the provider"
        )


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
    for key in ("partition", "account"):
        if value := getattr(settings, key):
            yield f"--{key}={value}"
    if settings.gpus:
        kind = f"{settings.gpu_type}:" if settings.gpu_type else ""
        yield f"--gres=gpu:{kind}{settings.gpus}"
    if settings.exclusive:
        yield from ("--exclusive", "--mem=0")
