# SPDX-License-Identifier: MIT
"""The Flux provider: a burst is a job of another instance, a follower one task."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from burst.errors import SpecRefused, Transient
from burst.kits.job_provider import JobProvider
from burst.kits.job_tasks import NOT_SUBMITTED, JobSeen, JobTasks
from burst.kits.lasting import Lasting
from burst.model.finding import Finding, note, ok, wrong
from burst.model.lead import LeadIdentity
from burst.model.ranks import parse_idset
from burst.provider import BurstId, BurstSpec, BurstStatus
from burst_flux import states
from burst_flux.jobs import (
    FluxJob,
    OtherFlux,
    find_own_job,
    job_on_this_host,
    job_options,
)
from burst_flux.settings import FluxSettings

# A follower leaves at the end of its lease, and a broker that gets SIGTERM while it
# leaves does not end. So the job's time limit is this many seconds later.
_SPARE_S = 60.0
_WHAT_IT_HAS = "set cores, gpus and max_nodes to what it has"


class FluxProvider(JobProvider[FluxJob]):
    """Followers as tasks of jobs of another Flux instance."""

    Settings = FluxSettings
    task_rank = "FLUX_TASK_RANK"
    unanswered = "set uri to an instance that runs, and may be used"

    def __init__(
        self,
        name: str,
        settings: FluxSettings,
        owner: str,
        *,
        limit: float = 20.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`limit`: seconds for a call of `flux`."""
        super().__init__(name, settings, owner, settings.time - _SPARE_S, clock)
        self._settings = settings
        self._flux = OtherFlux(settings.flux, settings.uri, limit)
        self._holding = 0
        """How many nodes had the offer's shape at the last call; too few: ask again."""
        self._ended: dict[str, JobSeen] = {}
        """How a burst's job ended, by burst: asked only once, as it does not change."""
        self._missing = Lasting(clock)
        """Bursts whose submitted job is in no list."""
        self._stuck = Lasting(clock)
        """Bursts whose job is stuck."""

    def place(self) -> str:
        """Return the instance, and the directory in which bursts have their files."""
        return f"{self._settings.uri} {self._settings.dir}"

    def list_jobs(self) -> Mapping[str, Sequence[FluxJob]]:
        """Return the jobs that live, a burst's oldest first: the others wait for it."""
        found: dict[str, list[FluxJob]] = {}
        for job in self._flux.active():
            if job.name.startswith(self._prefix):
                found.setdefault(job.name.removeprefix(self._prefix), []).append(job)
        return found

    def list_names(self) -> Sequence[str]:
        """Return the names of this user's jobs."""
        return [job.name for job in self._flux.active()]

    def find_job(self, burst_id: BurstId) -> str | None:
        """Return an empty number if a job has the burst's name, else None."""
        return "" if self._flux.named(self._prefix + burst_id) else None

    def submit(self, spec: BurstSpec, files: JobTasks, seconds: float) -> str:
        """Submit the job by flux-submit(1)."""
        nodes, limit = len(spec.hosts), math.ceil(seconds + _SPARE_S)
        self._check_nodes(nodes, spec.lead)
        options = job_options(
            self._settings, self._prefix + spec.burst_id, nodes, limit
        )
        self._flux.submit(*options, f"--output={files.log}", "sh", str(files.task))
        return ""

    def status(self, burst_id: BurstId, jobs: Sequence[FluxJob]) -> BurstStatus:
        """Return the status by the burst's first job, or by how its last job ended."""
        return self.files(burst_id).status(burst_id, self._see(burst_id, jobs))

    def _see(self, burst_id: BurstId, jobs: Sequence[FluxJob]) -> JobSeen:
        now = self._clock()
        if jobs:
            self._missing.end(burst_id)
            return self._describe(burst_id, jobs[0], now)
        if self.files(burst_id).submission() is None:
            return NOT_SUBMITTED
        return self._ended.get(burst_id) or self._ask_for(burst_id, now)

    def _describe(self, burst_id: BurstId, job: FluxJob, now: float) -> JobSeen:
        closed = self._flux.closed(job.queue) if states.may_start(job) else ""
        if not states.is_stuck(job, closed):
            self._stuck.end(burst_id)
            return states.describe(job, now, closed)
        return states.describe(job, now, closed, self._stuck.seconds(burst_id))

    def _ask_for(self, burst_id: BurstId, now: float) -> JobSeen:
        """Return the state of a submitted job that is not among the live jobs."""
        found = self._flux.named(self._prefix + burst_id)
        if found:
            self._missing.end(burst_id)
        elif self._missing.seconds(burst_id) < states.SETTLES_S:
            return states.UNLISTED
        if found and not found[0].over:
            return states.describe(found[0], now)
        last = states.describe(found[-1], now) if found else states.FORGOTTEN
        self._ended[burst_id] = last
        return last

    def end_jobs(self, burst_id: BurstId) -> bool:
        """Cancel the live jobs of a burst; return whether one lived or may live."""
        if live := self.list_jobs().get(burst_id, ()):
            self._flux.cancel(live, self._clock())
            return True
        # A job that has failed may still have tasks; only jobs in `_ended` are over.
        if self._see(burst_id, ()) is not NOT_SUBMITTED and burst_id not in self._ended:
            return True
        self._forget(burst_id)
        return False

    def _forget(self, burst_id: BurstId) -> None:
        self._ended.pop(burst_id, None)
        self._missing.end(burst_id)
        self._stuck.end(burst_id)

    def force_reap(self, burst_id: BurstId) -> None:
        """Reap the burst; if the instance does not answer, take its job as ended."""
        try:
            self.reap(burst_id)
        except Transient:
            self._home.check()
            self._forget(burst_id)
            self.remove_files(burst_id)

    def _check_nodes(self, nodes: int, lead: LeadIdentity) -> None:
        """Raise SpecRefused if the instance has fewer nodes of the offer's shape."""
        if self._holding >= nodes:
            return
        own = find_own_job(self._flux.active(), lead.uri)
        self._holding = self._count(own)
        if self._holding < nodes:
            beside = f" beside job {own.jobid}, in which the lead runs" if own else ""
            has = f"{self._holding} nodes of {self._offer.shape}{beside}"
            raise SpecRefused(
                f"the instance has {has}, and the burst needs {nodes}", _WHAT_IT_HAS
            )

    def _count(self, own: FluxJob | None) -> int:
        """Return how many nodes bursts may have, at most; `own` is the lead's job."""
        # A node that a burst need not have to itself may have cores beside the lead.
        ranks = own.ranks if own is not None and self._settings.exclusive else ""
        but = parse_idset(ranks)
        return self._flux.nodes_that_hold(self._offer.shape, self._settings.queue, but)

    def examine_jobs(self, lead: LeadIdentity | None) -> Iterator[Finding]:
        """Check the instance, its queue and its nodes."""
        if lead is not None and lead.uri in self._ids():
            yield wrong(
                "uri is the lead itself", "set it to the URI of another instance"
            )
        version = self._flux.ask("getattr", "version").strip()
        yield ok(
            f"the instance at {self._settings.uri} answers; it runs Flux {version}"
        )
        queue = self._settings.queue
        if closed := self._flux.closed(queue):
            which = f"its queue {queue}" if queue else "its queue"
            yield note(f"{which} is {closed}", "enable and start it")
        shape, wanted = self._offer.shape, self._offer.max_nodes
        jobs = self._flux.active()
        own = find_own_job(jobs, lead.uri) if lead is not None else None
        others = [job for job in jobs if not job.name.startswith(self._prefix)]
        if own is None and (job := job_on_this_host(others)):
            yield note(
                f"job {job.jobid} has nodes on this host; if the lead runs in it, they"
                " are counted though no burst gets them",
                "set max_nodes to what is left without that job",
            )
        holding = self._count(own)
        has = f"{holding} of its nodes have {shape}"
        if own is not None:
            has += f", beside those of job {own.jobid}, in which the lead runs"
        if holding < wanted:
            yield wrong(f"{has}, and max_nodes is {wanted}", _WHAT_IT_HAS)
        else:
            yield ok(has)

    def _ids(self) -> Sequence[str]:
        return self._settings.uri, self._flux.ask("getattr", "local-uri").strip()
