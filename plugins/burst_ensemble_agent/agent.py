# SPDX-License-Identifier: MIT
"""The agent of an external member, an instance of its own: `burst ensemble agent`.

It reads the instance, reports to the daemon, and submits and cancels the jobs that the
answer names. It keeps no state: after a restart it asks the instance by the job's name
whether a job was submitted. The service `burst` of the instance is its lock: only one
agent can have it, and the lock ends with the process.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import Any, Protocol, runtime_checkable

import msgspec
from burst_ensemble.core.job_rows import GROUP

from burst import log
from burst.errors import (
    BurstError,
    ConfigError,
    JobRefused,
    LeadError,
    ServiceTaken,
    Unreadable,
)
from burst.lead import JobSubmitter, Lead, NewJob, ServiceRequest, WholeQueue
from burst.model.active_job import ActiveJob
from burst.model.backoff import backoff
from burst.model.event import cut
from burst.model.fsd import format_fsd
from burst.model.jobid import JobId
from burst.model.lead import PENDING, JobView
from burst.runtime.retry import Retry
from burst.runtime.service_answers import describe_process
from burst.wakeup import WakeUp
from burst_ensemble_agent.report import (
    AgentAnswer,
    AgentReport,
    make_report,
)

_FIRST_PAUSE = 1.0
_LONGEST_PAUSE = 30.0
_SHOWN_S = 2.0
"""Seconds to wait until the instance shows jobs that were submitted."""
_LOOK_S = 0.05


@runtime_checkable
class AgentLead(Lead, JobSubmitter, WholeQueue, Protocol):
    """The interface that the agent needs from an instance."""


class AgentSite(msgspec.Struct, frozen=True, kw_only=True):
    """The options of an agent, set at its start."""

    about: str
    """ENSEMBLE/MEMBER, the tag of its jobs."""
    environment: Mapping[str, str]
    """The environment variables of the jobs that it submits."""
    directory: str
    """The working directory of jobs for which the file sets none."""
    start: float = 600.0
    """Seconds to wait at the start for an instance that does not answer yet."""
    gone: float = 60.0
    """Seconds without an answer after which the instance counts as ended."""


class EnsembleAgent:
    """Reports on one instance.

    Call `run` in one thread, and `stop` in any thread or in a signal handler.
    """

    def __init__(
        self,
        site: AgentSite,
        connector: Callable[[], Lead],
        post: Callable[[AgentReport], AgentAnswer],
    ) -> None:
        """`post` sends a report to the daemon. It raises BurstError if that fails."""
        self._site = site
        self._connector = connector
        self._post = post
        self._wakeup = WakeUp()
        self._stopping = self._over = False
        self._began, self._number = time.time(), 0
        self._submitted: dict[str, JobId] = {}
        self._refused: dict[str, str] = {}
        self._never_taken: dict[str, str] = {}
        self._asked: tuple[JobId, ...] = ()
        self._failures = 0
        self._said = ""

    def stop(self) -> None:
        """Have `run` return soon."""
        self._stopping = True
        self._wakeup.wake()

    def run(self) -> None:
        """Report until told to stop, or until the member or the instance has ended.

        Raises BurstError if the instance cannot be used, or did not answer in time.
        """
        site, retry = self._site, Retry(self._wakeup, lambda: self._stopping)
        try:
            lead = retry.until(site.start, self._connect, _may_come)
        except (Unreadable, ServiceTaken) as error:
            raise LeadError(
                f"no instance answered within {format_fsd(site.start)}: {error}",
                "start the agent beside its broker, with FLUX_URI",
            ) from error
        while lead is not None:
            self._report_on(lead)
            if self._over:
                return
            try:
                lead = retry.until(site.gone, self._connect)
            except BurstError as error:
                gone = format_fsd(site.gone)
                log.say("the instance has been gone for %s: %s", gone, error)
                return

    def _report_on(self, lead: AgentLead) -> None:
        """Report until told to stop, the member has ended, or the lead fails."""
        with closing(lead):
            try:
                while not self._stopping and not self._over:
                    self._wakeup.wait(self._turn(lead))
            except LeadError as error:
                log.say("%s: %s", self._site.about, error, level=logging.WARNING)
                self._wakeup.wait(_FIRST_PAUSE)

    def _turn(self, lead: AgentLead) -> float:
        """Report once; return the seconds until the next report. Raises LeadError."""
        report = self._read(lead)
        try:
            answer = self._post(report)
        except BurstError as error:
            return self._failed(error)
        if self._said:
            log.say("%s: reports again", self._site.about)
        self._failures, self._said = 0, ""
        return self._obey(lead, answer)

    def _connect(self) -> AgentLead:
        """Connect to the instance, as its only agent. Raises BurstError."""
        lead = self._connector()
        if not isinstance(lead, AgentLead):
            lead.close()
            raise ConfigError("this instance does not take jobs from an agent")
        try:
            lead.serve(self._refuse_request, describe_process(self._began))
            lead.follow_queue(_NoListener(), lambda *_: True)
            lead.listen(lambda: None)
            lead.observe()
        except BaseException:
            lead.close()
            raise
        log.say("agent of %s beside %s", self._site.about, lead.identity().uri)
        return lead

    def _refuse_request(self, _: ServiceRequest) -> dict[str, Any]:
        raise BurstError(
            f"this instance has the agent of {self._site.about}, and no daemon",
            "ask the daemon that runs the ensemble",
        )

    def _failed(self, error: BurstError) -> float:
        if str(error) != self._said:
            self._said = str(error)
            log.say(
                "%s: %s; the agent tries again",
                self._site.about,
                error,
                level=logging.WARNING,
            )
        self._failures += 1
        return backoff(_FIRST_PAUSE, self._failures, _LONGEST_PAUSE)

    def _read(self, lead: AgentLead) -> AgentReport:
        view = lead.observe()
        outcomes = lead.outcomes(self._asked) if self._asked else {}
        self._number += 1
        return make_report(
            self._site.about,
            lead.identity(),
            view,
            outcomes=outcomes,
            began=self._began,
            number=self._number,
            submitted=dict(self._submitted),
            refused=dict(self._refused),
            never_taken=dict(self._never_taken),
        )

    def _obey(self, lead: AgentLead, answer: AgentAnswer) -> float:
        """Do what the answer says; return the seconds until the next report."""
        names = answer.submit.keys()
        self._submitted = {k: v for k, v in self._submitted.items() if k in names}
        self._never_taken = {k: v for k, v in self._never_taken.items() if k in names}
        self._refused, self._asked = {}, answer.ask
        if answer.end:
            # Look again after jobs were canceled: another may have been submitted
            # meanwhile. The agent ends once no job waits.
            self._over = not self._cancel(lead, answer.end, self._waiting(lead))
            if self._over:
                log.say("%s has ended: %s", self._site.about, answer.end)
            return _FIRST_PAUSE
        earlier = [
            job
            for job in self._waiting(lead)
            if GROUP in job.attributes and not job.name.endswith(answer.run)
        ]
        self._cancel(lead, "it was started again", earlier)
        if answer.submit and self._submit(lead, answer.submit):
            return 0.0
        return answer.check

    def _submit(self, lead: AgentLead, jobs: Mapping[str, dict[str, Any]]) -> bool:
        """Submit the jobs that the instance lacks; tell whether it has new ones now."""
        known = self._submitted.keys() | self._never_taken.keys()
        unknown = [name for name in jobs if name not in known]
        if not unknown:
            return False
        there = lead.find_jobs(unknown)
        rest = [name for name in unknown if name not in there]
        self._submitted |= there
        new = [NewJob(self._complete(jobs[name])) for name in rest]
        answers = lead.submit_jobs(new) if new else []
        taken = dict(there)
        for name, made in zip(rest, answers, strict=True):
            if isinstance(made, JobRefused):
                self._never_taken[name] = cut(str(made), 300)
            elif isinstance(made, BurstError):
                self._refused[name] = cut(str(made), 300)
            else:
                taken[name] = made
        self._submitted |= taken
        if rest:
            made_now = len(taken) - len(there)
            log.say(
                "%s: %d jobs submitted, %d refused, %d already there",
                self._site.about,
                made_now,
                len(rest) - made_now,
                len(there),
            )
        self._await(lead, set(taken.values()) - set(there.values()))
        return bool(taken)

    def _complete(self, jobspec: Mapping[str, Any]) -> dict[str, Any]:
        """Return a jobspec with the environment and the working directory."""
        attributes = dict(jobspec["attributes"])
        system = {"cwd": self._site.directory, **attributes["system"]}
        system["environment"] = dict(self._site.environment)
        return {**jobspec, "attributes": {**attributes, "system": system}}

    def _await(self, lead: AgentLead, jobs: set[JobId]) -> None:
        """Wait until the instance shows the jobs, so that the next report has them."""
        ends = time.monotonic() + _SHOWN_S
        while jobs - lead.observe().jobs.keys() and time.monotonic() < ends:
            time.sleep(_LOOK_S)

    def _waiting(self, lead: AgentLead) -> list[JobView]:
        """Return the jobs of the member that wait."""
        return [
            job
            for job in lead.observe().jobs.values()
            if job.preferences.tag == self._site.about and job.state in PENDING
        ]

    def _cancel(self, lead: AgentLead, why: str, waiting: Sequence[JobView]) -> int:
        """Cancel jobs that wait; return how many there were."""
        for job in waiting:
            try:
                lead.cancel_job(job.id, f"{self._site.about} has ended: {why}")
            except Unreadable:
                raise
            except LeadError as error:
                log.say("%s: cannot cancel a pending job: %s", self._site.about, error)
        return len(waiting)


def _may_come(error: BurstError) -> bool:
    """Tell whether an error may pass, because the instance does not answer yet."""
    return isinstance(error, Unreadable | ServiceTaken)


class _NoListener:
    """Ignores news of jobs: the agent reads them when it reports."""

    def changed(self) -> None:
        """See `burst.lead.QueueListener`."""

    def ended(self, job: ActiveJob) -> None:
        """See `burst.lead.QueueListener`."""

    def lost(self) -> None:
        """See `burst.lead.QueueListener`."""
