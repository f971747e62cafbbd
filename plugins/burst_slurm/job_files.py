# SPDX-License-Identifier: MIT
"""The files of a burst's Slurm job, and the options it is submitted with.

DIR/OWNER.PROVIDER/BURST/
    broker.toml, burst.cert, start     of all followers (burst.kits.followers)
    spec.json                          the burst's spec
    task                               a task of the job runs it: one follower
    job                                the job's number, once Slurm has told it
    log                                what the followers write, each line with the
                                       number of its task
    HOST.ended                         the exit status of a follower that ended
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator
from pathlib import Path

import msgspec

from burst.errors import SpecRefused
from burst.kits import followers
from burst.kits.atomic_file import write_atomically
from burst.kits.join_errors import read_log
from burst.kits.private_dir import disk_errors, load_json
from burst.provider import BurstSpec
from burst_slurm.settings import SlurmSettings

# TMPDIR is that of this host here, and may be one of the Slurm job alone there.
_EXPORTED = [name for name in followers.INHERITED if name != "TMPDIR"]
# `--cpus-per-task` would confine the tasks to fewer CPUs than the job has of a node.
# The end of one task is not that of the others: jobs run there.
_SCRIPT = """\
#!/bin/sh
unset SLURM_CPUS_PER_TASK SRUN_CPUS_PER_TASK
exec srun --label --no-kill --kill-on-bad-exit=0 --wait=0 --cpu-bind=none --mpi=none \\
  --input=none sh {task}
"""
# Slurm sends SIGTERM to all processes, and this one writes down how the follower ends.
_TASK = """\
#!/bin/sh
# The follower of this task, until it ends.
set -- {hosts}
shift "$SLURM_PROCID"
unset TMPDIR
sh {place}/start "$1" &
child=$!
# Not before: who dies of it until now has started nothing that does not get it, too.
trap : TERM INT HUP
status=0
# A trapped signal ends `wait` before the child has ended.
while kill -0 "$child" 2> /dev/null; do
  wait "$child"
  status=$?
done
echo "$status" > {place}/"$1".ended
exit "$status"
"""
_ENDED = ".ended"


class JobFiles:
    """The directory of one burst. Its methods raise Transient for errors of disks."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def write(self, spec: BurstSpec, flux: str) -> None:
        """Write what its followers need; equal specs write equal files.

        Also raises what `followers.write` does.
        """
        followers.write(self.place, spec, flux=flux, signals_reach_all=True)
        task = _TASK.format(
            hosts=shlex.join(spec.hosts), place=shlex.quote(str(self.place))
        )
        with disk_errors(self.place, writing=True):
            write_atomically(self.place / "task", task.encode(), private=True)
            content = msgspec.json.encode(spec)
            write_atomically(self.place / "spec.json", content, private=True)

    def script(self) -> str:
        """Return the batch script of the job."""
        return _SCRIPT.format(task=shlex.quote(str(self.place / "task")))

    def spec(self) -> BurstSpec | None:
        """Return the burst's spec; None if it was not written."""
        with disk_errors(self.place):
            return load_json(self.place / "spec.json", BurstSpec)

    def note_job(self, number: int) -> None:
        """Write down that the job was submitted; 0 if its number is not known."""
        with disk_errors(self.place, writing=True):
            write_atomically(self.place / "job", str(number), private=True)

    def job(self) -> int | None:
        """Return the number of the job that was submitted, 0 if it is not known.

        None if there was none, as far as can be seen.
        """
        with disk_errors(self.place):
            noted = self.place / "job"
            if noted.exists():
                return int(noted.read_text())
            return 0 if (self.place / "log").exists() else None

    def log(self) -> str:
        """Return the end of the log."""
        with disk_errors(self.place):
            return read_log(self.place / "log")

    def ended(self) -> dict[str, str]:
        """Return the exit status of each follower that has ended, by host."""
        with disk_errors(self.place):
            found = self.place.glob(f"*{_ENDED}")
            return {p.name.removesuffix(_ENDED): p.read_text().strip() for p in found}

    def remove(self) -> None:
        """Remove all of it."""
        followers.remove(self.place)


def job_options(
    settings: SlurmSettings, name: str, place: Path, nodes: int, minutes: int
) -> list[str]:
    """Return the options of sbatch for a job of that name, so many nodes and minutes.

    A second job of the name, as after a submission whose answer was lost, waits until
    the first has ended (`singleton`).
    """
    return [
        *(f"--job-name={name}", "--dependency=singleton", "--no-requeue", "--no-kill"),
        *(f"--output={place}/log", "--chdir=/", f"--export={','.join(_EXPORTED)}"),
        *(f"--nodes={nodes}", f"--ntasks={nodes}", "--ntasks-per-node=1"),
        *(f"--cpus-per-task={settings.cores}", f"--time={minutes}"),
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


def minutes_of(settings: SlurmSettings, lease_end: float, now: float) -> int:
    """Return the time limit of a burst's job, in minutes, as Slurm counts.

    Raises SpecRefused if the burst's lease has ended.
    """
    left = lease_end - now if lease_end else settings.time
    if left <= 0:
        raise SpecRefused("its lease has ended")
    return math.ceil(min(left, settings.time) / 60)
