# SPDX-License-Identifier: MIT
"""What holds for the logs of all batch systems."""

from __future__ import annotations

import gzip
import json
import math
import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from burst_replay.grid_engine import read_grid_engine
from burst_replay.json_jobs import read_json
from burst_replay.lsf import read_lsf
from burst_replay.pbs import read_pbs
from burst_replay.read_trace import FORMATS, Reader, read_trace, reader_of
from burst_replay.sacct import read_sacct
from burst_replay.swf import read_swf
from burst_replay.trace import LeftOut, TraceError, TraceJob
from hypothesis import example, given
from hypothesis import strategies as st

from tests.plugins.replay import logs
from tests.plugins.replay.logs import HOUR, SACCT_NAMES, T0, read_with

SLURM = json.dumps({"jobs": [logs.slurm_new()]})
FLUX = json.dumps(logs.LISTED)
ONE_OF_EACH: list[tuple[str, Reader]] = [
    (logs.swf(), read_swf),
    (f"{SACCT_NAMES}\n{logs.sacct()}", read_sacct),
    (SLURM, read_json),
    (json.dumps(json.loads(SLURM), indent=2), read_json),
    (json.dumps([logs.slurm_old()], indent=1), read_json),
    (FLUX, read_json),
    (f"{logs.journal(1)}\n{FLUX}", read_json),
    (json.dumps({"jobs": [json.loads(FLUX)]}, indent=4), read_json),
    (logs.pbs(), read_pbs),
    (logs.lsf(), read_lsf),
    (logs.grid_engine(), read_grid_engine),
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log"


@pytest.mark.parametrize(
    ("reader", "lines", "cores", "named", "node_cores"),
    [
        (read_sacct, [SACCT_NAMES, logs.sacct()], 64, ("batch", "chem"), 32),
        (read_json, [json.dumps(logs.slurm_old())], 64, ("batch", "chem"), 32),
        (read_json, [SLURM], 64, ("batch", "chem"), 32),
        (
            read_pbs,
            [logs.pbs(account='"chem lab end=3"')],
            *(8, ("workq", "chem lab end=3"), 4),
        ),
        (read_lsf, [logs.lsf()], 8, ("normal", "chem"), 4),
        (
            read_grid_engine,
            ["# Version: 8.1.9", "#", "", logs.grid_engine(project="bio")],
            # On how many nodes it ran is not told.
            *(8, ("all.q", "bio"), 1),
        ),
    ],
)
def test_a_job(
    reader: Reader,
    lines: Sequence[str],
    cores: int,
    named: tuple[str, str],
    node_cores: int,
) -> None:
    found = read_with(reader, lines)
    (only,) = found.jobs
    assert only == TraceJob(0.0, HOUR, cores, 2 * HOUR, only.userid, "relax", *named)
    assert (found.left_out, found.notes, found.node_cores) == ({}, (), node_cores)
    assert found.users == {"ann": only.userid}
    # A number that no user has where the log does not tell it.
    assert only.userid == (1001 if reader in (read_sacct, read_lsf) else 2**32)
    assert (found.machine, found.numbers_of_host) == (None, False)
    assert reader is read_sacct or found.started == T0


def slurm_json(**changes: object) -> str:
    return json.dumps(logs.slurm_new(job_id=2, **changes))


def with_times(**changes: object) -> str:
    return slurm_json(time={**logs.slurm_new()["time"], **changes})


def with_state(state: object, **times: object) -> str:
    return slurm_json(state=state, time={**logs.slurm_new()["time"], **times})


LIST_OF_LSF = ' 0 2 "4*n1"'
NO_JOBS: Mapping[Reader, Sequence[tuple[str, LeftOut]]] = {
    read_sacct: [
        (logs.sacct(JobID="2", **changes), reason)
        for changes, reason in (
            ({"State": "RUNNING", "End": "Unknown"}, LeftOut.STILL_RAN),
            ({"State": "SUSPENDED"}, LeftOut.STILL_RAN),
            ({"State": "PENDING", "Start": "Unknown"}, LeftOut.STILL_WAITED),
            ({"State": "REQUEUE_HOLD"}, LeftOut.STILL_WAITED),
            ({"State": "CANCELLED by 1001", "Start": "None"}, LeftOut.NEVER_RAN),
            ({"State": "CANCELLED+", "Start": "Unknown"}, LeftOut.NEVER_RAN),
            ({"State": "CANCELLED", "Elapsed": "00:00:00"}, LeftOut.NEVER_RAN),
            ({"State": "FAILED", "Submit": "Unknown"}, LeftOut.NO_TIME),
            ({"State": "", "End": "Unknown"}, LeftOut.STILL_RAN),
            ({"Elapsed": "INVALID", "End": "Unknown"}, LeftOut.NO_TIME),
            ({"Elapsed": "abc"}, LeftOut.NO_TIME),
            ({"Timelimit": "abc"}, LeftOut.NO_TIME),
            ({"Elapsed": "", "End": "2024-03-05T08:00"}, LeftOut.ENDED_BEFORE_START),
            ({"NCPUS": "0"}, LeftOut.NO_CORES),
            ({"NCPUS": "many"}, LeftOut.UNREADABLE),
            ({"NCPUS": "1e999"}, LeftOut.UNREADABLE),
            ({"NCPUS": "999999999999"}, LeftOut.UNREADABLE),
        )
    ],
    read_json: [
        (with_state({"current": ["RUNNING"]}), LeftOut.STILL_RAN),
        (with_state("SUSPENDED"), LeftOut.STILL_RAN),
        (with_state(["COMPLETING", "COMPLETED"]), LeftOut.STILL_RAN),
        (with_state(None, end=0), LeftOut.STILL_RAN),
        (with_state({"current": "PENDING"}), LeftOut.STILL_WAITED),
        (with_state("CANCELLED", elapsed=0), LeftOut.NEVER_RAN),
        (with_state("CANCELLED", elapsed=None, start=0), LeftOut.NEVER_RAN),
        (with_times(elapsed=None, end=T0), LeftOut.ENDED_BEFORE_START),
        (with_times(submission=None), LeftOut.NO_TIME),
        (with_times(submission=-5), LeftOut.NO_TIME),
        (slurm_json(tres=None, required=None), LeftOut.NO_CORES),
        (slurm_json(tres={"allocated": logs.tres(cpu=10**12)}), LeftOut.UNREADABLE),
        (slurm_json(time=7), LeftOut.UNREADABLE),
        (json.dumps({**logs.LISTED, "t_run": T0 + 99}), LeftOut.ENDED_BEFORE_START),
    ],
    read_pbs: [
        (logs.pbs(job="2", **values), reason)
        for values, reason in (
            ({"start": ""}, LeftOut.NEVER_RAN),
            ({"end": str(T0 + 600)}, LeftOut.NEVER_RAN),
            ({"end": str(T0)}, LeftOut.ENDED_BEFORE_START),
            ({"ctime": "", "qtime": ""}, LeftOut.NO_TIME),
            ({"ctime": "soon"}, LeftOut.NO_TIME),
            ({"end": ""}, LeftOut.NO_TIME),
            ({"Resource_List.walltime": "x"}, LeftOut.NO_TIME),
            ({"exec_host": "n1/0*x"}, LeftOut.UNREADABLE),
            ({"exec_host": "n1/0-x"}, LeftOut.UNREADABLE),
        )
    ],
    read_lsf: [
        (logs.lsf(2, start=0, hosts=()), LeftOut.NEVER_RAN),
        (logs.lsf(2, end=T0), LeftOut.ENDED_BEFORE_START),
        (logs.lsf(2, hosts=()), LeftOut.NO_CORES),
        (logs.lsf(2).replace(f" 8 {T0} 0 0", " 8 0 0 0"), LeftOut.NO_TIME),
        (logs.lsf(2).replace(f" 8 {T0} 0 0", " 8 -9 0 0"), LeftOut.NO_TIME),
        (f'"JOB_RESIZE" "10.1" {T0} 41 0 0', LeftOut.OTHER),
        (f'"EVENT_ADRSV_FINISH" "10.1" {T0} {T0} 0', LeftOut.OTHER),
        (logs.lsf(2)[:150], LeftOut.UNREADABLE),
        (logs.lsf(2).partition(" 64 60.0")[0], LeftOut.UNREADABLE),
        (logs.lsf(2).replace(LIST_OF_LSF, ' 3 2 "4*n1"'), LeftOut.UNREADABLE),
        (logs.lsf(2).replace(LIST_OF_LSF, ' -1 2 "4*n1"'), LeftOut.UNREADABLE),
        (logs.lsf(2).replace("relax", "x" * 140_000), LeftOut.UNREADABLE),
        ("what", LeftOut.UNREADABLE),
    ],
    read_grid_engine: [
        (logs.grid_engine("2", times=(T0, 0, 0)), LeftOut.NEVER_RAN),
        (logs.grid_engine("2", times=(0, 0, 0)), LeftOut.NEVER_RAN),
        (logs.grid_engine("2", times=(T0, T0 + 5, T0 + 5)), LeftOut.NEVER_RAN),
        (logs.grid_engine("2", times=(T0, T0 + 5, T0 + 4)), LeftOut.ENDED_BEFORE_START),
        (logs.grid_engine("2", times=(0, T0, T0 + 4)), LeftOut.NO_TIME),
        (logs.grid_engine("2", slots="0"), LeftOut.NO_CORES),
        (logs.grid_engine("2", slots="x"), LeftOut.UNREADABLE),
        (logs.grid_engine("2")[:100], LeftOut.UNREADABLE),
        ("what", LeftOut.UNREADABLE),
    ],
    read_swf: [
        ("1 2 3", LeftOut.UNREADABLE),
        (logs.swf().replace("60", "sixty"), LeftOut.UNREADABLE),
        ("nan " * 18, LeftOut.UNREADABLE),
        (logs.swf(submit=math.nan), LeftOut.NO_TIME),
        (logs.swf(run_time=math.nan), LeftOut.NO_TIME),
        (logs.swf(limit=math.nan), LeftOut.NO_TIME),
        (logs.swf(submit=-1), LeftOut.NO_TIME),
        (logs.swf(limit=1e300), LeftOut.NO_TIME),
        (logs.swf(run_time=-1), LeftOut.NEVER_RAN),
        (logs.swf(used=0, asked=-1), LeftOut.NO_CORES),
        (logs.swf(used=-1, asked=10**12), LeftOut.UNREADABLE),
    ],
}
WHOLE = {reader: text.split("\n") for text, reader in reversed(ONE_OF_EACH)}
WHOLE[read_json] = [SLURM]


@pytest.mark.parametrize("reader", NO_JOBS)
def test_records_that_are_no_jobs(reader: Reader) -> None:
    for line, reason in NO_JOBS[reader]:
        found = read_with(reader, [*WHOLE[reader], line])
        assert (len(found.jobs), found.left_out) == (1, {reason: 1}), line


@pytest.mark.parametrize(("text", "reader"), ONE_OF_EACH)
def test_each_format_is_recognised_behind_other_lines(
    text: str, reader: Reader, path: Path
) -> None:
    for before in ("", "\n", "# of the head\n", "Welcome to the cluster\n\n"):
        assert reader_of((before + text).split("\n")) is reader
        path.write_text(before + text + "\n")
        assert len(read_trace(path).jobs) == 1


@pytest.mark.parametrize(("text", "_"), ONE_OF_EACH)
def test_files_as_other_systems_write_them(text: str, _: Reader, path: Path) -> None:
    lines = text + "\n"
    for data in (
        gzip.compress(lines.encode(), mtime=0),
        lines.replace("\n", "\r\n").encode("utf-8-sig"),
        lines.replace("\n", "\r\n").encode("utf-16"),
    ):
        path.write_bytes(data)
        found = read_trace(path)
        assert (found.name, len(found.jobs), found.examples) == ("log", 1, {})
        assert {job.name for job in found.jobs} <= {"relax", "5", ""}


# Of no time, so that each worker of pytest-xdist collects the same tests.
_PACKED = gzip.compress(b"x" * 1000, mtime=0)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "there is no job in it; it can be: the Standard Workload Format; acc"),
        (b"# only\n \n----\n", "there is no job in it"),
        (b"; MaxNodes: 16\n", "no job in it ran; it can be"),
        (logs.swf(run_time=0).encode(), "no job in it ran; left out: 1 never_ran; it"),
        (b"; MaxNodes: 16\n1 2", "left out: 1 unreadable .line 2: 2 of 18 fields"),
        (b'{"jobs": []}', "no job in it ran"),
        (b'{"jobs": [\n', "no job in it ran; left out: 1 unreadable"),
        (b"[{" * 100_000, "no job in it ran; left out: 1 unreadable"),
        (b"\xff what \x00", "format is not known; its first line is '. what .x00'"),
        (b"x" * 500, f"its first line is '{'x' * 60}'; it can be"),
        (b"[ann@login ~]$ qstat\n", "format is not known; its first line is '.ann@l"),
        (b"JobID  User  State\n----- ----- -----\n", "--parsable2 with its first line"),
        (logs.sacct().encode(), "format is not known; its first line is '101"),
        (b"JobID|State|User\n7|COMPLETED|ann\n", "log: what sacct printed has no Su"),
        (_PACKED[:-9], "is incomplete"),
        (_PACKED[:12] + b"\xff" * 20, "is incomplete"),
        (_PACKED[:-4] + b"abcd", "cannot be read"),
        (None, "No such file"),
    ],
)
def test_a_file_that_is_no_trace(path: Path, data: bytes | None, says: str) -> None:
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(TraceError, match=says):
        read_trace(path)


