# SPDX-License-Identifier: MIT
"""An external member: read its agent's reports, and make the answers."""

from __future__ import annotations

from typing import Any

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

from burst.model.shape import Shape
from burst_ensemble_agent.report import (
    ASK_MOST,
    REPORT_VERSION,
    AgentAnswer,
    AgentReport,
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
