# SPDX-License-Identifier: MIT
"""The Slurm provider: a burst is one job, a follower one of its tasks.

The daemon's host has sbatch, squeue and scancel, and shares a directory with the nodes.
What exists is asked of Slurm each time; so a daemon that comes after this one needs
nothing of this one's memory.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from burst.errors import NotFound
from burst.kits.job_tasks import (
    NOT_SUBMITTED,
    JobTasks,
    check_spec,
    job_prefix,
    owned_bursts,
)
from burst.kits.private_dir import PrivateDirectory, disk_errors, is_safe_name
from burst.model.burst import BurstId
from burst.model.finding import Finding
from burst.model.lead import LeadIdentity
from burst.model.shape import Shape
from burst.provider import BurstSpec, BurstStatus, Offer, OwnedBurst, Provider
from burst_slurm.examine import examine
from burst_slurm.job_options import batch_script, job_options, minutes_of
from burst_slurm.jobs import Slurm, SlurmJob, describe
from burst_slurm.settings import SlurmSettings
from burst_slurm.states import FORGOTTEN, SETTLES_S, UNLISTED


class SlurmProvider(Provider):
    """Followers as tasks of Slurm jobs."""

    Settings = SlurmSettings

    def __init__(
        self,
        name: str,
        settings: SlurmSettings,
        owner: str,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._settings = settings
        self._home = PrivateDirectory(Path(settings.dir), owner, name)
        self._prefix = job_prefix(owner, name)
        self._slurm = Slurm(self._prefix, settings.cluster)
        self._clock = clock
        self._unlisted: dict[str, float] = {}
        """Since when jobs are in no list that were submitted, by burst."""

    def place(self) -> str:
        """Return the cluster, and the directory in which bursts have their files."""
        return f"{self._settings.cluster or 'slurm'}:{self._settings.dir}"

    def offers(self) -> Sequence[Offer]:
        """Return the one offer, `nodes`."""
        return [
            Offer(
                name="nodes",
                shape=Shape(self._settings.cores, self._settings.gpus),
                max_nodes=self._settings.max_nodes,
                price=self._settings.price,
                join_time=self._settings.join_time,
                lifetime=self._settings.time,
            )
        ]

    def provision(self, spec: BurstSpec) -> None:
        """Write the followers' files, and submit the job unless there is one."""
        [offer] = self.offers()
        check_spec(spec, offer)
        self._home.open()
        files = self._files(spec.burst_id)
        files.write(spec, self._settings.flux, "SLURM_PROCID")
        # Also of a new burst: where nobody can list jobs, none is submitted.
        if self._was_submitted(spec.burst_id, files):
            return
        options = job_options(
            self._settings,
            self._prefix + spec.burst_id,
            files.log,
            len(spec.hosts),
            minutes_of(self._settings, spec.lease_end, self._clock()),
        )
        number = self._slurm.submit(options, batch_script(files.task))
        files.note_submission(str(number or ""))

    def _was_submitted(self, burst_id: BurstId, files: JobTasks) -> bool:
        """Return whether a job was submitted, which may be over.

        If the answer was lost, the job is found by its name. One that ended is not
        submitted again, be it in Slurm's list or forgotten.
        """
        return burst_id in self._slurm.jobs() or files.submission() is not None

    def observe(self) -> Sequence[BurstStatus]:
        """Return what has files, or a job that is not over."""
        self._home.check()
        jobs = self._slurm.jobs()
        live = {name for name, found in jobs.items() if not found[0].state.over}
        with disk_errors(self._home.path):
            names = sorted({*self._home.names(), *live})
        return [self._status(name, jobs) for name in names]

    def reap(self, burst_id: BurstId) -> None:
        """Cancel the job; once it has ended on all nodes, remove the files."""
        jobs = self._slurm.jobs()
        self._home.check()
        if is_safe_name(burst_id):
            live = [j for j in self._known(burst_id, jobs) if not j.state.over]
            # A number that is not listed may be another job's by now.
            if live and burst_id in jobs:
                self._slurm.cancel(live)
            if live:
                return
            self._files(burst_id).remove()
            self._unlisted.pop(burst_id, None)
        with disk_errors(self._home.path):
            self._home.close()
        raise NotFound(f"no job and no file of {burst_id} is left")

    def list_all(self) -> Sequence[OwnedBurst]:
        """Return what has a job or files, of all owners."""
        return owned_bursts(self._slurm.names(), Path(self._settings.dir))

    def examine(self, lead: LeadIdentity | None) -> Sequence[Finding]:
        """Check programs, partition, directory, and whether Slurm takes such jobs."""
        return list(examine(self._settings, self._home, self._slurm, lead))

    def _status(
        self, name: str, listed: Mapping[str, Sequence[SlurmJob]]
    ) -> BurstStatus:
        known = self._known(name, listed)
        seen = describe(known[0], self._clock()) if known else NOT_SUBMITTED
        return self._files(name).status(BurstId(name), seen)

    def _files(self, name: str) -> JobTasks:
        return JobTasks(self._home.path / name)

    def _known(
        self, name: str, listed: Mapping[str, Sequence[SlurmJob]]
    ) -> Sequence[SlurmJob]:
        """Return the burst's jobs that are listed, or else the one that was submitted.

        For a while one that is not listed may live all the same, by which its nodes
        still run its followers.
        """
        noted = None if name in listed else self._files(name).submission()
        if noted is None:
            self._unlisted.pop(name, None)
            return listed.get(name, ())
        number = int(noted or 0)
        if number and (ended := self._slurm.ended(number, name)):
            return [ended]
        now = self._clock()
        waited = now - self._unlisted.setdefault(name, now)
        return [SlurmJob(number, FORGOTTEN if waited >= SETTLES_S else UNLISTED)]
