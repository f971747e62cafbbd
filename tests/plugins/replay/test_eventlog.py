# SPDX-License-Identifier: MIT
"""What Flux tells of past jobs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from burst_replay.json_jobs import read_json
from burst_replay.read_trace import read_trace
from burst_replay.trace import LeftOut, SeenUse, TraceJob

from burst.model.job_record import RecordedEvent
from burst.model.jobid import JobId
from burst.model.resource_set import ResourceSet
from burst.runtime.job_recorder import JobRecorder
from tests.plugins.replay.logs import read_with

T0 = 1.7e9
SYSTEM = {"duration": 90, "queue": "gpu", "bank": "b", "job": {"name": "lammps"}}
JOBSPEC = {"attributes": {"system": SYSTEM}}
R = {
    "version": 1,
    "execution": {
        "R_lite": [{"rank": "0-1", "children": {"core": "0-3"}}],
        "nodelist": ["n[0-1]"],
    },
}
LISTED = {"t_submit": T0, "t_run": T0 + 5, "t_cleanup": T0 + 65, "ncores": 8}


def event(name: str, seconds: float, **context: Any) -> dict[str, Any]:
    return {"timestamp": T0 + seconds, "name": name, "context": context}


def entry(number: int, *events: dict[str, Any], **others: Any) -> str:
    return json.dumps({"id": number, "events": events, **others})


def test_what_a_daemon_recorded_is_read_as_the_journal_is(tmp_path: Path) -> None:
    submitted = {"jobspec": msgspec.Raw(json.dumps(JOBSPEC).encode())}
    allocated = {"R": msgspec.convert(R, ResourceSet)}
    happened: list[tuple[str, float, dict[str, Any]]] = [
        ("submit", 10, {"context": {"userid": 7}, **submitted}),
        ("alloc", 20, allocated),
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
    assert found.left_out == {}
    assert found.seen == SeenUse(cores=8, nodes=2, node_cores=4)
    assert found.jobs == (
        TraceJob(0.0, 60.0, 8, 90.0, userid=7, name="lammps", queue="gpu", bank="b"),
    )


def test_a_journal() -> None:
    lines = [
        entry(1, event("submit", 10, userid=7), jobspec=JOBSPEC),
        entry(2, event("submit", 0, userid=8), jobspec={"attributes": {}}),
        entry(1, event("alloc", 20), R=R),
        entry(1, event("start", 21)),
        entry(2, event("alloc", 20), R=R),
        "",
        entry(3, event("start", 20), event("finish", 30), R=R),  # submitted before
        entry(1, event("finish", 81)),
        entry(2, event("finish", 90), event("release", 91)),
        entry(4, event("submit", 0, userid=7), event("exception", 5)),
    ]
    found = read_with(read_json, lines)
    assert (found.machine, found.started) == (None, T0)
    assert found.left_out == {LeftOut.NEVER_RAN: 1, LeftOut.NO_TIME: 1}
    assert found.seen == SeenUse(cores=16, nodes=2, node_cores=4)
    assert found.jobs == (
        TraceJob(0.0, 70.0, 8, 90.0, userid=8),
        TraceJob(10.0, 60.0, 8, 90.0, userid=7, name="lammps", queue="gpu", bank="b"),
    )


def test_jobs_that_still_run_at_the_end_are_not_those_that_never_ran() -> None:
    lines = [
        entry(1, event("submit", 0, userid=7), event("start", 5), R=R),
        entry(2, event("submit", 0, userid=7), event("alloc", 5), R=R),
        entry(3, event("submit", 0, userid=7)),
        entry(4, event("submit", 0, userid=7), event("alloc", 5), event("clean", 6)),
        json.dumps({**LISTED, "t_cleanup": 0}),
        json.dumps({**LISTED, "t_run": 0}),
        json.dumps(LISTED),
    ]
    found = read_with(read_json, lines)
    assert len(found.jobs) == 1
    assert found.left_out == {LeftOut.NEVER_RAN: 3, LeftOut.STILL_RAN: 3}


def test_more_cores_than_any_machine_has_are_a_broken_line() -> None:
    huge = json.loads(json.dumps(R))
    (group,) = huge["execution"]["R_lite"]
    group |= {"rank": "0-9999", "children": {"core": "0-19999"}}
    huge["execution"]["nodelist"] = ["n[0-9999]"]
    lines = [
        json.dumps({**LISTED, "ncores": 10**12}),
        entry(1, event("submit", 0, userid=7), event("start", 5), R=huge),
        entry(1, event("finish", 9)),
        json.dumps(LISTED),
    ]
    found = read_with(read_json, lines)
    assert (len(found.jobs), found.left_out) == (1, {LeftOut.UNREADABLE: 2})
    assert found.examples == {
        LeftOut.UNREADABLE: "line 1: 1000000000000 cores, which no machine has"
    }


def test_what_flux_jobs_prints(tmp_path: Path) -> None:
    rows = [
        {**LISTED, "duration": 90.0, "userid": 7, "name": "a", "queue": "q"},
        {**LISTED, "t_run": 0},
        {**LISTED, "ncores": None},
    ]
    expected = (TraceJob(0.0, 60.0, 8, 90.0, userid=7, name="a", queue="q"),)
    path = tmp_path / "jobs.json"
    for text in (
        json.dumps({"jobs": rows}),
        json.dumps({"jobs": rows}, indent=1),
        "\n".join(map(json.dumps, rows)),
    ):
        path.write_text(text)
        found = read_trace(path)
        assert found.jobs == expected
        assert found.left_out == {LeftOut.NEVER_RAN: 1, LeftOut.NO_CORES: 1}


def test_jobs_that_the_clock_ended_before_their_start_are_counted() -> None:
    lines = [
        entry(1, event("submit", 10, userid=7), event("start", 900), R=R),
        entry(2, event("submit", 950, userid=7), event("start", 960), R=R),
        # The clock is set back by ten minutes.
        entry(1, event("finish", 350)),
        entry(3, event("submit", 340, userid=7), event("start", 341), R=R),
        entry(3, event("finish", 400)),
        entry(2, event("finish", 990)),
        json.dumps({**LISTED, "t_run": T0 + 99}),
    ]
    found = read_with(read_json, lines)
    assert [(job.submit, job.run_time) for job in found.jobs] == [(0, 59), (610, 30)]
    assert found.left_out == {LeftOut.ENDED_BEFORE_START: 2}


def test_lines_that_cannot_be_read_are_counted() -> None:
    lines = [
        json.dumps({**LISTED, "t_run": "nan"}),
        json.dumps({**LISTED, "duration": 1e300}),
        entry(1, event("finish", -2 * T0)),
        "[" * 100_000,
        '{"id": 1,',
        "[]",
        "7",
        '{"id": "x", "events": []}',
        '{"id": 1, "events": [{"name": "submit"}]}',
        entry(2, R={"version": 2}),
        json.dumps(LISTED),
    ]
    found = read_with(read_json, lines)
    assert (len(found.jobs), found.left_out) == (
        1,
        {LeftOut.NEVER_RAN: 1, LeftOut.NO_TIME: 2, LeftOut.UNREADABLE: 6},
    )
    assert found.examples[LeftOut.UNREADABLE].startswith("line 4: ")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('{"jobs": 5}', "Expected `array`, got `int`"),
        ('{"id": 3, "events": 7}', "it is no record of a job"),
        ('{"id": 3}', "it has no 't_submit'"),
        (
            '{"t_submit": 9, "t_run": 9, "t_cleanup": 9, "ncores": "x"}',
            "'x' is no number",
        ),
    ],
)
def test_a_broken_line_says_what_is_wrong_with_it(line: str, why: str) -> None:
    found = read_with(read_json, [line])
    assert found.examples == {LeftOut.UNREADABLE: f"line 1: {why}"}
