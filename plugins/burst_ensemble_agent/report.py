# SPDX-License-Identifier: MIT
"""The report of an agent to the daemon, and the answer, both JSON; and the external
member that is read by these reports.

The agent runs beside an instance that the daemon did not start. It makes each
connection, and each report has its whole reading, so that the daemon needs no earlier
report: its record of jobs is enough.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from burst_ensemble.core.intents import Done, JobRef
from burst_ensemble.core.job_rows import (
    GROUP,
    JobRow,
    JobsSeen,
    MemberState,
    count_jobs,
    lost_jobs,
)
from burst_ensemble.core.member_job import find_group, job_name, make_jobspec, run_of
from burst_ensemble.core.record import Member
from burst_ensemble.http.routes import RequestRefused

from burst.decode import from_json
from burst.model.active_job import JobOutcome
from burst.model.jobid import JobId
from burst.model.lead import JobState, JobView, LeadIdentity, LeadView
from burst.model.shape import Shape

AGENT_PATH = "/ensembles-agent/"
"""The path of reports in the daemon's `[http]`; ENSEMBLE.MEMBER follows."""
REPORT_VERSION = 4
REPORT_BYTES = 2 * 1024 * 1024
"""The maximum size of a report, in bytes."""
JOBS_MOST = 5000
"""The maximum number of jobs in a report: active ones first, of these the member's own,
then by id. Further active jobs are only counted, in `AgentReport.more`."""
_NAMES_MOST = 400
ASK_MOST = 500
"""The maximum number of jobs in `AgentAnswer.ask`."""
_Short = Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
_Count = Annotated[int, msgspec.Meta(ge=0, le=10_000_000)]
_JobName = Annotated[str, msgspec.Meta(min_length=1, max_length=300)]


class AgentNodes(msgspec.Struct, frozen=True, kw_only=True):
    """The nodes of the agent's instance."""

    up: _Count
    """Nodes that are online and not drained."""
    free: _Count
    """Nodes of `up` on which no job runs."""
    cores_up: _Count
    cores_free: _Count


class AgentReport(msgspec.Struct, frozen=True, kw_only=True):
    """The reading of an agent at one moment."""

    version: int
    instance: _Short
    """Owner tag of the instance beside which the agent runs."""
    began: float
    """When this process of the agent began, in seconds since the epoch."""
    number: Annotated[int, msgspec.Meta(ge=1)]
    """The number of the report, from 1 for each process of the agent."""
    nodes: AgentNodes
    jobs: Annotated[tuple[JobRow, ...], msgspec.Meta(max_length=JOBS_MOST)] = ()
    """Jobs that are active, or ended a short while ago."""
    more: Mapping[JobState, _Count] = {}
    """How many further active jobs there are, by state."""
    submitted: Annotated[
        Mapping[_JobName, JobId], msgspec.Meta(max_length=_NAMES_MOST)
    ] = {}
    """Jobs of the last `AgentAnswer.submit` that the instance has, by name."""
    refused: Annotated[
        Mapping[_JobName, Annotated[str, msgspec.Meta(max_length=300)]],
        msgspec.Meta(max_length=_NAMES_MOST),
    ] = {}
    """Why the instance refused jobs of the last `AgentAnswer.submit`, by name."""
    never_taken: Annotated[
        Mapping[_JobName, Annotated[str, msgspec.Meta(max_length=300)]],
        msgspec.Meta(max_length=_NAMES_MOST),
    ] = {}
    """The same for jobs that it will never accept."""
    outcomes: Annotated[
        Mapping[JobId, JobOutcome], msgspec.Meta(max_length=ASK_MOST)
    ] = {}
    """How jobs of `AgentAnswer.ask` ended."""


class AgentAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What the agent has to do."""

    version: int
    check: float
    """Seconds until its next report."""
    submit: Mapping[str, dict[str, Any]] = {}
    """Jobspecs by the unique name of the job, in the order in which they are submitted.
    A job is repeated until the record says that the instance has it, or will never
    accept it. The jobspecs have no environment, and no `cwd` if the file sets none: the
    agent adds its own."""
    ask: tuple[JobId, ...] = ()
    """Jobs that are no longer in the report: the next report says how they ended."""
    run: str = ""
    """How the names of the ensemble's jobs end: the agent cancels those that wait since
    an earlier run."""
    end: str = ""
    """Why the member has ended: the agent cancels its waiting jobs, and ends. Empty
    while the member runs."""


class TakenReport(msgspec.Struct, frozen=True):
    """A report that the daemon has received and accepted."""

    at: float
    """When it was received, in seconds since the epoch."""
    until: float
    """When the agent starts to count as silent, unless it reports again."""
    report: AgentReport


def make_report(
    tag: str, identity: LeadIdentity, view: LeadView, **known: Any
) -> AgentReport:
    """Return the report on what was read of an instance; `known` are further fields.

    `tag` is the tag of the member's jobs.
    """
    shapes = identity.shapes
    rows = [_row(job, tag) for job in view.jobs.values()]
    # Active jobs that are left out are counted, and come in a later report.
    rows.sort(key=lambda row: (row.state is JobState.INACTIVE, not row.group, row.id))
    rest = [row.state for row in rows[JOBS_MOST:] if row.state is not JobState.INACTIVE]
    up = view.usable
    whole = {rank: shapes[rank].cores for rank in up if rank < len(shapes)}
    free = {rank: view.free.get(rank, Shape(0)).cores for rank in whole}
    return AgentReport(
        version=REPORT_VERSION,
        instance=identity.owner,
        nodes=AgentNodes(
            up=len(up),
            free=len(up - view.allocated),
            cores_up=sum(whole.values()),
            cores_free=sum(min(free[rank], whole[rank]) for rank in whole),
        ),
        jobs=tuple(rows[:JOBS_MOST]),
        more=Counter[JobState](rest),
        **known,
    )


def _row(job: JobView, tag: str) -> JobRow:
    """Return a job of the lead as a row; without this tag the job has no group."""
    has_tag = job.preferences.tag == tag
    return JobRow(
        id=job.id,
        state=job.state,
        group=job.attributes.get(GROUP, "") if has_tag else "",
        nodes=job.nodes_asked,
        urgency=job.later_urgency,
        t_submit=job.t_submit,
        t_start=job.t_start,
        t_finish=job.t_finish,
        result=job.result,
    )


class _Head(msgspec.Struct):
    version: int


def read_report(body: bytes) -> AgentReport:
    """Return the report in the body of a request. Raises RequestRefused."""
    try:
        version = from_json(body, _Head).version
        if version != REPORT_VERSION:
            raise RequestRefused(
                400,
                f"the report has version {version}, and the daemon knows version"
                f" {REPORT_VERSION}",
                "install the daemon's version of burst beside the agent",
            )
        return from_json(body, AgentReport)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise RequestRefused(400, f"not a report of an agent: {error}") from error


def check_order(
    report: AgentReport, last: TakenReport | None, instance: str, now: float
) -> None:
    """Raise RequestRefused for a report of another instance, or one that is not newer
    than the last, by this or another process of the agent.

    The order is not checked once the agent is silent. `instance` is the instance that
    has the member's jobs; empty before the first report.
    """
    known = last.report.instance if last else instance
    if known and report.instance != known:
        raise RequestRefused(
            409,
            f"the member is the instance {known}, and the report is of"
            f" {report.instance}: jobs are submitted to only one",
            "end the ensemble and start it again for another instance",
        )
    if last is None or now > last.until:
        return
    before = last.report.began, last.report.number
    if (report.began, report.number) <= before:
        raise RequestRefused(
            409, f"stale: report {report.number}; a later one was already accepted"
        )


class AgentMember(Member, frozen=True):
    """An external member on record."""

    def names(self) -> dict[str, JobRef]:
        """Return the unconfirmed jobs, which the agent has to submit, by name."""
        spec, started = self.ensemble.start.spec, self.ensemble.record.started
        return {
            job_name(spec, self.name, ref, started): ref
            for ref in self.record.unconfirmed
        }

    def submitted(self, report: AgentReport) -> Done:
        """Return what the report says about the unconfirmed jobs."""
        names = self.names()
        refused = [report.refused[name] for name in names if name in report.refused]
        return Done(
            refused[0] if refused else "",
            {
                ref: report.submitted[name]
                for name, ref in names.items()
                if name in report.submitted
            },
            {
                ref: report.never_taken[name]
                for name, ref in names.items()
                if name in report.never_taken
            },
        )

    def read(self, report: AgentReport, now: float) -> MemberState:
        """Return the member as its agent has read it, with its next record.

        All jobs of the instance are in the reading, whoever submitted them.
        """
        before = msgspec.structs.replace(self.record, instance=report.instance)
        run = run_of(self.ensemble.record.started)
        rows = [_of_run(row, run) for row in report.jobs]
        seen = JobsSeen(rows, report.outcomes, report.more, has_others=True)
        counted = count_jobs(before, seen, now)
        reading = msgspec.structs.replace(
            counted.reading,
            nodes_up=report.nodes.up,
            nodes_free=min(report.nodes.free, report.nodes.up),
            cores_up=report.nodes.cores_up,
            cores_free=report.nodes.cores_free,
        )
        return MemberState(reading, counted.member)

    def answer(self, report: AgentReport) -> AgentAnswer:
        """Return the answer to a report: what the agent has to do."""
        kept, check = self.record, float(self.ensemble.start.spec.check)
        if kept.ended is not None:
            return AgentAnswer(version=REPORT_VERSION, check=check, end=kept.why)
        cores = report.nodes.cores_up // report.nodes.up if report.nodes.up else 1
        lost = lost_jobs(kept, {row.id for row in report.jobs})
        return AgentAnswer(
            version=REPORT_VERSION,
            check=check,
            submit={
                name: self._jobspec(ref, name, cores)
                for name, ref in self.names().items()
            },
            ask=tuple(lost[:ASK_MOST]),
            run=run_of(self.ensemble.record.started),
        )

    def _jobspec(self, ref: JobRef, name: str, cores: int) -> dict[str, Any]:
        """Return the jobspec of a job for this member.

        `cores` is the number of cores of each node. The agent adds the environment and
        the working directory.
        """
        job = find_group(self.ensemble.start.spec, self.name, ref)
        system: dict[str, Any] = {
            "duration": float(job.duration),
            "job": {"name": name},
            "burst": {"tag": self.key},
            # With the run, because an earlier one may have left jobs of this entry, and
            # clocks differ.
            GROUP: f"{ref.group}{run_of(self.ensemble.record.started)}",
        }
        if job.workdir:
            system["cwd"] = job.workdir
        return make_jobspec(job, ref.number, Shape(cores), system)


def _of_run(row: JobRow, run: str) -> JobRow:
    """Return a row with the entry of `jobs` as its group; with none if its job is not
    of this run.
    """
    group = row.group.removesuffix(run) if row.group.endswith(run) else ""
    return msgspec.structs.replace(row, group=group)
