# SPDX-License-Identifier: MIT
"""The Flux provider: a burst is one job of another instance, a follower a task of it.

What exists is asked of that instance each time; so a daemon that comes after this one
needs nothing of this one's memory.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from burst.errors import NotFound, ProviderError, SpecRefused, Transient
from burst.kits.job_tasks import (
    NOT_SUBMITTED,
    JobSeen,
    JobTasks,
    check_spec,
    job_prefix,
    owned_bursts,
    time_limit,
)
from burst.kits.private_dir import PrivateDirectory, disk_errors, is_safe_name
from burst.kits.shared_dir import examine_shared_dir
from burst.model.burst import BurstId
from burst.model.finding import Finding, note, ok, wrong
from burst.model.lead import LeadIdentity
from burst.model.ranks import parse_idset
from burst.model.shape import Shape
from burst.provider import BurstSpec, BurstStatus, Offer, OwnedBurst, Provider
from burst_flux import states
from burst_flux.jobs import FluxJob, OtherFlux, job_options
from burst_flux.own_job import find_own_job, job_on_this_host
from burst_flux.settings import FluxSettings

# A follower leaves at the end of its lease. A broker that gets SIGTERM while it leaves
# does not end: so much later the job reaches its time limit.
_SPARE_S = 60.0


class FluxProvider(Provider):
    """Followers as tasks of jobs of another Flux instance."""

    Settings = FluxSettings

    def __init__(
        self,
        name: str,
        settings: FluxSettings,
        owner: str,
        *,
        limit: float = 20.0,
        later: float = 0.0,
    ) -> None:
        """`limit`: seconds that a call of `flux` may take. `later`: of the clock."""
        self._settings = settings
        self._home = PrivateDirectory(Path(settings.dir), owner, name)
        self._prefix = job_prefix(owner, name)
        self._flux = OtherFlux(settings.flux, settings.uri, limit)
        self._later = later
        self._holding = 0
        """Nodes that have the offer's shape, when last asked; asked until they do."""
        self._ended: dict[str, JobSeen] = {}
        """Of jobs that are over, which change no more: asked for once."""

    def place(self) -> str:
        """Return the instance, and the directory in which bursts have their files."""
        return f"{self._settings.uri} {self._settings.dir}"

    def offers(self) -> Sequence[Offer]:
        """Return the one offer, `nodes`."""
        return [
            Offer(
                name="nodes",
                shape=Shape(self._settings.cores, self._settings.gpus),
                max_nodes=self._settings.max_nodes,
                price=self._settings.price,
                join_time=self._settings.join_time,
                lifetime=self._settings.time - _SPARE_S,
            )
        ]

    def provision(self, spec: BurstSpec) -> None:
        """Write the followers' files, and submit the job unless there was one."""
        [offer] = self.offers()
        check_spec(spec, offer)
        left = time_limit(spec.lease_end, offer.lifetime, self._now())
        self._home.open()
        files = self._files(spec.burst_id)
        is_new = not files.exist()
        files.write(spec, self._settings.flux, "FLUX_TASK_RANK")
        name = self._prefix + spec.burst_id
        if is_new or not self._was_submitted(name, files):
            nodes, seconds = len(spec.hosts), math.ceil(left + _SPARE_S)
            self._check_nodes(offer.shape, nodes, spec.lead)
            options = job_options(self._settings, name, nodes, seconds)
            self._flux.submit(*options, f"--output={files.log}", "sh", str(files.task))
        files.note_submission()

    def _was_submitted(self, name: str, files: JobTasks) -> bool:
        """Return whether a job was submitted, which may be over.

        If the answer was lost, the job is found by its name. One that ended is not
        submitted again, be it listed or forgotten.
        """
        return bool(self._flux.named(name)) or files.submission() is not None

    def observe(self) -> Sequence[BurstStatus]:
        """Return what has files, or a job that is not over."""
        self._home.check()
        jobs: dict[str, FluxJob] = {}
        for job in self._flux.active():
            if job.name.startswith(self._prefix):
                # The oldest: another one of this name waits until it has ended.
                jobs.setdefault(job.name.removeprefix(self._prefix), job)
        with disk_errors(self._home.path):
            names = sorted({*self._home.names(), *jobs})
        return [
            self._files(name).status(BurstId(name), self._see(name, jobs.get(name)))
            for name in names
        ]

    def reap(self, burst_id: BurstId) -> None:
        """Cancel the job; once it has ended on all nodes, remove the files."""
        name = self._prefix + burst_id
        live = [job for job in self._flux.active() if job.name == name]
        if live:
            self._flux.cancel(live, self._now())
            return
        self._forget(burst_id)

    def force_reap(self, burst_id: BurstId) -> None:
        """As `reap`, but if the instance does not answer, take the job for ended."""
        try:
            self.reap(burst_id)
        except Transient:
            self._forget(burst_id)

    def list_all(self) -> Sequence[OwnedBurst]:
        """Return what has a job or files, of all owners."""
        names = (job.name for job in self._flux.active())
        return owned_bursts(names, Path(self._settings.dir))

    def _check_nodes(self, shape: Shape, nodes: int, lead: LeadIdentity) -> None:
        """Raise SpecRefused if the instance has fewer nodes of that shape."""
        if self._holding >= nodes:
            return
        own = find_own_job(self._flux.active(), lead.uri)
        self._holding = self._count(shape, own)
        if self._holding < nodes:
            beside = f" beside job {own.jobid}, in which the lead runs" if own else ""
            has = f"the instance has {self._holding} nodes of {shape}{beside}"
            raise SpecRefused(
                f"{has}, of {nodes}",
                "set cores, gpus and max_nodes to what it has",
            )

    def _count(self, shape: Shape, own: FluxJob | None) -> int:
        """Return how many nodes bursts may have, at most; `own` is the lead's job."""
        # A node that is not for a burst alone may have cores left beside the lead.
        ranks = own.ranks if own is not None and self._settings.exclusive else ""
        but = parse_idset(ranks)
        return self._flux.nodes_that_hold(shape, self._settings.queue, but)

    def examine(self, lead: LeadIdentity | None) -> Sequence[Finding]:
        """Check the instance, its queue and its nodes, and the directory."""
        found = [examine_shared_dir(self._home)]
        try:
            found.extend(self._examine_instance(lead))
        except ProviderError as error:
            advice = error.advice or "set uri to an instance that runs, and may be used"
            found.append(wrong(error.what, advice))
        return found

    def _examine_instance(self, lead: LeadIdentity | None) -> Iterator[Finding]:
        if lead is not None and lead.uri in self._ids():
            yield wrong("uri is the lead itself", "set it to another instance's")
        version = self._flux.ask("getattr", "version").strip()
        yield ok(f"the instance at {self._settings.uri} answers, of Flux {version}")
        queue = self._settings.queue
        if closed := self._flux.closed(queue):
            yield note(f"its queue {queue} is {closed}", "have it enabled and started")
        [offer] = self.offers()
        shape, wanted = offer.shape, offer.max_nodes
        jobs = self._flux.active()
        own = find_own_job(jobs, lead.uri) if lead is not None else None
        others = [job for job in jobs if not job.name.startswith(self._prefix)]
        if own is None and (job := job_on_this_host(others)):
            yield note(
                f"job {job.jobid} has nodes on this host; if the lead runs in it, they"
                " are counted though no burst gets them",
                "set max_nodes to what is left without that job",
            )
        holding = self._count(shape, own)
        has = f"{holding} of its nodes have {shape}"
        if own is not None:
            has += f", beside those of job {own.jobid}, in which the lead runs"
        if holding < wanted:
            advice = "set cores, gpus and max_nodes to what it has"
            yield wrong(f"{has}, and max_nodes is {wanted}", advice)
        else:
            yield ok(has)

    def _ids(self) -> Sequence[str]:
        return self._settings.uri, self._flux.ask("getattr", "local-uri").strip()

    def _see(self, name: str, job: FluxJob | None) -> JobSeen:
        now = self._now()
        if job is not None:
            asked = states.waits_for_a_queue(job, now)
            closed = self._flux.closed(job.queue) if asked else ""
            return states.describe(job, now, closed)
        if self._files(name).submission() is None:
            return NOT_SUBMITTED
        if name not in self._ended:
            jobs = self._flux.named(self._prefix + name)
            if jobs and not jobs[0].over:
                return states.describe(jobs[0], now)
            last = states.describe(jobs[-1], now) if jobs else states.FORGOTTEN
            self._ended[name] = last
        return self._ended[name]

    def _now(self) -> float:
        return time.time() + self._later

    def _files(self, name: str) -> JobTasks:
        return JobTasks(self._home.path / name)

    def _forget(self, burst_id: BurstId) -> None:
        self._home.check()
        self._ended.pop(burst_id, None)
        if is_safe_name(burst_id):
            self._files(burst_id).remove()
        with disk_errors(self._home.path):
            self._home.close()
        raise NotFound(f"no job and no file of {burst_id} is left")
