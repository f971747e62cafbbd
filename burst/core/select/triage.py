# SPDX-License-Identifier: MIT
"""Which pending jobs want a burst, and which can start on what is up."""

from __future__ import annotations

from collections.abc import Container, Mapping

import msgspec

from burst.config import IntakeSettings, Settings
from burst.core.behaviour import behaviour_of
from burst.core.isolated import decision as isolated_decision
from burst.core.placement.capacity import is_up, missing_nodes, own_ranks
from burst.core.placement.demand import NodePool
from burst.core.placement.plan import Demand
from burst.core.placement.shortfall import Shortfall
from burst.core.records import RecordsView
from burst.core.select.claims import retry_pause
from burst.core.select.constraints import Constraints
from burst.core.world import World
from burst.model.burst import Burst, Isolated
from burst.model.decision import Decision, moment
from burst.model.hold import HELD_BY_US, Hold, HoldState
from burst.model.jobid import JobId
from burst.model.lead import JobState, JobView, LeadView
from burst.model.reason import Reason
from burst.model.request import ResourceRequest
from burst.model.shape import Shape

# Tuples, not sets: a member is found by identity, and an enum's hash takes long.
_STARTED = (JobState.RUN, JobState.CLEANUP, JobState.INACTIVE)
# So long at least what is being given to some job is taken for a pending one's.
_GRANTED_S = 1.0


