# SPDX-License-Identifier: MIT
"""What `sacct --json` prints, in the versions of its format."""

from __future__ import annotations

import json
from typing import Any

import pytest
from burst_replay.json_jobs import read_json
from burst_replay.trace import LeftOut, SeenUse, Trace, TraceJob

from tests.plugins.replay.logs import read_with

T0 = 1_700_000_000


def number(value: int | None, *, infinite: bool = False) -> dict[str, Any]:
    """A number as Slurm writes it since 23.02; None: not set."""
    return {
        "set": value is not None and not infinite,
        "infinite": infinite,
        "number": value or 0,
    }


def tres(**counts: int) -> list[dict[str, Any]]:
    return [
        {"type": kind, "name": "", "id": place, "count": count}
        for place, (kind, count) in enumerate(counts.items(), 1)
    ]


def old(**changes: Any) -> dict[str, Any]:
    """A job as Slurm 21.08 and 22.05 write it."""
    return {
        "job_id": 101,
        "account": "chem",
        "allocation_nodes": 2,
        "association": {"account": "chem", "cluster": "c", "user": "ann"},
        "cluster": "c",
        "het": {"job_id": 0, "job_offset": None},
        "name": "relax",
        "nodes": "cn[01-02]",
        "partition": "batch",
        "required": {"CPUs": 60, "memory": 4000},
        "state": {"current": "COMPLETED", "reason": "None"},
        "steps": [{"step": {"id": "101.batch"}}],
        "time": {
            "elapsed": 3600,
            "eligible": T0,
            "end": T0 + 4200,
            "start": T0 + 600,
            "submission": T0,
            "limit": 120,
        },
        "tres": {"allocated": tres(cpu=64, mem=9, node=2), "requested": tres(cpu=60)},
        "user": "ann",
    } | changes


def new(**changes: Any) -> dict[str, Any]:
    """The same job as Slurm 24.05 and 25.05 write it."""
    newer = {
        "het": {"job_id": 0, "job_offset": number(None)},
        "priority": number(100),
        "state": {"current": ["COMPLETED"], "reason": "None"},
        "time": {**old()["time"], "limit": number(120), "planned": number(600)},
    }
    return old(**newer) | changes


def read(*jobs: dict[str, Any]) -> Trace:
    return read_with(read_json, [json.dumps({"meta": {}, "jobs": jobs, "errors": []})])


def with_times(**changes: Any) -> dict[str, Any]:
    return {"time": {**new()["time"], **changes}}


@pytest.mark.parametrize("job", [old(), new()])
def test_a_job(job: dict[str, Any]) -> None:
    found = read(job)
    (only,) = found.jobs
    assert only == TraceJob(
        0.0, 3600.0, 64, 7200.0, only.userid, "relax", "batch", "chem"
    )
    assert (found.started, found.left_out) == (T0, {})
    assert found.users == {"ann": only.userid}
    assert found.seen == SeenUse(cores=64, nodes=2, node_cores=32)


def test_one_answer_several_a_list_or_jobs() -> None:
    answers = [
        json.dumps({"jobs": [new(job_id=1), new(job_id=2)]}, indent=1),
        "",
        json.dumps([new(job_id=3)]),
        json.dumps(new(job_id=4)),
        json.dumps(new(job_id=2)),
    ]
    found = read_with(read_json, answers)
    assert (len(found.jobs), found.left_out) == (4, {LeftOut.REPEATED: 1})


@pytest.mark.parametrize(
    "limit",
    [0, None, 4294967295, 4294967294, number(None), number(None, infinite=True)],
)
def test_limits_that_are_none_are_the_longest_of_the_trace(limit: Any) -> None:
    found = read(new(job_id=1, **with_times(limit=limit)), new(job_id=2))
    assert [job.limit for job in found.jobs] == [7200.0, 7200.0]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"state": {"current": ["RUNNING"]}}, LeftOut.STILL_RAN),
        ({"state": "SUSPENDED"}, LeftOut.STILL_RAN),
        ({"state": ["COMPLETING", "COMPLETED"]}, LeftOut.STILL_RAN),
        ({"state": None, **with_times(end=0)}, LeftOut.STILL_RAN),
        ({"state": {"current": "PENDING"}}, LeftOut.STILL_WAITED),
        ({"state": "CANCELLED", **with_times(elapsed=0)}, LeftOut.NEVER_RAN),
        (
            {"state": "CANCELLED", **with_times(elapsed=None, start=0)},
            LeftOut.NEVER_RAN,
        ),
        (with_times(elapsed=None, end=T0), LeftOut.ENDED_BEFORE_START),
        (with_times(submission=None), LeftOut.NO_TIME),
        (with_times(submission=-5), LeftOut.NO_TIME),
        ({"tres": None, "required": None}, LeftOut.NO_CORES),
        ({"tres": {"allocated": tres(cpu=10**12)}}, LeftOut.UNREADABLE),
        ({"time": 7}, LeftOut.UNREADABLE),
    ],
)
def test_records_that_are_no_jobs(changes: dict[str, Any], reason: LeftOut) -> None:
    found = read(new(job_id=1), new(job_id=2, **changes))
    assert (len(found.jobs), found.left_out) == (1, {reason: 1})


def test_where_it_cannot_be_read_is_told() -> None:
    found = read(new(job_id=1), new(job_id=2, time=7))
    assert found.examples[LeftOut.UNREADABLE].startswith("job 2: it is no record")
    broken = read_with(read_json, [json.dumps(new()), '{"jobs":', "[" * 100_000, "[7]"])
    assert (len(broken.jobs), broken.left_out) == (1, {LeftOut.UNREADABLE: 3})
    assert broken.examples[LeftOut.UNREADABLE].startswith("line 2: Input data was")


def test_a_run_that_was_requeued_is_a_job() -> None:
    requeued = {"current": ["PENDING", "REQUEUED"], "reason": "None"}
    found = read(new(state=requeued), new(**with_times(submission=T0 + 4300)))
    assert len(found.jobs) == 2


def test_components_of_a_heterogeneous_job_are_one_job() -> None:
    parts = [
        new(job_id=12 + place, het={"job_id": 12, "job_offset": number(place)})
        for place in range(2)
    ]
    found = read(*parts, new(job_id=20, het=None))
    assert [job.cores for job in found.jobs] == [128, 64]
    assert found.left_out == {LeftOut.COMPONENT: 1}


def test_what_is_not_there_is_taken_from_elsewhere() -> None:
    bare = {"time": {"submission": T0, "start": T0 + 5, "end": T0 + 65}}
    asked = {"requested": tres(cpu=6, node=3), "allocated": []}
    found = read(
        {**bare, "tres": asked, "association": {"user": "bob", "account": "bio"}},
        {**bare, "required": {"CPUs": 5}},
        {**bare, "required": {"CPUs": 5}},
    )
    assert [(job.cores, job.run_time) for job in found.jobs] == [
        (6, 60.0),
        *[(5, 60)] * 2,
    ]
    assert (found.jobs[0].bank, set(found.users)) == ("bio", {"bob"})
    assert found.seen.node_cores == 2