def test_a_pipe_may_be_read(path: Path) -> None:
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_text, args=(logs.swf(),))
    writer.start()
    assert len(read_trace(path).jobs) == 1
    writer.join()


READERS = st.sampled_from([reader for _, reader in FORMATS])
SEEDS = [line for text, _ in ONE_OF_EACH for line in text.split("\n")]
PIECES = st.sampled_from(
    [
        *('"', "|", ":", ";", " ", "\t", "{", "}", "[", "]", "\0", "\x85", "\u2028"),
        *("nan", "-1", "1e999", "9" * 5000, "é", "Unknown", "x", "4294967295", "1+0"),
        *("RUNNING", "PENDING", "CANCELLED by 0", "UNLIMITED", "None", "37-14:00:00"),
    ]
)


@st.composite
def lines_of_logs(draw: st.DrawFn) -> str:
    """A line of some format, in which a piece is another."""
    line = draw(st.sampled_from(SEEDS))
    first = draw(st.integers(0, len(line)))
    last = draw(st.integers(first, min(len(line), first + 12)))
    return line[:first] + draw(PIECES) + line[last:]


LINES = st.lists(st.one_of(st.sampled_from(SEEDS), lines_of_logs(), st.text()))


@given(READERS, LINES)
def test_any_lines_are_a_trace_or_a_trace_error(
    reader: Reader, lines: list[str]
) -> None:
    try:
        found = read_with(reader, lines)
    except TraceError:
        return
    assert all(count > 0 for count in found.left_out.values())
    assert all(job.run_time > 0 and job.cores > 0 for job in found.jobs)
    assert all(0 < job.run_time <= job.limit for job in found.jobs)
    assert bool(found.left_out_text) is bool(found.left_out)


ONE_A_LINE = [read_pbs, read_lsf, read_grid_engine, read_swf, read_sacct]


@given(st.sampled_from(ONE_A_LINE), st.lists(lines_of_logs(), max_size=8))
def test_each_line_is_counted_once(reader: Reader, lines: list[str]) -> None:
    records = [
        line
        for line in lines
        if line.strip(" \t-=_*+|~") and line[0] not in "#;" and "Submit" not in line
    ]
    found = read_with(reader, [*WHOLE[reader], *records])
    assert len(found.jobs) + sum(found.left_out.values()) == 1 + len(records)


@given(st.binary(max_size=200))
@example(b"\x1f\x8b")
@example(b"\xff\xfe\x00")
def test_any_bytes_are_a_trace_or_a_trace_error(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "bytes"
    path.write_bytes(data)
    with pytest.raises(TraceError):
        read_trace(path)
