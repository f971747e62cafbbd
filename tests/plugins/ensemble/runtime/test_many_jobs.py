# SPDX-License-Identifier: MIT
"""Members with more jobs than a record may have."""

from __future__ import annotations

import pytest
from burst_ensemble.algorithm import SUBMIT_MOST, MemberDecision
from burst_ensemble.core.job_rows import JobsSeen, count_jobs
from burst_ensemble.core.record import KNOWN_MOST, KnownJob, MemberRecord

from burst.errors import BurstError
from burst.model.active_job import JobOutcome
from burst.model.jobid import JobId
from burst.model.lead import JobState
from tests.plugins.ensemble.core.ensembles import row
from tests.plugins.ensemble.runtime.ensemble_site import MEMBER, EnsembleSite

JOBS = {"jobs": [{"name": "md", "command": "run", "count": KNOWN_MOST + 1000}]}


def filled() -> EnsembleSite:
    """An ensemble whose member has as many jobs as it may have at once."""
    site = EnsembleSite()
    script = site.up(members=[{**MEMBER, **JOBS}])["a"]
    script.says = MemberDecision(submit=("md",) * SUBMIT_MOST)
    site.step(KNOWN_MOST // SUBMIT_MOST + 2)
    return site


def end_waiting(site: EnsembleSite) -> None:
    """End all jobs that wait; the lead shows them no longer."""
    ended = JobOutcome("canceled", 0.0, site.sim.now)
    jobs = site.sim.lead.jobs
    for job in [job.id for job in jobs.values() if job.state is JobState.SCHED]:
        site.lead.ended[job] = ended
        del jobs[job]


def test_a_member_gets_more_jobs_as_others_are_forgotten() -> None:
    site = filled()
    assert len(site.sim.lead.jobs) == KNOWN_MOST
    with pytest.raises(BurstError, match="sweep/a gets no jobs now: 5000 jobs are"):
        site.ask("submit", member="a", jobs="md", count=1)
    assert "5000 jobs are active" in site.shown()["member"]["waits_for"]
    end_waiting(site)
    site.step()
    assert site.member("a").total.events["exception"] > KNOWN_MOST / 2
    site.sim.tick(1, seconds=301.0)
    site.step(3)
    assert len(site.lead.names) > KNOWN_MOST


def test_further_jobs_of_others_are_read_and_not_known() -> None:
    """The member's own are known before the lead shows them."""
    own = JobId(10 * KNOWN_MOST)
    before = MemberRecord(started=0.0, jobs={own: KnownJob("md", 1, counted="")})
    rows = [row(number, JobState.SCHED) for number in range(1, KNOWN_MOST + 11)]
    seen = JobsSeen([*rows, row(own, JobState.SCHED, group="md")], {})
    found = count_jobs(before, seen, 9.0)
    assert found.reading.queue.active == len(rows) + 1
    assert found.reading.waiting == {1: len(rows) + 1}
    assert len(found.member.jobs) == KNOWN_MOST
    assert found.member.jobs[own].counted == "submit"
    assert found.member.total.events == {"submit": KNOWN_MOST}


def test_jobs_of_before_the_run_are_others_and_do_not_count_once_they_ended() -> None:
    before = MemberRecord(started=100.0)
    rows = [
        row(1, JobState.INACTIVE, t_submit=90.0, t_finish=95.0, result="completed"),
        row(2, JobState.SCHED, t_submit=90.0),
    ]
    found = count_jobs(before, JobsSeen(rows, {}), 109.0)
    assert {job: known.group for job, known in found.member.jobs.items()} == {2: ""}
    assert found.member.total.events == {"submit": 1}


def test_a_step_without_news_writes_nothing() -> None:
    site = EnsembleSite()
    site.up(members=[{**MEMBER, **JOBS}])
    site.once(*["md"] * SUBMIT_MOST)
    site.step(4)
    writes = site.sim.lead.disk.writes
    site.step(2)
    assert site.sim.lead.disk.writes == writes
