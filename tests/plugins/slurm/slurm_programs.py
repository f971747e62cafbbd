# SPDX-License-Identifier: MIT
"""sbatch, squeue and others without Slurm: `python FILE WORLD PROGRAM ...`.

A job is a directory in WORLD/jobs with the files name, comment, output, ntasks,
submitted, script, argv and, once it runs, group (its process group); `canceled` is
there once scancel was told. Files in WORLD make them misbehave:

    down      no controller answers
    stalled   nothing is started
    cut       sbatch submits and cannot say so
    says      sbatch says it, and takes nothing
    state     `STATE|REASON` in which all jobs are that were not canceled
    forgot    squeue lists no job
    sacct     what sacct prints; without it there is no accounting
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO

# As a site's wrapper prints them, and as a job of the same user may be called.
_BANNER = "Welcome to the cluster\n7 nodes are down|for|good"
_OTHERS = (
    "1|RUNNING|0|1|None|(null)|two\nlines|of a name",
    "x_[1-3]|PENDING|N/A|1|None|a|b|c",
)
_LIMITS = {"batch*": "1-00:00:00", "few": "30:00"}
_DONE = "Job/step already completing or completed"


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
        if words == ["--version"]:
            say(_BANNER)
            say("slurm 25.05.3")
            return
        if self.has("says"):
            why = (self.path / "says").read_text()
            sys.exit(f"sbatch: error: Batch job submission failed: {why}")
        if "--test-only" in words:
            return
        options = dict(word.lstrip("-").partition("=")[::2] for word in words)
        number = str(len(list(self.jobs.iterdir())) + 11)
        job = self.jobs / number
        job.mkdir()
        (job / "name").write_text(options["job-name"])
        for option in ("comment", "output", "ntasks"):
            (job / option).write_text(options[option])
        (job / "submitted").write_text(str(int(time.time())))
        (job / "script").write_text(sys.stdin.read())
        (job / "argv").write_text("\n".join(words))
        self.schedule()
        if self.has("cut"):
            (self.path / "cut").unlink()
            sys.exit("sbatch: error: Socket timed out on send/recv operation")
        say(_BANNER)
        say(f"{number};cluster")

    def squeue(self, words: Sequence[str]) -> None:
        """List all jobs, as `--format=%i|%T|%S|%D|%r|%k|%j` does.

        Without `--states=all` the names of those that have not ended.
        """
        self.schedule()
        say(_BANNER)
        for line in _OTHERS:
            say(line)
        # Those that are pending come first, as in Slurm.
        found = [] if self.has("forgot") else sorted(self.jobs.iterdir(), reverse=True)
        for job in found:
            texts = ("submitted", "ntasks", "comment", "name")
            submitted, nodes, *said = [(job / text).read_text() for text in texts]
            state, reason = self.state(job)
            if "--states=all" not in words:
                if state in _LIVE:
                    say(said[1])
                continue
            say("|".join((job.name, state, submitted, nodes, reason, *said)))

    def scancel(self, words: Sequence[str]) -> None:
        """Cancel jobs: SIGTERM to all their processes, once."""
        for number in words:
            job = self.jobs / number
            if (job / "canceled").exists():
                sys.exit(f"scancel: error: Kill job error on job id {number}: {_DONE}")
            (job / "canceled").touch()
            if self.group(job):
                # It may end by itself after it was listed.
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(int((job / "group").read_text()), signal.SIGTERM)

    def sinfo(self, words: Sequence[str]) -> None:
        """Print two partitions, or the one that is asked for."""
        say(_BANNER)
        chosen = [word[12:] for word in words if word.startswith("--partition=")]
        for name in chosen or ("batch*", "few"):
            state = "down" if self.has("closed") else "up"
            say(f"{name}|{state}|{_LIMITS.get(name, 'infinite')}")

    def sacct(self, words: Sequence[str]) -> None:
        """Print what the test wrote."""
        if not self.has("sacct"):
            sys.exit("Slurm accounting storage is disabled")
        say((self.path / "sacct").read_text())

    def srun(self, words: Sequence[str]) -> None:
        """Start a task for each node; label what they write."""
        command = list(words[next(n for n, w in enumerate(words) if w[:2] != "--") :])
        tasks = []
        for number in range(int(os.environ["SLURM_NTASKS"])):
            environment = {**os.environ, "SLURM_PROCID": str(number)}
            task = subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
            assert task.stdout is not None
            threading.Thread(target=label, args=(number, task.stdout)).start()
            tasks.append(task)
        signal.signal(signal.SIGTERM, lambda *_: None)
        sys.exit(max(abs(task.wait()) for task in tasks))

    def schedule(self) -> None:
        """Start what was not started, one job of a name at a time (`singleton`)."""
        for job in sorted(self.jobs.iterdir()):
            if self.has("stalled") or (job / "group").exists():
                continue
            if (job / "canceled").exists() or self.waits_for_another(job):
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

    def waits_for_another(self, job: Path) -> bool:
        """Tell whether a job of the same name was submitted before, and lives."""
        name = (job / "name").read_text()
        before = [each for each in self.jobs.iterdir() if each.name < job.name]
        return any(
            (each / "name").read_text() == name and self.state(each)[0] in _LIVE
            for each in before
        )

    def state(self, job: Path) -> tuple[str, str]:
        """Return squeue's words for state and reason."""
        canceled = (job / "canceled").exists()
        if self.has("state") and not canceled:
            state, _, reason = (self.path / "state").read_text().partition("|")
            return state, reason or "None"
        if not (job / "group").exists():
            return ("CANCELLED" if canceled else "PENDING"), "None"
        if self.group(job):
            return ("COMPLETING" if canceled else "RUNNING"), "None"
        return ("CANCELLED", "None") if canceled else ("FAILED", "NonZeroExitCode")

    def group(self, job: Path) -> list[int]:
        """Return the pids of a job's processes."""
        leader = job / "group"
        if not leader.exists():
            return []
        return [pid for pid, group in processes() if group == leader.read_text()]


_LIVE = ("PENDING", "RUNNING", "COMPLETING")


def say(line: str) -> None:
    """Write to standard output."""
    sys.stdout.write(f"{line}\n")


def label(number: int, pipe: IO[bytes]) -> None:
    """Write each line of a task with its number, as `srun --label`."""
    for line in pipe:
        os.write(1, b"%d: %s" % (number, line))


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
    if world.has("down") and sys.argv[2] not in ("srun", "sacct"):
        sys.exit("slurm_load_jobs error: Unable to contact slurm controller")
    getattr(world, sys.argv[2])(sys.argv[3:])


if __name__ == "__main__":
    main()
