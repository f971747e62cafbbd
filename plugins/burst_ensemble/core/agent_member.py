# SPDX-License-Identifier: MIT
"""A member that is an instance of its own: what its agent told, and is to do."""

from __future__ import annotations

import msgspec

from burst.model.jobid import JobId
from burst.model.lead import JobState
from burst_ensemble.algorithm import SUBMIT_MOST
from burst_ensemble.core.agent_report import (
    ASK_MOST,
    REPORT_VERSION,
    AgentAnswer,
    AgentJob,
    AgentReport,
)
from burst_ensemble.core.intents import JobRef
from burst_ensemble.core.job_rows import (
    JobRow,
    JobsSeen,
    MemberState,
    count_jobs,
    count_submitted,
)
from burst_ensemble.core.member_job import find_group, job_name, make_agent_job
from burst_ensemble.core.record import (
    EnsembleRecord,
    EnsembleStart,
    KnownJob,
    MemberBook,
)


class AgentMember(msgspec.Struct, frozen=True, kw_only=True):
    """One such member, as it is on record."""

    start: EnsembleStart
    record: EnsembleRecord
    book: MemberBook
    name: str

    def names(self) -> dict[str, JobRef]:
        """Return the jobs that are to be submitted, by name."""
        spec, started = self.start.spec, self.record.started
        return {
            job_name(spec, self.name, ref, started): ref
            for ref in self.record.members[self.name].unconfirmed
        }

    def taken(self, report: AgentReport) -> tuple[JobRef, ...]:
        """Return which of these the instance has, as the report says."""
        return tuple(
            ref for name, ref in self.names().items() if name in report.submitted
        )

    def refusal(self, report: AgentReport) -> str:
        """Return why the instance did not take one of these; empty if it took all."""
        refused = [report.refused[n] for n in self.names() if n in report.refused]
        return refused[0] if refused else ""

    def read(self, report: AgentReport, now: float) -> MemberState:
        """Return the member as its agent has read it, and what is known from now on.

        All jobs of the instance are its jobs, whoever submitted them.
        """
        rows = self._rows(report)
        shown = {row.id for row in rows}
        known, early = dict(self.book.jobs), []
        if not self.book.instance:
            # What had ended before the first report is not of this ensemble.
            known |= {
                row.id: KnownJob(row.group, row.nodes, counted="finish", seen=now)
                for row in rows
                if row.state is JobState.INACTIVE
            }
        names = self.names()
        for name in sorted(names.keys() & report.submitted.keys()):
            job_id = report.submitted[name]
            if job_id not in known and job_id not in shown:
                group = find_group(self.start.spec, self.name, names[name])
                known[job_id] = KnownJob(
                    group.name, group.nodes, submitted=now, seen=now
                )
                early.append(count_submitted(known[job_id], now))
        seen = JobsSeen(rows, report.outcomes, report.more)
        before = msgspec.structs.replace(
            self.book, jobs=known, instance=report.instance
        )
        counted = count_jobs(before, seen, now)
        reading = msgspec.structs.replace(
            counted.reading,
            nodes_up=report.nodes.up,
            nodes_free=min(report.nodes.free, report.nodes.up),
            cores_up=report.nodes.cores_up,
            cores_free=report.nodes.cores_free,
            events=(*early, *counted.reading.events),
        )
        return MemberState(reading, counted.book)

    def answer(self, report: AgentReport) -> AgentAnswer:
        """Return what the agent is to do. Raises ConfigError for a job of the file
        that none can have.
        """
        spec, kept = self.start.spec, self.record.members[self.name]
        check = float(spec.check)
        if kept.ended is not None:
            return AgentAnswer(version=REPORT_VERSION, check=check, end=kept.why)
        names = self.names()
        cores = report.nodes.cores_up // report.nodes.up if report.nodes.up else 1
        missing = [name for name in names if name not in report.submitted]
        return AgentAnswer(
            version=REPORT_VERSION,
            check=check,
            submit=tuple(
                AgentJob(
                    name=name,
                    jobspec=make_agent_job(spec, self.name, names[name], name, cores),
                )
                for name in missing[:SUBMIT_MOST]
            ),
            keep=tuple(name for name in names if name in report.submitted),
            ask=tuple(self._lost(report)[:ASK_MOST]),
        )

    def _rows(self, report: AgentReport) -> list[JobRow]:
        """Return the jobs; of a group that the file does not have, as of none."""
        groups = self._groups()
        return [
            row
            if row.group in groups or not row.group
            else msgspec.structs.replace(row, group="")
            for row in report.jobs
        ]

    def _groups(self) -> set[str]:
        spec = self.start.spec
        return {job.name for job in (*spec.jobs, *spec.member(self.name).jobs)}

    def _lost(self, report: AgentReport) -> list[JobId]:
        shown = {row.id for row in report.jobs}
        return [
            job_id
            for job_id, job in sorted(self.book.jobs.items())
            if job.counted != "finish" and job_id not in shown
        ]