class JobTriage:
    """Sorts the jobs of one tick into verdicts and demands."""

    def __init__(
        self,
        records: RecordsView,
        world: World,
        constraints: Constraints,
        settings: Settings,
        now: float,
    ) -> None:
        assert world.lead is not None
        self._lead: LeadView = world.lead
        self._constraints = constraints
        self._holds = records.holds
        self._settings = settings.intake
        self._queues = world.identity.queues
        self._release_deadline = settings.deadlines.release
        self._now = now
        own = own_ranks(records, world.lead)
        self._whole = {rank: world.identity.shapes[rank] for rank in own}
        free = {rank: world.lead.free.get(rank, Shape(0)) for rank in own}
        self._local = NodePool(free, self._whole)
        self._elsewhere = {
            job: burst
            for burst in records.bursts.values()
            if burst.may_have_run
            for job in burst.jobs
        }
        self._world = world
        self._shortfalls: Mapping[JobId, Shortfall] = {}
        self._blocked: set[ResourceRequest] = set()
        self._granted: dict[ResourceRequest, bool] = {}
        self._feasible: dict[ResourceRequest, bool] = {}
        self.here: set[JobId] = set()
        """Those that fit on own nodes that are free, each beside those before it."""
        self._unread: frozenset[str] = frozenset()
        self.starting: set[JobId] = set()
        """Those of which the next picture of the lead tells whether they started."""
        self.decisions: dict[JobId, Decision] = {}
        self.demands: list[Demand] = []

    def sort(
        self,
        bursts_of: Mapping[JobId, list[Burst]],
        standing: Container[JobId],
        shortfalls: Mapping[JobId, Shortfall] | None = None,
    ) -> None:
        """Sort the jobs, highest urgency first, then oldest first, as Flux does.

        All but those on which a verdict stands. `shortfalls` are of jobs that could
        not have all the nodes that they need.
        """
        self._shortfalls = shortfalls or {}
        fresh = [
            job
            for number, job in self._lead.jobs.items()
            if number not in standing and job.state not in _STARTED
        ]
        fresh.sort(key=self._rank)
        self._unread = self._constraints.read(
            (job.userid, job.request.constraint)
            for job in fresh
            if job.request and job.request.constraint and job.id not in bursts_of
        )
        for job in fresh:
            found = self._triage(job, bursts_of.get(job.id, []))
            if isinstance(found, Decision):
                self.decisions[job.id] = found
            else:
                self.demands.append(found)

    def can_ever_run_here(self, request: ResourceRequest) -> bool:
        """Tell whether the nodes that are up would do once they are idle."""
        feasible = self._feasible.get(request)
        if feasible is None:
            pool = NodePool(self._whole, self._whole)
            feasible = pool.take(request, self._admitted(request))
            self._feasible[request] = feasible
        return feasible

    @property
    def behind(self) -> bool:
        """Whether some constraints are left for a later tick."""
        return bool(self._unread)

    def downgrade_hopeless(
        self, verdicts: Mapping[JobId | None, Decision]
    ) -> dict[JobId, Decision]:
        """Return a plan's verdicts on jobs, none hopeless that need not be.

        What no offer could ever serve may still run on the lead's own nodes, when
        those that are down come back, or those that are busy become free.
        """
        # Jobs that share a verdict that is hopeless ask for the same.
        made: dict[int, Decision] = {}
        tempered: dict[JobId, Decision] = {}
        for job, verdict in verdicts.items():
            assert job is not None  # only a request ahead of jobs is for none
            if id(verdict) not in made:
                made[id(verdict)] = verdict
                if verdict.reason.about_job.hopeless and self._is_own(job):
                    milder = Decision(Reason.TURNED_DOWN, {}, verdict.refusals)
                    made[id(verdict)] = milder
            tempered[job] = made[id(verdict)]
        return tempered

    def _is_own(self, job: JobId) -> bool:
        """Tell whether the lead's own nodes, all up and idle, would do for a job."""
        request = self._lead.jobs[job].request
        assert request is not None
        not_own = {rank for slot in self._world.slots for rank in slot.ranks}
        not_own |= self._lead.excluded
        shapes = enumerate(self._world.identity.shapes)
        own = {rank: shape for rank, shape in shapes if rank not in not_own}
        pool = NodePool(own, own)
        return pool.take(request, self._admitted(request))

    def urgency(self, job: JobView) -> int:
        """Return the urgency the job has or, where we hold it, had before."""
        hold = self._holds.get(job.id)
        return hold.urgency if hold and hold.state in HELD_BY_US else job.urgency

    def _rank(self, job: JobView) -> tuple[int, int]:
        return -self.urgency(job), job.id

    def _triage(self, job: JobView, bursts: list[Burst]) -> Decision | Demand:
        if not (job.burstable or bursts or job.id in self._elsewhere):
            return Decision(Reason.NOT_BURSTABLE)
        alone = self._leave_alone(job)
        if alone:
            return alone
        assert job.request is not None
        if not bursts and job.request.constraint in self._unread:
            return Decision(Reason.NOT_YET_READ)
        found = self._need(job, job.request, bursts)
        if isinstance(found, Demand) and self._may_be_starting(job, job.request):
            self.starting.add(job.id)
            return Decision(Reason.STARTING)
        return found

    def _need(
        self, job: JobView, request: ResourceRequest, bursts: list[Burst]
    ) -> Decision | Demand:
        """Return what the job lacks, as far as this picture shows."""
        if bursts:
            return self._helped(job, request, bursts)
        closed = self._closed(job)
        if closed:
            return closed
        late = retry_pause(
            self._holds.get(job.id), job, self._release_deadline, self._now
        )
        if late:
            return late
        if self._starts_here(job, request, self._holds.get(job.id)):
            return Decision(Reason.LOCAL)
        return self._wanted(job, request, 0)

    def _may_be_starting(self, job: JobView, request: ResourceRequest) -> bool:
        """Tell whether the nodes that the job lacks may be taken by the job itself.

        A picture is not of one moment: a job that waits in it may have got, by the time
        its nodes were looked at, what is not free there. It has not if it did not
        change meanwhile and all that the scheduler gave away is known to be others';
        nor if it is held. What is being given away is taken for the job's where it
        would do for it, for as long as the job is left to the scheduler anyway.
        """
        if job.urgency == 0 or in_stopped_queue(job, self._settings):
            return False
        if job.id in self._lead.changed:
            return True
        return (
            self._waited(job) < max(self._patience(job), _GRANTED_S)
            and bool(self._lead.granting)
            and self._fits_with_granted(request)
        )

    def _fits_with_granted(self, request: ResourceRequest) -> bool:
        """Tell whether the job would fit if what is being given away were free."""
        fits = self._granted.get(request)
        if fits is None:
            lead, shapes = self._lead, self._world.identity.shapes
            free = dict(lead.free)
            for rank, more in lead.granting.items():
                less = free.get(rank, Shape(0))
                free[rank] = Shape(less.cores + more.cores, less.gpus + more.gpus)
            usable = lead.online - lead.torpid - lead.excluded - lead.drained.keys()
            pool = NodePool(
                {rank: free.get(rank, Shape(0)) for rank in usable},
                {rank: shapes[rank] for rank in usable},
            )
            fits = self._granted[request] = pool.take(request, self._admitted(request))
        return fits

    def _leave_alone(self, job: JobView) -> Decision | None:
        """Return why nothing is done for the job, None if something may be."""
        hold = self._holds.get(job.id)
        if job.id in self._elsewhere:
            return isolated_decision.decide(self._elsewhere[job.id])
        if job.request is None:
            return Decision(Reason.UNREADABLE, {"why": job.unreadable})
        if job.state is not JobState.SCHED:
            what = "dependencies" if job.state is JobState.DEPEND else "priority"
            return Decision(Reason.NOT_READY, {"what": what})
        if job.urgency == 0 and not (hold and hold.state in HELD_BY_US):
            return Decision(Reason.USER_HOLD)
        if in_stopped_queue(job, self._settings) and not self._may_move(job.request):
            return Decision(Reason.UNMOVABLE, {"queue": job.queue})
        return None

    def _closed(self, job: JobView) -> Decision | None:
        """Return the verdict on a job whose queue lets none start, if it is so."""
        moved = in_stopped_queue(job, self._settings)
        name = self._settings.ready if moved else job.queue
        queue = self._lead.queues.get(name)
        if queue is None:
            return None
        why = f" ({queue.reason})" if queue.reason else ""
        if not queue.started:
            facts = {"queue": f" {name}" if name else "", "why": why}
            return Decision(Reason.QUEUE_STOPPED, facts)
        if moved and not queue.enabled:
            return Decision(Reason.QUEUE_DISABLED, {"queue": name, "why": why})
        return None

    def _helped(
        self, job: JobView, request: ResourceRequest, bursts: list[Burst]
    ) -> Decision | Demand:
        """Judge a job that bursts are made for: is it enough, and how far is it."""
        missing, coming = missing_nodes(request, bursts, self._lead)
        if missing:
            return self._wanted(job, request, coming)
        late = next((burst for burst in bursts if not is_up(burst)), None)
        if late is None:
            released = Decision(Reason.RELEASED, {"ends": lease_warning(job, bursts)})
            return self._closed(job) or released
        return behaviour_of(late).decide(late, self._world, lease_warning(job, bursts))

    def _starts_here(
        self, job: JobView, request: ResourceRequest, hold: Hold | None
    ) -> bool:
        """Tell whether the job fits on what is free now and should wait for that."""
        held = hold is not None and hold.state in HELD_BY_US
        if (
            request in self._blocked
            or in_stopped_queue(job, self._settings)
            or wants_isolated(job)
        ):
            return False
        if not self._local.take(request, self._admitted(request)):
            self._blocked.add(request)
            return False
        self.here.add(job.id)
        return held or self._waited(job) < self._patience(job)

    def _patience(self, job: JobView) -> float:
        """Return how long the job is left to the scheduler, in seconds."""
        return (
            self._settings.local_wait
            if job.preferences.wait is None
            else job.preferences.wait
        )

    def _waited(self, job: JobView) -> float:
        """Return how long the scheduler has had the job, in seconds."""
        hold = self._holds.get(job.id)
        released = hold is not None and hold.state is HoldState.RELEASED
        return self._now - (hold.since if hold and released else job.t_submit)

    def _may_move(self, request: ResourceRequest) -> bool:
        """Tell whether Flux lets the job change its queue.

        It does where the job's constraints are those of its queue and no others, since
        those of the new queue replace them (job-manager's queue.c).
        """
        if not request.constraint:
            return True
        required = self._queues.get(self._settings.queue, ())
        expected: dict[str, object] = {"properties": list(required)}
        return bool(msgspec.json.decode(request.constraint) == expected)

    def _wanted(
        self, job: JobView, request: ResourceRequest, coming: int
    ) -> Decision | Demand:
        """Return what is to be had for the job; a verdict if its user took it back.

        One in the stopped queue could not start without us, whatever its urgency.
        """
        if self._taken_back(job) and not in_stopped_queue(job, self._settings):
            return Decision(Reason.TAKEN_BACK)
        short = self._shortfalls.get(job.id)
        if short and not coming and self._now < short.until:
            return Decision(Reason.INCOMPLETE, {"until": short.until})
        return Demand(
            job=job.id,
            userid=job.userid,
            request=request,
            preferences=job.preferences,
            coming=coming,
            duration=job.duration,
            isolated=self._isolated(job),
        )

    def _isolated(self, job: JobView) -> Isolated | None:
        """Return what an isolated burst would run; None if Flux could run it, too."""
        if self._taken_back(job):
            return None
        return Isolated(kind="job", job=job.id, duration=job.duration)

    def _taken_back(self, job: JobView) -> bool:
        hold = self._holds.get(job.id)
        return hold is not None and hold.state is HoldState.OBEYED

    def _admitted(self, request: ResourceRequest) -> frozenset[int] | None:
        if not request.constraint:
            return None
        return self._constraints.admitted(request.constraint)


def lease_warning(job: JobView, bursts: list[Burst]) -> str:
    """Return what a job without a time limit is told of leases that end."""
    ends = [burst.lease.end for burst in bursts if burst.lease.end]
    if job.duration or not ends:
        return ""
    at = moment(min(ends))
    return f"; it has no time limit, and what still runs at {at} is ended"


def wants_isolated(job: JobView) -> bool:
    """Tell whether its user wants the job run in an instance elsewhere, never here."""
    return job.preferences.mode == "isolated"


def in_stopped_queue(job: JobView, settings: IntakeSettings) -> bool:
    """Tell whether the job is in the stopped queue, where it can never start."""
    return settings.mode == "queue" and job.queue == settings.queue
