# SPDX-License-Identifier: MIT
"""What the agent of a member tells the daemon, and what it is answered; JSON.

The agent runs beside an instance that the daemon did not start. It makes each
connection, and sends its whole reading each time: of nothing that was sent before is
the daemon to remember more than its record of jobs has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from burst_ensemble.core.job_rows import GROUP, JobRow
from burst_ensemble.http.routes import RequestRefused

from burst.decode import from_json
from burst.model.active_job import JobOutcome
from burst.model.jobid import JobId
from burst.model.lead import JobState, JobView, LeadIdentity, LeadView
from burst.model.shape import Shape

AGENT_PATH = "/ensembles-agent/"
"""Where in the daemon's `[http]` agents report; ENSEMBLE.MEMBER follows."""
REPORT_VERSION = 3
REPORT_BYTES = 2 * 1024 * 1024
"""Of a report, at most."""
JOBS_MOST = 5000
"""Jobs of one report, those with the lowest ids; of others it has the number."""
_NAMES_MOST = 400
ASK_MOST = 500
"""Jobs of `AgentAnswer.ask`."""
_Short = Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
_Count = Annotated[int, msgspec.Meta(ge=0, le=10_000_000)]
_JobName = Annotated[str, msgspec.Meta(min_length=1, max_length=300)]


class AgentNodes(msgspec.Struct, frozen=True, kw_only=True):
    """The nodes of the agent's instance."""

    up: _Count
    """Those that are online and not drained."""
    free: _Count
    """Of these, those on which no job runs."""
    cores_up: _Count
    cores_free: _Count


class AgentReport(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent has read. All of it is of one moment."""

    version: int
    instance: _Short
    """Owner tag of the instance beside which the agent runs."""
    began: float
    """When this process of the agent began, in seconds since the epoch."""
    number: Annotated[int, msgspec.Meta(ge=1)]
    """Of the report, from 1 for each process."""
    nodes: AgentNodes
    jobs: Annotated[tuple[JobRow, ...], msgspec.Meta(max_length=JOBS_MOST)] = ()
    """Jobs that are active, or ended a short while ago."""
    more: Mapping[JobState, _Count] = {}
    """How many further jobs there are, by state."""
    submitted: Annotated[
        Mapping[_JobName, JobId], msgspec.Meta(max_length=_NAMES_MOST)
    ] = {}
    """Jobs of the last `AgentAnswer.submit` that the instance has, by name."""
    refused: Annotated[
        Mapping[_JobName, Annotated[str, msgspec.Meta(max_length=300)]],
        msgspec.Meta(max_length=_NAMES_MOST),
    ] = {}
    """Why the instance did not take others."""
    outcomes: Annotated[
        Mapping[JobId, JobOutcome], msgspec.Meta(max_length=ASK_MOST)
    ] = {}
    """How jobs of `AgentAnswer.ask` ended."""


class AgentAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What the agent is to do."""

    version: int
    check: float
    """Seconds until its next report."""
    submit: Mapping[str, dict[str, Any]] = {}
    """Jobspecs of jobs that its instance is to have, in this order, until it is
    recorded that it has them; by the name, which no other job has. They are without
    environment, and without `cwd` where the file says none: the agent's."""
    ask: tuple[JobId, ...] = ()
    """Jobs that have left the report: how did they end?"""
    end: str = ""
    """Why the member has ended: the agent cancels its jobs that wait, and ends."""


class TakenReport(msgspec.Struct, frozen=True):
    """A report that the daemon has taken in."""

    at: float
    """When, in seconds since the epoch."""
    until: float
    """When the agent counts as silent."""
    report: AgentReport


def make_report(
    tag: str, identity: LeadIdentity, view: LeadView, **known: Any
) -> AgentReport:
    """Return what was read of an instance, beside what is known already.

    Jobs of the member bear the tag.
    """
    shapes = identity.shapes
    rows = [_row(job, tag) for job in view.jobs.values()]
    # What is left out is told by its number, and later one by one.
    rows.sort(key=lambda row: (row.state is JobState.INACTIVE, row.id))
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
    """Return a job that a lead shows; one without that tag as of no group."""
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
    """Return the report. Raises RequestRefused."""
    try:
        version = from_json(body, _Head).version
        if version != REPORT_VERSION:
            raise RequestRefused(
                400,
                f"a report of version {version}, the daemon knows {REPORT_VERSION}",
                "install the daemon's version of burst beside the agent",
            )
        return from_json(body, AgentReport)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise RequestRefused(400, f"not a report of an agent: {error}") from error


def check_order(
    report: AgentReport, last: TakenReport | None, instance: str, now: float
) -> None:
    """Raise RequestRefused for a report of another instance, and for one that is older
    than the last, by this process of the agent or one before, until that is silent.

    `instance` is what the member's jobs are known to be in; empty for none yet.
    """
    known = last.report.instance if last else instance
    if known and report.instance != known:
        raise RequestRefused(
            409,
            f"the member is the instance {known}, and the report is of"
            f" {report.instance}: jobs are submitted to one",
            "end the ensemble and start it again for another instance",
        )
    if last is None or now > last.until:
        return
    before = last.report.began, last.report.number
    if (report.began, report.number) <= before:
        raise RequestRefused(
            409, f"stale: report {report.number}, a later one was taken since"
        )
