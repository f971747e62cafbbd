# SPDX-License-Identifier: MIT
"""A lead that behaves as Flux does where it matters to the daemon.

What it takes from Flux 0.88, as measured on it: the first job that could run on ranks
that are down blocks all behind it; a job that could never run gets a fatal exception
when it comes to the head; an allocation shows in the resource view at once, and in the
journal of jobs a little later; a drain outlives the broker; an RPC that is not answered
in time may have had its effect or not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import msgspec

from burst.core.plan.constraints import Constraints
from burst.core.plan.fit import nodes_needed
from burst.errors import Unreadable
from burst.lead import no_known_jobs
from burst.model.jobid import JobId
from burst.model.lead import JobState, JobView, LeadView
from burst.model.shape import Shape
from tests.fakes import FakeLead, MemoryStore

# A job that ended is still in the picture for so long, in seconds (burst.model.lead).
_REMEMBERED = 60.0
_NOTHING = Shape(0)


class Silence:
    """RPCs that will not be answered in time, by name: whether they have an effect."""

    def __init__(self) -> None:
        self.next: dict[str, bool] = {}
        self.came = 0
        """How often that has happened."""

    def call(self, name, effect):
        """Carry out an RPC. Raises Unreadable where it is not answered."""
        if name not in self.next:
            return effect()
        took_effect = self.next.pop(name)
        self.came += 1
        if took_effect:
            effect()
        raise Unreadable(f"{name}: no answer within 30s")


class SimStore(MemoryStore):
    """A store behind the same connection, of which the size of records is bounded."""

    silence: Silence
    largest = 0

    def write(self, changes):
        self.silence.call("store", lambda: super(SimStore, self).write(changes))
        sizes = [len(text) for text in changes.values() if text is not None]
        self.largest = max([self.largest, *sizes])


@dataclass
class SimLead(FakeLead):
    """Jobs of whole nodes. `plain` ones are not burstable, and not ours to see."""

    disk: SimStore = field(default_factory=SimStore)
    plain: set[JobId] = field(default_factory=set)
    lagging: bool = False
    """Whether the journal is behind the scheduler, by less than a tick."""
    stopped: bool = False
    """Whether a person has stopped all queues."""
    mode: str = "hold"
    silence: Silence = field(default_factory=Silence)
    touched: list[JobId] = field(default_factory=list)
    """Jobs that the daemon has given an order for."""
    specs: dict[JobId, object] = field(default_factory=dict)
    """Whole jobspecs of jobs that have strange ones."""
    begun: dict[int, int] = field(default_factory=dict)
    """How many jobs have begun on each rank."""
    ends_shown: dict[JobId, float] = field(default_factory=dict)
    """Since when each job is shown as ended."""
    apart: bool = False
    """Whether sched-burst gives lent ranks without a lease to nobody."""
    begins: dict[JobId, float] = field(default_factory=dict)
    """When the begin time or the dependencies are over of jobs that have some."""
    new: list[tuple[JobView, frozenset[int]]] = field(default_factory=list)
    """Jobs that have begun since somebody looked, as they were, and on which ranks."""

    def __post_init__(self):
        self.disk.silence = self.silence
        self.constraints = Constraints(self.known)
        burst = self.known.properties["burst"]
        self.own = frozenset(range(len(self.known.hosts))) - burst
        self._late: dict[JobId, JobView] = {}

    # What the engine sees.

    def observe(self):
        if self.unreadable:
            raise Unreadable("job manager is reloading")
        self.silence.call("observe", lambda: None)
        used = frozenset(self._used())
        jobs = {
            number: job
            for number, job in self.jobs.items()
            if number not in self.plain and (not job.t_finish or self._is_shown(number))
        }
        granting = {
            rank: self.known.shapes[rank]
            for job in self._late
            for rank in self.jobs[job].ranks
        }
        jobs |= self._late
        return LeadView(
            read_at=self.now,
            jobs=jobs,
            online=frozenset(self.online),
            drained=dict(self.drained),
            allocated=used,
            housekeeping=dict(self.housekeeping),
            granting=granting,
            free={
                rank: _NOTHING if rank in used else shape
                for rank, shape in enumerate(self.known.shapes)
            },
        )

    def _is_shown(self, job):
        """Tell whether a job that ended is shown, as it is for a while."""
        return self.now - self.ends_shown.setdefault(job, self.now) < _REMEMBERED

    def listen(self, wake, known=no_known_jobs):
        """Show to a new daemon, of the jobs that have ended, those that it knows."""
        super().listen(wake, known)
        over = (job.id for job in self.jobs.values() if job.t_finish)
        self.ends_shown = {job: -math.inf for job in over if job not in known()}

    def settle(self):
        """Let the journal come to what the scheduler has done, and jobs begin."""
        self._late = {}
        for job in [job for job, begins in self.begins.items() if begins <= self.now]:
            del self.begins[job]
            if self.jobs[job].state is JobState.DEPEND:
                self.change(job, state=JobState.SCHED, t_eligible=self.now)

    def put_off(self, job, seconds):
        """Have a job begin no sooner, as by `--begin-time` or a dependency."""
        self.begins[job] = self.now + seconds
        self.change(job, state=JobState.DEPEND)

    def hold(self, jobs):
        return self._order("hold", jobs, super().hold)

    def release(self, urgencies):
        return self._order("release", urgencies, super().release)

    def move(self, queues, lent=MappingProxyType({})):
        return self._order(
            "move", queues, lambda jobs: super(SimLead, self).move(jobs, lent)
        )

    def confine(self, lent):
        return self._order("confine", lent, super().confine)

    def write_memos(self, memos):
        return self._order("tell", memos, super().write_memos)

    def send_leases(self, leases):
        self.silence.call("lend", lambda: super(SimLead, self).send_leases(leases))

    def fail_job(self, job, reason):
        self.touched.append(job)
        self.silence.call("fail", lambda: super(SimLead, self).fail_job(job, reason))

    def cancel_job(self, job, reason):
        self.touched.append(job)
        self.silence.call("fail", lambda: super(SimLead, self).cancel_job(job, reason))

    def finish_job(self, job, exit_status, output):
        self.touched.append(job)
        return self.silence.call(
            "finish", lambda: super(SimLead, self).finish_job(job, exit_status, output)
        )

    def jobspec(self, job):
        if job in self.specs:
            return self.specs[job]
        return self.silence.call("jobspec", lambda: super(SimLead, self).jobspec(job))

    def drain(self, ranks, reason):
        self.silence.call("drain", lambda: super(SimLead, self).drain(ranks, reason))

    def undrain(self, ranks):
        self.silence.call("undrain", lambda: super(SimLead, self).undrain(ranks))

    def end_housekeeping(self, ranks, signum):
        self.silence.call(
            "sweep", lambda: super(SimLead, self).end_housekeeping(ranks, signum)
        )

    # What happens at the lead.

    def schedule(self):
        """Start what can start, as Flux's fifo does, or sched-burst."""
        waiting = self.waiting()
        if not waiting or self.stopped:
            return
        free = sorted(self.online - self._used() - set(self.drained))
        for job in waiting:
            ranks = self._ranks_for(job, free)
            if ranks is not None:
                self._start(job, ranks)
                free = [rank for rank in free if rank not in ranks]
            elif not self.is_feasible(job):
                self.finish(job.id, "failed")
            elif self.mode != "scheduler" or job.id in self.plain:
                return

    def waiting(self):
        """Return the jobs that Flux tries to start, in its order."""
        pending = [
            job
            for job in self.jobs.values()
            if job.state is JobState.SCHED and job.urgency and job.queue != "burst"
        ]
        return sorted(pending, key=lambda job: (-job.urgency, job.id))

    def admitted(self, job):
        """Return the ranks that a job may have, up or not."""
        if job.id in self.plain:
            return self.own
        request = job.request
        admitted = self.constraints.admitted(request.constraint if request else "")
        return admitted & self.reach(job)

    def nodes_of(self, job):
        """Return how many nodes it needs; one whose jobspec is strange needs one."""
        return job.request.nodes if job.request else 1

    def is_feasible(self, job):
        """Tell whether the ranks that it may have would do, were all up and idle."""
        if self._is_stepped_over(job):
            return True  # that is for the daemon to judge
        ranks = [rank for rank in self.admitted(job) if self.holds(job, rank)]
        return len(ranks) >= self.nodes_of(job)

    def _is_stepped_over(self, job):
        """Tell whether it is sched-burst that has the job, beside Flux's queue."""
        return self.mode == "scheduler" and job.id not in self.plain

    def holds(self, job, rank):
        """Tell whether a node is large enough for a job, as Flux's feasibility does."""
        shape = self.known.shapes[rank]
        return job.request is None or bool(nodes_needed(job.request, shape))

    def pending(self):
        """Return the burstable jobs that have not begun."""
        return [
            job
            for job in self.jobs.values()
            if job.state is JobState.SCHED and job.id not in self.plain
        ]

    def ranks_used_by(self) -> Mapping[int, JobId]:
        """Return which job has each rank that is allocated."""
        return {rank: job.id for job in self.jobs.values() for rank in job.ranks}

    def _ranks_for(self, job, free):
        """Return the ranks on which it starts now, first fit; None if it does not."""
        if self._is_stepped_over(job):
            return self._lent_or_own(job, free)
        return self._first(job, free)

    def _lent_or_own(self, job, free):
        """As sched-burst: all on lent ranks that are its, or all on own ones."""
        leases = self.lent[-1] if self.lent else None
        mine = leases.jobs.get(job.id, frozenset()) if leases else frozenset()
        leased = leases.ranks if leases else frozenset()
        anyones = frozenset() if self.apart else frozenset(free) - leased - self.own
        lent = [rank for rank in free if rank in mine | anyones]
        found = self._first(job, lent)
        if found is None and not (leases and job.id in leases.jobs):
            found = self._first(job, [rank for rank in free if rank in self.own])
        return found

    def _first(self, job, free):
        nodes, admitted = self.nodes_of(job), self.admitted(job)
        # Rv1Pool gives idle whole nodes of too few cores by chance; not to be had here.
        admitted = [rank for rank in admitted if self.holds(job, rank)]
        ranks = [rank for rank in free if rank in admitted][:nodes]
        return frozenset(ranks) if len(ranks) == nodes else None

    def _start(self, job, ranks):
        if self.lagging and job.id not in self.plain:
            self._late[job.id] = job
        self.new.append((job, ranks))
        self.begun |= {rank: self.begun.get(rank, 0) + 1 for rank in ranks}
        self.change(
            job.id, state=JobState.RUN, ranks=ranks, ran_on=ranks, t_start=self.now
        )

    def change(self, job, **changes):
        super().change(job, **changes)
        late = self._late.get(job)
        if late is not None and "urgency" in changes:
            # What we ordered ourselves is seen to be done.
            known = msgspec.structs.replace(late, urgency=changes["urgency"])
            self._late[job] = known

    def _order(self, name, jobs, effect):
        self.touched += jobs
        return self.silence.call(name, lambda: effect(jobs))
