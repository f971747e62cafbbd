# SPDX-License-Identifier: MIT
"""Members that are instances of their own: what is read of a report and answered."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from burst_ensemble.algorithm import JobTally, QueueCounts
from burst_ensemble.config.spec import ANY_SIZE
from burst_ensemble.core import commands
from burst_ensemble.core.controller import new_record
from burst_ensemble.core.intents import Done, JobRef
from burst_ensemble.core.job_rows import JobsSeen, count_jobs
from burst_ensemble.core.record import (
    EnsembleRecords,
    EnsembleStart,
    KnownJob,
    MemberRecord,
)
from burst_ensemble.core.views import fresh_view, make_views
from burst_ensemble_agent.report import JOBS_MOST

from burst.errors import BurstError
from burst.model.active_job import JobOutcome
from burst.model.jobid import JobId
from burst.model.lead import JobState
from tests.plugins.ensemble.core import ensembles
from tests.plugins.ensemble.core.ensembles import ensemble, member, stepped, wants
from tests.plugins.ensemble.runtime.ensemble_site import nodes_of
from tests.plugins.ensemble_agent.agents import NOW, agent_member, report, row
from tests.sim import Sim

OWN, SHARED = JobRef("step", 0), JobRef("shared", 4, shared=True)
KNOWN = MemberRecord(
    started=NOW, jobs={JobId(9): KnownJob("step", 2, counted="", submitted=NOW)}
)
"""It was given a job that was not seen yet."""


def events(member: MemberRecord) -> dict[str, int]:
    """What was counted of jobs `step`."""
    return dict(member.statistics["step"].events)


def test_what_an_agent_reports_is_read() -> None:
    found = agent_member().read(
        report(
            jobs=(
                row(1, t_start=6.0),
                row(2, JobState.SCHED, nodes=3),
                row(3, JobState.PRIORITY, urgency=20),
                row(4, JobState.DEPEND, group=""),
                row(
                    5,
                    JobState.INACTIVE,
                    run="-b2",
                    t_start=NOW - 3.0,
                    t_finish=NOW + 8.0,
                    result="completed",
                ),
            ),
            more={JobState.SCHED: 7},
        ),
        NOW,
    )
    reading = found.reading
    assert (reading.nodes_paid, reading.size) == (0, 0), "they are not what we pay"
    assert (reading.nodes_up, reading.nodes_free) == (2, 1)
    assert (reading.cores_up, reading.cores_free) == (8, 5)
    assert reading.queue == QueueCounts(
        depend=1, priority=1, sched=8, run=1, inactive=1
    )
    assert reading.waiting == {1: 1, 3: 1}
    assert reading.next_jobs == (1, 3), "by urgency"
    assert found.member.statistics.keys() == {"step"}
    assert found.member.jobs.keys() == {1, 2, 3}, "4 is somebody's, 5 of an earlier run"
    assert found.member.instance == "flux-1"
    again = agent_member(known=found.member)
    same = again.read(report(jobs=(row(1, t_start=6.0),)), NOW + 1).member
    assert same.statistics == found.member.statistics


def test_jobs_that_would_start_on_no_nodes_do_not_wait_for_nodes() -> None:
    rows = [ensembles.row(number, JobState.SCHED) for number in (1, 2)]
    seen = JobsSeen(rows, {}, held_back={JobId(2)})
    found = count_jobs(MemberRecord(started=NOW), seen, NOW).reading
    assert (found.waiting, found.next_jobs, found.queue.sched) == ({1: 1}, (1,), 2)


def test_a_job_that_ended_between_two_reports_is_asked_for_and_counted_once() -> None:
    one = agent_member(known=msgspec.structs.replace(KNOWN, instance="flux-1"))
    assert one.answer(report()).ask == (9,)
    ended = report(outcomes={JobId(9): JobOutcome("failed", 6.0, 7.0)})
    after = agent_member(known=one.read(ended, NOW + 2).member)
    all_events = {"submit": 1, "start": 1, "finish": 1, "exception": 1}
    assert events(after.record) == all_events
    assert after.answer(report()).ask == ()
    assert events(after.read(ended, NOW + 3).member) == all_events


@pytest.mark.parametrize(("result", "failed"), [("failed", 1), ("canceled", 0)])
def test_a_job_that_failed_before_it_started_counts_as_failed(
    result: str, failed: int
) -> None:
    ended = row(5, JobState.INACTIVE, result=result)
    first = agent_member().read(report(), NOW).member
    found = agent_member(known=first).read(report(jobs=(ended,)), NOW + 1).member
    assert found.statistics["step"] == JobTally(
        finished=failed, failed=failed, events={"submit": 1, "exception": 1}
    )


def test_a_job_that_is_shown_is_counted_as_submitted_once() -> None:
    shown = report(jobs=(row(9, JobState.SCHED),))
    found = agent_member(known=KNOWN).read(shown, NOW).member
    assert events(found) == {"submit": 1}
    assert events(agent_member(known=found).read(shown, NOW).member) == {"submit": 1}


def test_jobs_are_given_until_the_instance_has_them() -> None:
    one = agent_member(OWN, SHARED)
    first, second = one.names()
    assert first.startswith("e/m/step/0-")
    assert second.startswith("e/shared/4-")
    answer = one.answer(report())
    assert list(answer.submit) == [first, second]
    system = answer.submit[first]["attributes"]["system"]
    assert system["job"] == {"name": first}
    assert system["burst"] == {"tag": "e/m"}
    assert first.endswith(system["burst_group"].removeprefix("step"))
    assert system.keys() == {"duration", "job", "burst", "burst_group"}
    assert one.submitted(report()) == Done()
    told = report(submitted={first: 1, "foreign": 2}, refused={second: "it is full"})
    assert one.submitted(told) == Done("it is full", {OWN: JobId(1)})
    assert one.answer(told) == answer, "until it is confirmed"


def test_a_directory_of_the_file_and_cores_of_the_nodes_are_in_the_job() -> None:
    one = agent_member(OWN, workdir="/data", tasks=4)
    (job,) = one.answer(report()).submit.values()
    assert job["attributes"]["system"]["cwd"] == "/data"
    (node,) = job["resources"]
    assert node["with"][0]["with"] == [{"type": "core", "count": 2}]
    none_up = msgspec.structs.replace(report().nodes, up=0, cores_up=0)
    (job,) = one.answer(report(nodes=none_up)).submit.values()
    assert job["resources"][0]["with"][0]["with"][0]["count"] == 1


def test_its_size_is_what_it_reports_and_nothing_resizes_it() -> None:
    its = member("m", mode="external", min=0, size=0, max=ANY_SIZE)
    spec = ensemble(its, member("j"))
    assert fresh_view(spec, its).most == ANY_SIZE
    record = new_record(spec, NOW)
    reading = agent_member().read(report(jobs=(row(1, JobState.SCHED),)), NOW).reading
    joined = agent_member().read(report(), NOW).reading
    joined = msgspec.structs.replace(joined, nodes_paid=1, size=1)
    readings = {"m": reading, "j": joined}
    views = make_views(spec, record, readings)
    assert (views["m"].nodes, views["m"].least, views["m"].most) == (2, 2, 2)
    (peer,) = views["j"].peers
    assert (peer.room, peer.most) == (0, 2)
    step = stepped(spec, record, readings, {"m": wants(5), "j": wants(1)})
    assert step.record.members["m"].nodes == 0
    assert [intent.member for intent in step.intents] == []


def test_it_has_no_rank_slot_and_is_not_resized_by_hand() -> None:
    sim = Sim()
    sim.tick(2)
    spec = ensemble(member("m", mode="external", min=0, size=0, max=ANY_SIZE))
    new = EnsembleStart(spec=spec, userid=100)
    made = commands.begin_ensemble({}, nodes_of(sim), new, NOW)["e"]
    assert made.start.slots == {}
    with pytest.raises(BurstError, match="an instance of its own"):
        commands.resize_member(made, "m", 2, NOW)


def test_no_two_members_have_one_rank_slot() -> None:
    sim = Sim()
    sim.tick(2)
    known: EnsembleRecords = {}
    nodes = nodes_of(sim)
    e, f, g = (
        msgspec.structs.replace(ensemble(member(max=4)), name=name) for name in "efg"
    )
    for spec in (e, f):
        new = EnsembleStart(spec=spec, userid=100)
        known = commands.begin_ensemble(known, nodes, new, NOW)
    assert len({one.start.slots["m"] for one in known.values()}) == 2
    last = EnsembleStart(spec=g, userid=100)
    with pytest.raises(BurstError, match="no rank slot of 4 nodes is left"):
        commands.begin_ensemble(known, nodes, last, NOW)


@pytest.mark.parametrize(("others", "counted"), [(True, 1), (False, 2)])
def test_jobs_of_others_in_its_instance_reach_no_target(others, counted) -> None:
    """A joined member has no others: what is in no group was submitted for it."""
    ended = {"t_start": 6.0, "t_finish": 8.0, "result": "completed"}
    rows = [
        ensembles.row(number, JobState.INACTIVE, group=group, **ended)
        for number, group in enumerate(("step", ""), 1)
    ]
    seen = JobsSeen(rows, {}, has_others=others)
    found = count_jobs(MemberRecord(started=NOW), seen, NOW).member
    assert found.total.success == len(found.jobs) == counted


def test_its_jobs_are_known_by_their_run_whatever_its_clock_says() -> None:
    """They are in a report before they are confirmed."""
    early: dict[str, Any] = {"t_submit": NOW - 15.0}
    first = agent_member().read(report(jobs=(row(1, JobState.SCHED, **early),)), NOW)
    assert events(first.member) == {"submit": 1}
    ended: dict[str, Any] = {
        "t_start": NOW - 14.0,
        "t_finish": NOW - 5.0,
        "result": "completed",
    }
    last = row(1, JobState.INACTIVE, **early, **ended)
    found = agent_member(known=first.member).read(report(jobs=(last,)), NOW + 9)
    assert found.member.total.success == 1
    assert found.member.statistics["step"].success == 1


def test_beside_thousands_of_jobs_of_others_it_gets_jobs() -> None:
    others = [row(n, JobState.SCHED, group="") for n in range(1, JOBS_MOST + 1)]
    seen = agent_member().read(report(jobs=tuple(others)), NOW + 5)
    assert seen.reading.queue.sched == JOBS_MOST
    one = agent_member(known=seen.member).ensemble
    read = {"m": seen.reading}
    step = stepped(one.start.spec, one.record, read, {"m": wants(submit=("step",))})
    assert step.record.members["m"].unconfirmed == (OWN,)
