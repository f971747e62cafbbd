# SPDX-License-Identifier: MIT
"""A Slurm of our own: programs on PATH that start followers on this host."""

from __future__ import annotations

import contextlib
import shlex
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
from burst_slurm.provider import SlurmProvider
from burst_slurm.settings import SlurmSettings

from burst.config import Seconds
from burst.provider import BurstSpec, Provider
from burst.testing import example_lead, example_spec
from tests.plugins.slurm import slurm_programs
from tests.support.waiting import wait_until

PROGRAMS = ("sbatch", "squeue", "scancel", "srun", "sinfo", "sacct")


class FakeCluster:
    """The programs, what they do wrong, and the jobs."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.world = slurm_programs.World(path)
        self.world.jobs.mkdir()
        self.bin = path / "bin"
        self.bin.mkdir()
        for name in PROGRAMS:
            words = [sys.executable, "-IS", slurm_programs.__file__, str(path), name]
            (self.bin / name).write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
            (self.bin / name).chmod(0o755)
        self.dir = path / "shared"
        self.settings = SlurmSettings(
            dir=str(self.dir), cores=4, max_nodes=4, time=Seconds(3600)
        )

    def provider(
        self,
        owner: str = "owner-a",
        name: str = "slurm",
        *,
        clock: Callable[[], float] = time.time,
        **changes: Any,
    ) -> SlurmProvider:
        """Return a provider with these changes of the settings."""
        settings = msgspec.structs.replace(self.settings, **changes)
        return SlurmProvider(name, settings, owner, clock=clock)

    def later(self, seconds: float) -> SlurmProvider:
        """Return a provider for which it is so many seconds later."""
        return self.provider(clock=lambda: time.time() + seconds)

    def states(self) -> list[str]:
        """Return the state of each job, oldest first."""
        self.world.schedule()
        return [self.world.state(job)[0] for job in sorted(self.world.jobs.iterdir())]

    def spec(self) -> BurstSpec:
        """Return the spec of a burst for a lead that does not run."""
        spec = example_spec(example_lead(self.path, "owner-a"), 0, "nodes", 4)
        return msgspec.structs.replace(
            spec, shape=msgspec.structs.replace(spec.shape, cores=4, gpus=0)
        )

    def set(self, knob: str, text: str = "") -> None:
        """Have the programs misbehave."""
        (self.path / knob).write_text(text)

    def unset(self, knob: str) -> None:
        (self.path / knob).unlink(missing_ok=True)

    @contextlib.contextmanager
    def knob(self, name: str) -> Iterator[None]:
        self.set(name)
        try:
            yield
        finally:
            self.unset(name)

    def argv(self) -> list[list[str]]:
        """Return the options of each submission, oldest first."""
        jobs = sorted(self.world.jobs.iterdir())
        return [(job / "argv").read_text().split("\n") for job in jobs]

    # What the contract needs of a cluster.

    def unreachable(self) -> contextlib.AbstractContextManager[object]:
        return self.knob("down")

    def stalled(self) -> contextlib.AbstractContextManager[object]:
        return self.knob("stalled")

    def full(self, owner: str) -> Provider:
        self.set("says", "Requested partition configuration not available now")
        return self.provider(owner)

    def crash(self, *, submitted: bool) -> contextlib.AbstractContextManager[object]:
        """Have a submission be one whose answer is lost, or fail."""
        return self.knob("cut" if submitted else "down")

    def public(self) -> str:
        """Return what others can see of all jobs."""
        jobs = self.world.jobs.iterdir()
        files = [path for job in jobs for path in (job / "script", job / "argv")]
        return "\n".join(path.read_text() for path in files)

    def tasks(self, spec: BurstSpec) -> int:
        """Count tasks of jobs that have not ended, which have them by RUNNING."""
        jobs = [
            job
            for job in self.world.jobs.iterdir()
            if (job / "name").read_text().endswith(f".{spec.burst_id}")
        ]
        live = [job for job in jobs if self.world.state(job)[0] in LIVE]
        return sum(int((job / "ntasks").read_text()) for job in live)

    def close(self) -> None:
        """End what runs, until nothing does that could write a file."""
        wait_until(self._nothing_runs, "killed processes to end")

    def _nothing_runs(self) -> bool:
        jobs = self.world.jobs.iterdir()
        found = [pid for job in jobs for pid in self.world.group(job)]
        for pid in found:
            slurm_programs.kill(pid, signal.SIGKILL)
        return not found


LIVE = ("PENDING", "RUNNING", "COMPLETING")
