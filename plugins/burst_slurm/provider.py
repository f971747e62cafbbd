# SPDX-License-Identifier: MIT
"""The Slurm provider: a burst is one job, a follower one of its tasks.

The daemon's host has sbatch, squeue and scancel, and shares a directory with the nodes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from burst.kits.job_provider import JobProvider
from burst.kits.job_tasks import NOT_SUBMITTED, JobSeen, JobTasks
from burst.kits.lasting import Lasting
from burst.model.finding import Finding
from burst.model.lead import LeadIdentity
from burst.provider import BurstId, BurstSpec, BurstStatus, Phase
from burst_slurm.examine import examine
from burst_slurm.jobs import Slurm, SlurmJob, describe
from burst_slurm.settings import SlurmSettings, batch_script, job_options
from burst_slurm.states import FORGOTTEN, SETTLES_S, UNLISTED


class SlurmProvider(JobProvider[SlurmJob]):
    """Followers as tasks of Slurm jobs."""

    Settings = SlurmSettings
    task_rank = "SLURM_PROCID"
    unanswered = "have squeue and sinfo work on this host, as this user"

    def __init__(
        self,
        name: str,
        settings: SlurmSettings,
        owner: str,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(name, settings, owner, settings.time, clock)
        self._settings = settings
        self._slurm = Slurm(self._prefix, settings.cluster)
        self._unlisted = Lasting(clock)
        """Bursts whose submitted job is not listed."""
        self._stuck = Lasting(clock)
        """Bursts whose job is stuck."""

    def place(self) -> str:
        """Return the cluster, and the directory in which bursts have their files."""
        return f"{self._settings.cluster or 'slurm'}:{self._settings.dir}"

    def list_jobs(self) -> Mapping[str, Sequence[SlurmJob]]:
        """Return the jobs that live, and those that ended some minutes ago."""
        return self._slurm.jobs()

    def list_names(self) -> Sequence[str]:
        """Return the names of this user's jobs."""
        return self._slurm.names()

    def find_job(self, burst_id: BurstId) -> str | None:
        """Return the number of the burst's job, if squeue lists one."""
        found = self._slurm.jobs().get(burst_id)
        return str(found[0].number) if found else None

    def submit(self, spec: BurstSpec, files: JobTasks, seconds: float) -> str:
        """Submit the job by sbatch."""
        name = self._prefix + spec.burst_id
        nodes = len(spec.hosts)
        options = job_options(self._settings, name, files.log, nodes, seconds)
        return str(self._slurm.submit(options, batch_script(files.task)) or "")

    def status(self, burst_id: BurstId, jobs: Sequence[SlurmJob]) -> BurstStatus:
        """Return the burst's status by the first of its jobs."""
        known = self._known(burst_id, jobs)
        if not known:
            return self.files(burst_id).status(burst_id, NOT_SUBMITTED)
        job = known[0]
        found = self.files(burst_id).status(burst_id, self._see(burst_id, job))
        wanted = len(found.followers)
        if found.phase is Phase.RUNNING and not found.why and 0 < job.nodes < wanted:
            # A node failed, and which one is not listed: --no-kill keeps the others.
            why = f"Slurm has taken {wanted - job.nodes} of its {wanted} nodes"
            return msgspec.structs.replace(found, why=why)
        return found

    def _see(self, burst_id: BurstId, job: SlurmJob) -> JobSeen:
        now = self._clock()
        if not job.is_stuck:
            self._stuck.end(burst_id)
            return describe(job, now)
        return describe(job, now, self._stuck.seconds(burst_id))

    def end_jobs(self, burst_id: BurstId) -> bool:
        """Cancel the burst's listed jobs that live; return whether a job may live."""
        listed = self._slurm.jobs().get(burst_id, ())
        live = [job for job in self._known(burst_id, listed) if not job.over]
        # A number that is not listed may be another job's by now.
        if live and listed:
            self._slurm.cancel(live)
        if not live:
            self._unlisted.end(burst_id)
            self._stuck.end(burst_id)
        return bool(live)

    def examine_jobs(self, lead: LeadIdentity | None) -> Iterator[Finding]:
        """Check programs and partition, and whether Slurm takes such jobs."""
        del lead
        return examine(self._settings, self.files("test").log, self._slurm)

    def _known(self, name: str, listed: Sequence[SlurmJob]) -> Sequence[SlurmJob]:
        """Return the burst's jobs that are listed, or else the one that was submitted.

        For a while a job that is not listed may still live, with its followers on its
        nodes.
        """
        noted = None if listed else self.files(name).submission()
        if noted is None:
            self._unlisted.end(name)
            return listed
        number = int(noted or 0)
        if number and (ended := self._slurm.ended(number, name)):
            return [ended]
        waited = self._unlisted.seconds(name)
        return [SlurmJob(number, FORGOTTEN if waited >= SETTLES_S else UNLISTED)]
