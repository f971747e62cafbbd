# SPDX-License-Identifier: MIT
"""Members that are instances of their own: what is read of a report and answered."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from burst_ensemble.algorithm import JobTally, QueueCounts
from burst_ensemble.config.spec import ANY_SIZE
from burst_ensemble.core import commands
from burst_ensemble.core.agent_member import AgentMember
from burst_ensemble.core.controller import end_all, new_record
from burst_ensemble.core.intents import JobRef
from burst_ensemble.core.reading import GroupStatistics
from burst_ensemble.core.record import (
    EnsembleRecords,
    EnsembleStart,
    KnownJob,
    Seen,
    spec_tables,
)
from burst_ensemble.core.views import fresh_view, make_views, take_in

from burst.errors import BurstError, ConfigError
from burst.model.active_job import JobOutcome
from burst.model.jobid import JobId
from burst.model.lead import JobState
from tests.plugins.ensemble.core.agents import NOW, agent_member, report, row
from tests.plugins.ensemble.core.ensembles import ensemble, member, stepped, wants
from tests.plugins.ensemble.runtime.ensemble_site import nodes_of
from tests.sim import Sim


def given(*refs: JobRef, **own: Any) -> AgentMember:
    """A member that is to get these jobs."""
    plain = agent_member(**own)
    kept = plain.record.members["m"]
    kept = msgspec.structs.replace(kept, unconfirmed=refs)
    record = msgspec.structs.replace(plain.record, members={"m": kept})
    return msgspec.structs.replace(plain, record=record)


OWN, SHARED = JobRef("step", 0), JobRef("shared", 4, shared=True)


def test_what_an_agent_reports_is_read() -> None:
    found = agent_member().read(
        report(
            jobs=(
                row(1, t_start=6.0),
                row(2, JobState.SCHED, nodes=3),
                row(3, JobState.PRIORITY, group="unknown", urgency=20),
                row(4, JobState.DEPEND, group=""),
                row(
                    5,
                    JobState.INACTIVE,
                    t_start=6.0,
                    t_finish=8.0,
                    result="completed",
                ),
            ),
            more={JobState.SCHED: 7},
        ),
        NOW,
    )
    reading = found.reading
    assert (reading.nodes, reading.size) == (0, 0), "they are not what we pay"
    assert (reading.nodes_up, reading.nodes_free) == (2, 1)
    assert (reading.cores_up, reading.cores_free) == (8, 5)
    assert reading.queue == QueueCounts(
        depend=1, priority=1, sched=8, run=1, inactive=1
    )
    assert reading.waiting == {1: 1, 3: 1}
    assert reading.next_jobs == (1, 3), "by urgency"
    assert {event.group for event in reading.events} == {"step", ""}
    assert found.book.instance == "flux-1"
    again = msgspec.structs.replace(agent_member(), book=found.book)
    assert again.read(report(jobs=(row(1, t_start=6.0),)), NOW + 1).reading.events == ()


def test_what_had_ended_before_the_first_report_does_not_count() -> None:
    ended = {"t_start": 6.0, "t_finish": 8.0, "result": "completed"}
    old, new = (row(number, JobState.INACTIVE, **ended) for number in (5, 6))
    first = agent_member().read(report(jobs=(old,)), NOW)
    assert first.reading.events == ()
    later = agent_member(book=first.book).read(report(jobs=(old, new)), NOW + 1)
    names = [event.name for event in later.reading.events]
    assert names == ["submit", "start", "finish"]


def test_a_job_that_ended_between_two_reports_is_asked_for_and_counted_once() -> None:
    one = given(OWN)
    (name,) = one.names()
    told = report(submitted={name: 9})
    found = one.read(told, NOW)
    assert [event.name for event in found.reading.events] == ["submit"]
    assert found.book.jobs[JobId(9)] == KnownJob("step", 2, submitted=NOW, seen=NOW)
    later = agent_member(book=found.book)
    assert later.answer(report()).ask == (9,)
    assert later.read(report(submitted={name: 9}), NOW + 1).reading.events == ()
    ended = report(outcomes={JobId(9): JobOutcome("failed", 6.0, 7.0)})
    after = later.read(ended, NOW + 2)
    assert [event.name for event in after.reading.events] == [
        "start",
        "finish",
        "exception",
    ]
    last = agent_member(book=after.book)
    assert last.answer(report()).ask == ()
    assert last.read(ended, NOW + 3).reading.events == ()


@pytest.mark.parametrize(("result", "failed"), [("failed", 1), ("canceled", 0)])
def test_a_job_that_failed_before_it_started_counts_as_failed(
    result: str, failed: int
) -> None:
    ended = row(5, JobState.INACTIVE, result=result)
    first = agent_member().read(report(), NOW)
    found = agent_member(book=first.book).read(report(jobs=(ended,)), NOW + 1)
    counted = GroupStatistics()
    for event in found.reading.events:
        counted = counted.add(event)
    assert counted.tally() == JobTally(
        finished=failed, failed=failed, events={"submit": 1, "exception": 1}
    )


def test_a_job_that_is_shown_is_not_counted_as_submitted_twice() -> None:
    one = given(OWN)
    (name,) = one.names()
    found = one.read(report(submitted={name: 9}, jobs=(row(9, JobState.SCHED),)), NOW)
    assert [event.name for event in found.reading.events] == ["submit"]
    known = msgspec.structs.replace(one, book=found.book)
    assert known.read(report(submitted={name: 9}), NOW).reading.events == ()


def test_jobs_are_given_until_the_instance_has_them() -> None:
    one = given(OWN, SHARED)
    first, second = one.names()
    assert first.startswith("e.m.step.0-")
    assert second.startswith("e.shared.4-")
    answer = one.answer(report())
    assert [job.name for job in answer.submit] == [first, second]
    system = answer.submit[0].jobspec["attributes"]["system"]
    assert system["job"] == {"name": first}
    assert system["burst"] == {"tag": "e/m"}
    assert system["burst_group"] == "step"
    assert system.keys() == {"duration", "job", "burst", "burst_group"}
    assert one.taken(report()) == ()
    told = report(submitted={first: 1, "foreign": 2}, refused={second: "it is full"})
    assert one.taken(told) == (OWN,)
    assert one.refusal(told) == "it is full"
    assert one.refusal(report()) == ""
    answer = one.answer(told)
    assert [job.name for job in answer.submit] == [second]
    assert answer.keep == (first,)


def test_a_directory_of_the_file_and_cores_of_the_nodes_are_in_the_job() -> None:
    one = given(OWN, workdir="/data", tasks=4)
    (job,) = one.answer(report()).submit
    assert job.jobspec["attributes"]["system"]["cwd"] == "/data"
    (node,) = job.jobspec["resources"]
    assert node["with"][0]["with"] == [{"type": "core", "count": 2}]
    none_up = msgspec.structs.replace(report().nodes, up=0, cores_up=0)
    (job,) = one.answer(report(nodes=none_up)).submit
    assert job.jobspec["resources"][0]["with"][0]["with"][0]["count"] == 1


def test_a_job_that_cannot_be_is_an_error() -> None:
    with pytest.raises(ConfigError, match="do not spread evenly"):
        given(OWN, tasks=5).answer(report())


def test_an_end_is_told() -> None:
    one = given(OWN)
    over = msgspec.structs.replace(one, record=end_all(one.record, "enough", NOW))
    answer = over.answer(report())
    assert (answer.end, answer.submit) == ("enough", ())


def test_its_size_is_what_it_reports_and_nothing_resizes_it() -> None:
    its = member("m", mode="external", min=0, size=0, max=ANY_SIZE)
    spec = ensemble(its, member("j"))
    assert fresh_view(spec, its).most == ANY_SIZE
    record = new_record(spec, NOW)
    reading = agent_member().read(report(jobs=(row(1, JobState.SCHED),)), NOW).reading
    joined = agent_member().read(report(), NOW).reading
    joined = msgspec.structs.replace(joined, nodes=1, size=1)
    readings = {"m": reading, "j": joined}
    views = make_views(spec, take_in(record, readings), readings)
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
    new = EnsembleStart(tables=spec_tables(spec), userid=100, environment={})
    seen = Seen(EnsembleRecords(), nodes_of(sim), NOW)
    made = commands.begin_ensemble(seen, new)
    assert made.starts["e"].slots == {}
    with pytest.raises(BurstError, match="an instance of its own"):
        commands.resize_member(made, "e", "m", 2, NOW)


def test_no_two_members_have_one_rank_slot() -> None:
    sim = Sim()
    sim.tick(2)
    seen = Seen(EnsembleRecords(), nodes_of(sim), NOW)
    for name in ("e", "f"):
        spec = msgspec.structs.replace(ensemble(member(max=4)), name=name)
        new = EnsembleStart(tables=spec_tables(spec), userid=100, environment={})
        seen = seen._replace(ensembles=commands.begin_ensemble(seen, new))
    slots = [start.slots["m"] for start in seen.ensembles.starts.values()]
    assert len(set(slots)) == 2
    spec = msgspec.structs.replace(spec, name="g")
    new = EnsembleStart(tables=spec_tables(spec), userid=100, environment={})
    with pytest.raises(BurstError, match="no rank slot of 4 nodes is left"):
        commands.begin_ensemble(seen, new)


def test_jobs_of_others_in_its_instance_reach_no_target() -> None:
    """A joined member has no others: what is in no group was submitted for it."""
    spec = ensemble(
        member("m", mode="external", min=0, size=0, max=ANY_SIZE), member("j")
    )
    kept = {"step": GroupStatistics(success=2), "": GroupStatistics(success=5)}
    record = new_record(spec, NOW)
    members = {
        name: msgspec.structs.replace(each, statistics=kept)
        for name, each in record.members.items()
    }
    record = msgspec.structs.replace(record, members=members)
    reading = agent_member().read(report(), NOW).reading
    views = make_views(spec, record, dict.fromkeys(members, reading))
    assert {name: view.tally.success for name, view in views.items()} == {
        "m": 2,
        "j": 7,
    }
