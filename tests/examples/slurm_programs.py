# SPDX-License-Identifier: MIT
"""sbatch, squeue, scancel and srun without Slurm: `python FILE WORLD PROGRAM ...`.

A job is a directory in WORLD/jobs with the files comment, output, ntasks, script, argv
and, once it runs, group (its process group); `canceled` is there once scancel was told.
Files in WORLD make them misbehave: `down` (no controller answers), `full` (no such
nodes), `stalled` (nothing is started), `cut` (sbatch submits and cannot say so), `says`
(sbatch says it, and takes nothing), `state` (in which all jobs are, by squeue's word).
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path


class World:
    """The programs, and the jobs."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.jobs = path / "jobs"

    def has(self, knob: str) -> bool:
        """Tell whether a file is there that makes something go wrong."""
        return (self.path / knob).exists()

    def sbatch(self, words: Sequence[str]) -> None:
        """Submit what standard input says."""
        options = dict(word.lstrip("-").partition("=")[::2] for word in words)
        if self.has("full"):
            self.refuse("Requested partition configuration not available now")
        if self.has("says"):
            self.refuse((self.path / "says").read_text())
        number = str(len(list(self.jobs.iterdir())) + 1)
        job = self.jobs / number
        job.mkdir()
        for name in ("comment", "output", "ntasks"):
            (job / name).write_text(options[name])
        (job / "script").write_text(sys.stdin.read())
        (job / "argv").write_text("\n".join(words))
        self.schedule()
        if self.has("cut"):
            (self.path / "cut").unlink()
            sys.exit("sbatch: error: Socket timed out on send/recv operation")
        say(number)

    def refuse(self, why: str) -> None:
        """Take no job."""
        sys.exit(f"sbatch: error: Batch job submission failed: {why}")

    def squeue(self, _: Sequence[str]) -> None:
        """List all jobs, as `--format=%i|%T|%k|%r` does."""
        self.schedule()
        say("7|PENDING|a comment\nof two lines|None")
        for job in sorted(self.jobs.iterdir()):
            said = (job / "comment").read_text()
            say(f"{job.name}|{self.state(job)}|{said}|None")

    def scancel(self, words: Sequence[str]) -> None:
        """Cancel a job: SIGTERM to all of it."""
        job = self.jobs / words[0]
        (job / "canceled").touch()
        for pid in self.group(job):
            kill(pid, signal.SIGTERM)

    def srun(self, words: Sequence[str]) -> None:
        """Start a task for each node; the first that fails ends the others."""
        command = [word for word in words if word != "--kill-on-bad-exit"]
        tasks = []
        for number in range(int(os.environ["SLURM_NTASKS"])):
            environment = {**os.environ, "SLURM_PROCID": str(number)}
            tasks.append(subprocess.Popen(command, env=environment))
        signal.signal(signal.SIGTERM, lambda *_: None)
        while all(task.poll() is None for task in tasks):
            time.sleep(0.02)
        for task in tasks:
            if task.poll() is None:
                task.terminate()
        sys.exit(max(abs(task.wait()) for task in tasks))

    def schedule(self) -> None:
        """Start what was not started."""
        for job in sorted(self.jobs.iterdir()):
            if self.has("stalled") or (job / "group").exists():
                continue
            if (job / "canceled").exists():
                continue
            with open((job / "output").read_text(), "ab") as log:
                child = subprocess.Popen(
                    ["/bin/sh", str(job / "script")],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env={**os.environ, "SLURM_NTASKS": (job / "ntasks").read_text()},
                    start_new_session=True,
                )
            (job / "group").write_text(str(child.pid))

    def state(self, job: Path) -> str:
        """Return squeue's word."""
        canceled = (job / "canceled").exists()
        if self.has("state") and not canceled:
            return (self.path / "state").read_text()
        if not (job / "group").exists():
            return "CANCELLED" if canceled else "PENDING"
        if self.group(job):
            return "COMPLETING" if canceled else "RUNNING"
        return "CANCELLED" if canceled else "FAILED"

    def group(self, job: Path) -> list[int]:
        """Return the pids of a job's processes."""
        leader = job / "group"
        if not leader.exists():
            return []
        return [pid for pid, group in processes() if group == leader.read_text()]


def say(line: str) -> None:
    """Write to standard output."""
    sys.stdout.write(f"{line}\n")


def processes() -> list[tuple[int, str]]:
    """Return all processes that run, each with its process group."""
    found = []
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        try:
            stat = Path("/proc", pid, "stat").read_text(errors="replace")
        except OSError:
            continue  # it has ended
        fields = stat.rpartition(")")[2].split()
        if fields[0] not in "ZX":
            found.append((int(pid), fields[2]))
    return found


def kill(pid: int, number: signal.Signals) -> None:
    """Signal a process that may have ended."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def main() -> None:
    """Be the program that the second argument names."""
    world = World(Path(sys.argv[1]))
    if world.has("down") and sys.argv[2] != "srun":
        sys.exit("slurm_load_jobs error: Unable to contact slurm controller")
    getattr(world, sys.argv[2])(sys.argv[3:])


if __name__ == "__main__":
    main()
