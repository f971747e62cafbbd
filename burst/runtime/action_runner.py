# SPDX-License-Identifier: MIT
"""Carries out the actions of a tick, after their intents were stored."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import msgspec

from burst import log
from burst.core.actions import (
    Action,
    CancelJob,
    ConfineJobs,
    DrainBurst,
    EndHousekeeping,
    EndJob,
    FailJob,
    HoldJobs,
    MoveJobs,
    ProvisionBurst,
    ReapBurst,
    ReleaseJobs,
    RepeatJob,
    ResizeBurst,
    TellJobs,
    UndrainBurst,
    UndrainRanks,
)
from burst.core.provider_health import Verb
from burst.core.records import Records
from burst.errors import BurstError, JobspecError, LeadGone, SpecRefused, Unreadable
from burst.kits.rotation import running_certificate
from burst.lead import (
    JobFailures,
    Lead,
    NewJob,
    housekeeper_of,
    queues_of,
    submitter_of,
)
from burst.model.burst import Burst, Isolated
from burst.model.jobid import JobId, format_f58
from burst.model.lead import LeadIdentity
from burst.model.listing import listing_script
from burst.model.program import Program, command_jobspec, far_jobspec, script_jobspec
from burst.model.repeat import Repeat, repeated_jobspec
from burst.provider import BurstSpec
from burst.runtime.provider_tracker import ProviderTracker

_HELD = 0


class ActionRunner:
    """Carries out each action once; a later tick deals with those that failed."""

    def __init__(
        self,
        lead: Lead,
        identity: LeadIdentity,
        tracker: ProviderTracker,
        tell_repeat: Callable[[JobId, JobId | None, str], None],
    ) -> None:
        """`tell_repeat` gets a job that was to be submitted again, the id of the new
        job, or None, and why the lead refused it.
        """
        self._lead = lead
        self._identity = identity
        self._tracker = tracker
        self._tell_repeat = tell_repeat

    def perform(self, actions: Sequence[Action], records: Records) -> list[Action]:
        """Carry the actions out, in order; return those that the lead did not answer.

        The lead may still carry out such an action later. Its intent is on record, so
        later ticks see the effect or ask again. After the first action without an
        answer, the lead is not called again in this tick, as each call would take as
        long to time out. Raises LeadGone.
        """
        unanswered: list[Action] = []
        for action in actions:
            if unanswered and _needs_lead(action, records):
                unanswered.append(action)
                continue
            try:
                if isinstance(action, ProvisionBurst | ReapBurst | ResizeBurst):
                    self._ask_provider(action, records.bursts[action.burst])
                else:
                    self._ask_lead(action, records)
            except LeadGone:
                raise
            except Unreadable as error:
                log.warn("%s; the daemon asks again later", error)
                unanswered.append(action)
            except BurstError as error:
                log.warn("%s", error)
        return unanswered

    def _ask_provider(
        self, action: ProvisionBurst | ReapBurst | ResizeBurst, burst: Burst
    ) -> None:
        if isinstance(action, ReapBurst):
            self._tracker.call(burst, Verb.REAP)
            return
        if isinstance(action, ResizeBurst):
            self._tracker.call(burst, Verb.RESIZE, make_spec(burst, self._identity))
            return
        spec: BurstSpec | SpecRefused
        try:
            spec = make_spec(burst, self._identity, self._program(burst))
        except JobspecError as error:
            spec = SpecRefused(error.what, error.advice)
        self._tracker.call(burst, Verb.PROVISION, spec)

    def _program(self, burst: Burst) -> Program | None:
        """Return what an isolated burst is to run. Raises LeadError, JobspecError."""
        isolated = burst.lease.isolated
        match isolated:
            case None:
                return None
            case Isolated(kind="job", job=job):
                assert job is not None
                return Program(kind="job", jobspec=far_jobspec(self._lead.jobspec(job)))
            case Isolated(kind="command"):
                nodes, duration = burst.lease.nodes, isolated.duration
                text = command_jobspec(isolated.command, nodes, duration)
                return Program(kind="job", jobspec=text)
            case Isolated(kind="batch"):
                nodes, duration = burst.lease.nodes, isolated.duration
                script = listing_script(isolated.command)
                text = script_jobspec(script, nodes, duration)
                return Program(kind="job", jobspec=text)
            case Isolated(kind="interactive"):
                return Program(kind="interactive")
            case _:
                return Program(kind="service")

    def _ask_lead(self, action: Action, records: Records) -> None:
        match action:
            case HoldJobs(jobs):
                self._report("hold", self._lead.hold(jobs))
            case ReleaseJobs(urgencies):
                self._report("release", self._lead.release(urgencies))
            case MoveJobs(queues, lent):
                self._report("move", queues_of(self._lead).move(queues, lent))
            case ConfineJobs(lent):
                self._report("confine", self._lead.confine(lent))
            case FailJob() | CancelJob() | EndJob():
                self._end_job(action)
            case TellJobs(jobs, memo):
                memos = dict.fromkeys(jobs, memo)
                self._report("write the memo of", self._lead.write_memos(memos))
            case RepeatJob(job):
                self._repeat(job, records.repeats[job])
            case DrainBurst() | UndrainBurst() | UndrainRanks() | EndHousekeeping():
                self._change_ranks(action)

    def _repeat(self, job: JobId, repeat: Repeat) -> None:
        """Submit a job again, held, and pass on the lead's answer.

        Raises LeadGone and Unreadable: then the job may have been submitted.
        """
        again, refused = None, ""
        try:
            submitter = submitter_of(self._lead)
            spec = repeated_jobspec(self._lead.submitted_jobspec(job), job, repeat)
            (answer,) = submitter.submit_jobs([NewJob(spec, _HELD)])
            if isinstance(answer, BurstError):
                raise answer
            again = answer
        except (LeadGone, Unreadable):
            raise
        except BurstError as error:
            refused = str(error)
        told = msgspec.structs.replace(repeat, again=again, refused=refused)
        level = logging.WARNING if refused else logging.INFO
        log.say("job %s lost a node; %s", format_f58(job), told.text(), level=level)
        self._tell_repeat(job, again, refused)

    def _change_ranks(
        self, action: DrainBurst | UndrainBurst | UndrainRanks | EndHousekeeping
    ) -> None:
        match action:
            case DrainBurst(ranks, reason):
                self._lead.drain(ranks, reason)
            case UndrainBurst(ranks=ranks) | UndrainRanks(ranks):
                self._lead.undrain(ranks)
            case EndHousekeeping(ranks, signum):
                housekeeper_of(self._lead).end_housekeeping(ranks, signum)

    def _end_job(self, action: FailJob | CancelJob | EndJob) -> None:
        match action:
            case FailJob(job, reason):
                self._lead.fail_job(job, reason)
            case CancelJob(job, reason):
                self._lead.cancel_job(job, reason)
            case EndJob(job, memo):
                self._report("write the memo of", self._lead.write_memos({job: memo}))
                self._finish(action)

    def _finish(self, action: EndJob) -> None:
        """Give the job the result of its run elsewhere, or fail it with the reason."""
        status = action.exit_status
        if status is None or not self._lead.finish_job(
            action.job, status, action.output
        ):
            self._lead.fail_job(action.job, action.reason)

    def _report(self, what: str, failures: JobFailures) -> None:
        for job, why in failures.items():
            log.warn("the lead did not %s job %s: %s", what, format_f58(job), why)


def _needs_lead(action: Action, records: Records) -> bool:
    """Tell whether carrying out an action calls the lead."""
    if isinstance(action, ReapBurst | ResizeBurst):
        return False
    if not isinstance(action, ProvisionBurst):
        return True
    return records.bursts[action.burst].lease.isolated_job is not None


def make_spec(
    burst: Burst, identity: LeadIdentity, program: Program | None = None
) -> BurstSpec:
    """Return what a provider is to make, from the record and the lead's identity.

    The spec has the certificate that the running lead uses, also after a rotation.
    """
    lease = burst.lease
    # The record keeps the nodes that leave until they are gone.
    nodes = lease.nodes - len(burst.leaving)
    path = running_certificate(identity)
    return BurstSpec(
        burst_id=lease.id,
        owner=identity.owner,
        offer=lease.offer,
        hosts=lease.hosts[:nodes],
        ranks=lease.ranks[:nodes],
        shape=lease.shape,
        lead=msgspec.structs.replace(identity, certificate=path),
        lease_end=lease.end,
        userids=lease.userids,
        banks=lease.banks,
        queues=lease.queues,
        program=program,
        image=lease.image,
    )
