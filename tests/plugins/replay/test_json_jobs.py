# SPDX-License-Identifier: MIT
"""What Flux tells of past jobs, and `sacct --json` in the versions of its format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from burst_replay.json_jobs import read_json
from burst_replay.read_trace import read_trace
from burst_replay.trace import LeftOut, Trace, TraceJob

from burst.model.job_record import RecordedEvent
from burst.model.jobid import JobId
from burst.model.resource_set import ResourceSet
from burst.runtime.job_recorder import JobRecorder
from tests.plugins.replay.logs import (
    LISTED,
    T0,
    R,
    flux_event,
    journal,
    number,
    read_with,
    slurm_new,
    slurm_old,
    tres,
)

SYSTEM = {
    "duration": 90,
    "queue": "gpu",
    "bank": "b",
    "job": {"name": "lammps"},
    "project": {"of": "alpha"},
    "environment": {"HOME": "/home/ann"},
}
JOBSPEC = {"attributes": {"system": SYSTEM}}
LAMMPS = TraceJob(
    *(0.0, 60.0, 8, 90.0, 7),
    name="lammps",
    queue="gpu",
    bank="b",
    attributes={"project.of": "alpha"},
)


def read(*rows: dict[str, Any] | str) -> Trace:
    """Read a line for each."""
    return read_with(
        read_json, [row if isinstance(row, str) else json.dumps(row) for row in rows]
    )


def submitted(job: int, at: float, *events: dict[str, Any], **others: Any) -> str:
    return journal(job, flux_event("submit", at, userid=7), *events, **others)


def test_what_a_daemon_recorded_is_read_as_the_journal_is(tmp_path: Path) -> None:
    jobspec = msgspec.Raw(json.dumps(JOBSPEC).encode())
    happened: list[tuple[str, float, dict[str, Any]]] = [
        ("submit", 10, {"context": {"userid": 7}, "jobspec": jobspec}),
        ("alloc", 20, {"R": msgspec.convert(R, ResourceSet)}),
        ("start", 21, {}),
        ("start", 21, {}),
        ("finish", 81, {}),
    ]
    recorder = JobRecorder(tmp_path / "jobs")
    for name, seconds, more in happened:
        recorder.record(
            RecordedEvent(id=JobId(1), timestamp=T0 + seconds, name=name, **more)
        )
    recorder.close()
    found = read_trace(tmp_path / "jobs")
    assert (found.left_out, found.node_cores, found.jobs) == ({}, 4, (LAMMPS,))
    assert found.has_attributes


def test_a_journal() -> None:
    found = read(
        submitted(1, 10, jobspec=JOBSPEC),
        journal(2, flux_event("submit", 0, userid=8), jobspec={"attributes": {}}),
        journal(1, flux_event("alloc", 20), R=R),
        journal(1, flux_event("start", 21)),
        journal(2, flux_event("alloc", 20), R=R),
        "",
        # Submitted before the journal begins.
        journal(3, flux_event("start", 20), flux_event("finish", 30), R=R),
        journal(1, flux_event("finish", 81)),
        journal(2, flux_event("finish", 90), flux_event("release", 91)),
        submitted(4, 0, flux_event("exception", 5)),
    )
    assert (found.machine, found.started) == (None, T0)
    assert found.left_out == {LeftOut.NEVER_RAN: 1, LeftOut.NO_TIME: 1}
    assert found.node_cores == 4
    assert found.jobs == (
        TraceJob(0.0, 70.0, 8, 90.0, userid=8, limited=False),
        msgspec.structs.replace(LAMMPS, submit=10.0),
    )


def test_jobs_that_still_run_at_the_end_are_not_those_that_never_ran() -> None:
    found = read(
        submitted(1, 0, flux_event("start", 5), R=R),
        submitted(2, 0, flux_event("alloc", 5), R=R),
        submitted(3, 0),
        submitted(4, 0, flux_event("alloc", 5), flux_event("clean", 6)),
        {**LISTED, "t_cleanup": 0},
        {**LISTED, "t_run": 0},
        LISTED,
    )
    assert len(found.jobs) == 1
    assert found.left_out == {LeftOut.NEVER_RAN: 3, LeftOut.STILL_RAN: 3}


def test_an_update_of_a_jobspec_counts() -> None:
    changes = {"duration": 7200.0, "queue": "b", "bank": "phys", "job.name": "new"}
    changes |= {"project.of": "beta", "site": True}
    update = flux_event("jobspec-update", 11, **_in_system(changes))
    ends = flux_event("start", 21), flux_event("finish", 3621)
    # The first response for a job has its jobspec and all its events so far.
    found = read(
        submitted(1, 10, update, *ends, jobspec=JOBSPEC, R=R),
        submitted(2, 10, jobspec=JOBSPEC),
        journal(2, flux_event("jobspec-update", 11, **_in_system({"queue": "b"}))),
        journal(2, *ends, R=R),
        # A job without any attribute, nor a limit.
        submitted(3, 10, update, *ends, jobspec={}, R=R),
    )
    first, second, third = found.jobs
    assert (first.run_time, first.limit, first.queue) == (3600.0, 7200.0, "b")
    assert (first.bank, first.name) == ("phys", "new")
    assert first.attributes == {"project.of": "beta", "site": "true"}
    assert second == msgspec.structs.replace(LAMMPS, queue="b", run_time=90.0)
    assert third == first


def _in_system(changes: dict[str, Any]) -> dict[str, Any]:
    return {f"attributes.system.{key}": value for key, value in changes.items()}


def test_a_job_is_queued_once_its_dependencies_are_met() -> None:
    listed = {**LISTED, "t_priority": T0 + 4}
    recorded = submitted(2, 0, flux_event("depend", 4), flux_event("start", 5))
    # Its eventlog is sent again.
    repeated = submitted(2, 0, flux_event("depend", 4), flux_event("finish", 65), R=R)
    found = read(LISTED, listed, recorded, repeated)
    assert [job.submit for job in found.jobs] == [0.0, 4.0, 4.0]


def test_what_flux_jobs_prints() -> None:
    named = {"duration": 90.0, "userid": 7, "name": "a", "queue": "q"}
    rows = [{**LISTED, **named}, {**LISTED, "t_run": 0}, {**LISTED, "ncores": None}]
    found = read({"jobs": rows})
    assert found.jobs == (TraceJob(0.0, 60.0, 8, 90.0, userid=7, name="a", queue="q"),)
    assert found.left_out == {LeftOut.NEVER_RAN: 1, LeftOut.NO_CORES: 1}
    assert found.numbers_of_host
    assert not found.has_attributes


def test_a_listing_that_may_be_cut_off_has_a_note() -> None:
    assert not read({"jobs": [LISTED] * 999}).notes
    assert not read({"jobs": [slurm_new(job_id=each) for each in range(1000)]}).notes
    (note,) = read({"jobs": [LISTED] * 1000}).notes
    assert "1000 jobs" in note
    assert "--count=0" in note


def test_lines_that_cannot_be_read_are_counted() -> None:
    found = read(
        {**LISTED, "t_run": "nan"},
        {**LISTED, "duration": 1e300},
        journal(1, flux_event("finish", -2 * T0)),
        "[" * 100_000,
        '{"id": 1,',
        "7",
        '{"id": "x", "events": []}',
        '{"id": 1, "events": [{"name": "submit"}]}',
        journal(2, R={"version": 2}),
        LISTED,
    )
    assert len(found.jobs) == 1
    assert found.left_out == {
        LeftOut.NEVER_RAN: 1,
        LeftOut.NO_TIME: 2,
        LeftOut.UNREADABLE: 6,
    }
    assert found.examples[LeftOut.UNREADABLE].startswith("line 4: ")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('{"jobs": 5}', "line 1: Expected `array`, got `int`"),
        ('{"id": 3, "events": 7}', "line 1: it is not a record of a job"),
        ('{"id": 3}', "line 1: it has no 't_submit'"),
        (json.dumps({**LISTED, "ncores": "x"}), "line 1: 'x' is not a number"),
        (json.dumps([LISTED, {"time": 7}]), "job 2: it is not a record of a job"),
    ],
)
def test_a_broken_record_says_where_it_is_and_what_is_wrong(
    line: str, why: str
) -> None:
    assert read(line).examples == {LeftOut.UNREADABLE: why}


def test_answers_of_slurm_one_behind_the_other(tmp_path: Path) -> None:
    path = tmp_path / "log"
    days = [
        json.dumps({"jobs": [slurm_new(job_id=each)]}, indent=1) for each in (1, 2, 2)
    ]
    path.write_text("sacct: warning\n" + "\n".join(days) + "\n")
    found = read_trace(path)
    assert (len(found.jobs), found.left_out) == (2, {LeftOut.REPEATED: 1})
    path.write_text("\n".join(days)[:-20])
    found = read_trace(path)
    assert (len(found.jobs), found.left_out) == (2, {LeftOut.UNREADABLE: 1})


@pytest.mark.parametrize(
    "limit",
    [0, None, 4294967295, 4294967294, number(None), number(None, infinite=True)],
)
def test_limits_that_are_none_are_the_longest_of_the_trace(limit: Any) -> None:
    unlimited = {**slurm_new()["time"], "limit": limit}
    found = read({"jobs": [slurm_new(job_id=1, time=unlimited), slurm_new(job_id=2)]})
    assert [job.limit for job in found.jobs] == [7200.0, 7200.0]


def test_a_run_that_was_requeued_is_a_job() -> None:
    requeued = {"current": ["PENDING", "REQUEUED"], "reason": "None"}
    later = {**slurm_new()["time"], "submission": T0 + 4300}
    assert len(read(slurm_new(state=requeued), slurm_new(time=later)).jobs) == 2


def test_components_of_a_heterogeneous_job_are_one_job() -> None:
    parts = [
        slurm_new(job_id=12 + place, het={"job_id": 12, "job_offset": number(place)})
        for place in range(2)
    ]
    found = read(*parts, slurm_old(job_id=20, het=None))
    assert [job.cores for job in found.jobs] == [128, 64]
    assert found.left_out == {LeftOut.COMPONENT: 1}


def test_what_is_not_there_is_taken_from_elsewhere() -> None:
    bare = {"time": {"submission": T0, "start": T0 + 5, "end": T0 + 65}}
    asked = {"requested": tres(cpu=6, node=3), "allocated": []}
    found = read(
        {**bare, "tres": asked, "association": {"user": "bob", "account": "bio"}},
        *[{**bare, "required": {"CPUs": 5}}] * 2,
    )
    told = [(job.cores, job.run_time) for job in found.jobs]
    assert told == [(6, 60.0), (5, 60.0), (5, 60.0)]
    assert (found.jobs[0].bank, set(found.users)) == ("bio", {"bob"})
    assert found.node_cores == 2
