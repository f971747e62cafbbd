# SPDX-License-Identifier: MIT
"""The jobs of members that are bursts: they are the lead's jobs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from burst.core.tagged_nodes import TaggedJob, TaggedNodes
from burst.errors import BurstError, LeadError
from burst.lead import JobSubmitter
from burst.model.active_job import JobOutcome
from burst.model.jobid import JobId
from burst_ensemble.core.intents import Done, SubmitJobs
from burst_ensemble.core.job_rows import lost_jobs
from burst_ensemble.core.member_job import JobSite, job_name, make_job
from burst_ensemble.core.record import EnsembleRecord, EnsembleStart, MemberRecord


class LeadJobs:
    """Submits jobs, and finds out how those ended that the lead shows no more."""

    def __init__(self, submitter: JobSubmitter) -> None:
        self._submitter = submitter

    def outcomes(
        self, member: MemberRecord, jobs: Iterable[TaggedJob]
    ) -> Mapping[JobId, JobOutcome]:
        """Return how a member's jobs ended while nobody looked. Raises LeadError."""
        lost = lost_jobs(member, {job.id for job in jobs})
        return self._submitter.outcomes(lost) if lost else {}

    def submit(
        self,
        file: EnsembleStart,
        intent: SubmitJobs,
        before: EnsembleRecord,
        nodes: TaggedNodes,
    ) -> Done:
        """Submit jobs of a member; return what the lead has now.

        `before` is the record on which the step rests: jobs that are unconfirmed there
        the lead may have. Raises LeadError, and ConfigError for a job that none can be.
        """
        spec, member = file.spec, intent.member
        recorded = before.members.get(member)
        earlier = recorded.unconfirmed if recorded else ()
        names = {
            ref: job_name(spec, member, ref, before.started) for ref in intent.jobs
        }
        doubtful = [names[ref] for ref in intent.jobs if ref in earlier]
        there = self._submitter.find_jobs(doubtful) if doubtful else {}
        rest = [ref for ref in intent.jobs if names[ref] not in there]
        site = _site_of(file, member, nodes)
        if site is None:
            known = {ref: there[n] for ref, n in names.items() if n in there}
            why = f"provider {spec.member(member).provider} offers no isolated bursts"
            return Done(f"{why} now", known)
        jobs = [make_job(file, member, ref, names[ref], site) for ref in rest]
        answers = self._submitter.submit_jobs(jobs) if jobs else []
        ids = {ref: there[name] for ref, name in names.items() if name in there}
        refused = ""
        for ref, answer in zip(rest, answers, strict=True):
            if isinstance(answer, BurstError):
                refused = refused or str(answer)
            else:
                ids[ref] = answer
        return Done(refused, ids)


def _site_of(file: EnsembleStart, member: str, nodes: TaggedNodes) -> JobSite | None:
    """Return what the member's jobs are fitted to; None if it is offered nothing."""
    spec = file.spec.member(member)
    if spec.is_isolated:
        offered = [
            offer.shape
            for offer in nodes.offers.get(spec.provider, ())
            if "isolated" in offer.modes and spec.offer in {"", offer.name}
        ]
        if not offered:
            return None
        # They fit on each of them.
        least = min(offered, key=lambda shape: shape.cores)
        return JobSite(nodes.attribute, least)
    hosts = file.slots[member]
    shapes = {slot.hosts[0]: slot.shape for slot in nodes.slots}
    shape = shapes.get(hosts[0])
    if shape is None:
        raise LeadError(
            f"{member}: the lead has no rank slot that begins with {hosts[0]} any more",
            "end the ensemble and start it again",
        )
    return JobSite(nodes.attribute, shape)
