# SPDX-License-Identifier: MIT
"""A member that is an instance of its own: what its agent told, and is to do."""

from __future__ import annotations

from typing import Any

import msgspec
from burst_ensemble.config.spec import EnsembleSpec
from burst_ensemble.core.intents import Done, JobRef
from burst_ensemble.core.job_rows import (
    GROUP,
    JobsSeen,
    MemberState,
    count_jobs,
    lost_jobs,
)
from burst_ensemble.core.member_job import find_group, job_name, make_jobspec
from burst_ensemble.core.record import KnownJob, Member

from burst.model.lead import JobState
from burst.model.shape import Shape
from burst_ensemble_agent.report import (
    ASK_MOST,
    REPORT_VERSION,
    AgentAnswer,
    AgentReport,
)


class AgentMember(Member, frozen=True):
    """One such member, as it is on record."""

    def names(self) -> dict[str, JobRef]:
        """Return the jobs that are to be submitted, by name."""
        spec, started = self.ensemble.start.spec, self.ensemble.record.started
        return {
            job_name(spec, self.name, ref, started): ref
            for ref in self.record.unconfirmed
        }

    def submitted(self, report: AgentReport) -> Done:
        """Return what became of these, as the report says."""
        names = self.names()
        refused = [report.refused[name] for name in names if name in report.refused]
        return Done(
            refused[0] if refused else "",
            {
                ref: report.submitted[name]
                for name, ref in names.items()
                if name in report.submitted
            },
        )

    def read(self, report: AgentReport, now: float) -> MemberState:
        """Return the member as its agent has read it, and what is known from now on.

        All jobs of the instance are its jobs, whoever submitted them.
        """
        rows, known = report.jobs, dict(self.record.jobs)
        if not self.record.instance:
            # What had ended before the first report is not of this ensemble.
            known |= {
                row.id: KnownJob(row.group, row.nodes, counted="finish", seen=now)
                for row in rows
                if row.state is JobState.INACTIVE
            }
        before = msgspec.structs.replace(
            self.record, jobs=known, instance=report.instance
        )
        counted = count_jobs(
            before, JobsSeen(rows, report.outcomes, report.more, has_others=True), now
        )
        reading = msgspec.structs.replace(
            counted.reading,
            nodes_up=report.nodes.up,
            nodes_free=min(report.nodes.free, report.nodes.up),
            cores_up=report.nodes.cores_up,
            cores_free=report.nodes.cores_free,
        )
        return MemberState(reading, counted.member)

    def answer(self, report: AgentReport) -> AgentAnswer:
        """Return what the agent is to do."""
        spec, kept = self.ensemble.start.spec, self.record
        check = float(spec.check)
        if kept.ended is not None:
            return AgentAnswer(version=REPORT_VERSION, check=check, end=kept.why)
        cores = report.nodes.cores_up // report.nodes.up if report.nodes.up else 1
        lost = lost_jobs(kept, {row.id for row in report.jobs})
        return AgentAnswer(
            version=REPORT_VERSION,
            check=check,
            submit={
                name: _jobspec(spec, self.name, ref, name, cores)
                for name, ref in self.names().items()
            },
            ask=tuple(lost[:ASK_MOST]),
        )


def _jobspec(
    spec: EnsembleSpec, member: str, ref: JobRef, name: str, cores: int
) -> dict[str, Any]:
    """Return the jobspec of a job for a member that is an instance of its own.

    `cores` is what its nodes have. The agent there adds environment and directory.
    """
    job = find_group(spec, member, ref)
    system: dict[str, Any] = {
        "duration": float(job.duration),
        "job": {"name": name},
        "burst": {"tag": f"{spec.name}/{member}"},
        GROUP: ref.group,
    }
    if job.workdir:
        system["cwd"] = job.workdir
    return make_jobspec(job, ref.number, Shape(cores), system)
