# SPDX-License-Identifier: MIT
"""Files are recognised by what is in them, and any text is a trace or an error."""

from __future__ import annotations

import gzip
import json
import os
import threading
from pathlib import Path

import pytest
from burst_replay.grid_engine import read_grid_engine
from burst_replay.json_jobs import read_json
from burst_replay.lsf import read_lsf
from burst_replay.pbs import read_pbs
from burst_replay.read_trace import Reader, read_trace, reader_of
from burst_replay.sacct import read_sacct
from burst_replay.swf import read_swf
from burst_replay.trace import LeftOut, Trace, TraceError
from hypothesis import example, given
from hypothesis import strategies as st

from tests.plugins.replay import (
    test_grid_engine,
    test_lsf,
    test_pbs,
    test_sacct,
    test_sacct_json,
    test_swf,
)
from tests.plugins.replay.logs import read_with

SLURM = json.dumps({"jobs": [test_sacct_json.new()]})
FLUX = json.dumps({"t_submit": 9.0, "t_run": 9.0, "t_cleanup": 19.0, "ncores": 1})
EVENT = json.dumps({"id": 1, "events": []})
ONE_OF_EACH: list[tuple[str, Reader]] = [
    (test_swf.line(), read_swf),
    (f"{test_sacct.NAMES}\n{test_sacct.row()}", read_sacct),
    (SLURM, read_json),
    (json.dumps(json.loads(SLURM), indent=2), read_json),
    (json.dumps([test_sacct_json.old()], indent=1), read_json),
    (FLUX, read_json),
    (f"{EVENT}\n{FLUX}", read_json),
    (json.dumps({"jobs": [json.loads(FLUX)]}, indent=4), read_json),
    (test_pbs.record(), read_pbs),
    (test_lsf.record(), read_lsf),
    (test_grid_engine.record(), read_grid_engine),
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log"


@pytest.mark.parametrize(("text", "reader"), ONE_OF_EACH)
def test_each_format_is_recognised_behind_other_lines(
    text: str, reader: Reader, path: Path
) -> None:
    for before in ("", "\n", "# of the head\n", "Welcome to the cluster\n\n"):
        lines = (before + text).split("\n")
        assert reader_of(lines) is reader
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
        assert (len(found.jobs), found.examples) == (1, {})
        assert {job.name for job in found.jobs} <= {"relax", "5", ""}


def test_answers_one_behind_the_other(path: Path) -> None:
    days = [
        json.dumps({"jobs": [test_sacct_json.new(job_id=number)]}, indent=1)
        for number in (1, 2, 2)
    ]
    path.write_text("sacct: warning\n" + "\n".join(days) + "\n")
    found = read_trace(path)
    assert (len(found.jobs), found.left_out) == (2, {LeftOut.REPEATED: 1})
    path.write_text("\n".join(days)[:-20])
    found = read_trace(path)
    assert (len(found.jobs), found.left_out) == (2, {LeftOut.UNREADABLE: 1})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "there is no job in it; read are: the Standard Workload Format; acc"),
        ("# only\n----\n", "there is no job in it"),
        ("JobID  User  State\n------ ----- -----\n", "--parsable2 with its first li"),
        (test_sacct.row() + "\n", "format is not known; its first line is '101"),
        (
            "[ann@login ~]$ qstat\n",
            "format is not known; its first line is '.ann@login",
        ),
        ("x" * 500, f"its first line is '{'x' * 60}'; read are"),
        (
            "JobID|State|User\n7|COMPLETED|ann\n",
            "log: what sacct printed has no Submit",
        ),
        ("{\n", "no job in it that ran; 1 broken line left out"),
        ('{"jobs": [\n', "no job in it that ran; 1 broken line left out"),
        ("[{" * 100_000, "no job in it that ran; 1 broken line left out"),
    ],
)
def test_what_is_in_no_format_is_told(text: str, says: str, path: Path) -> None:
    path.write_text(text)
    with pytest.raises(TraceError, match=says):
        read_trace(path)


def test_how_far_it_is_is_told(path: Path) -> None:
    path.write_text(f"{test_swf.line()}\n" * 10_000)
    told: list[int] = []
    read_trace(path, told.append)
    assert told[0] > 0
    assert told == sorted(told)
    assert len(told) == 3
    assert told[-1] <= path.stat().st_size


def test_a_pipe_may_be_read(path: Path) -> None:
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_text, args=(test_swf.line(),))
    writer.start()
    told: list[int] = []
    assert len(read_trace(path, told.append).jobs) == 1
    writer.join()
    assert told == [0]


READERS = st.sampled_from(
    [
        *(read_swf, read_sacct, read_json),
        *(read_pbs, read_lsf, read_grid_engine),
    ]
)
SEEDS = [line for text, _ in ONE_OF_EACH for line in text.split("\n")]
PIECES = st.sampled_from(
    [
        *('"', "|", ":", ";", " ", "\t", "{", "}", "[", "]", "\0", "\x85", "\u2028"),
        *("nan", "-1", "1e999", "9" * 5000, "é", "Unknown", "x", "4294967295", "1+0"),
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


def count_of(trace: Trace) -> int:
    return len(trace.jobs) + sum(trace.left_out.values())


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
    assert len(found.left_out_texts) == len(found.left_out)


ONE_A_LINE = [
    (read_pbs, test_pbs.record()),
    (read_lsf, test_lsf.record()),
    (read_grid_engine, test_grid_engine.record()),
    (read_swf, test_swf.line()),
]


@given(st.sampled_from(ONE_A_LINE), st.lists(lines_of_logs(), max_size=8))
def test_each_line_is_counted_once(of: tuple[Reader, str], lines: list[str]) -> None:
    reader, whole = of
    records = [
        line for line in lines if line.strip(" \t-=_*+|~") and line[0] not in "#;"
    ]
    records = [line for line in records if line.split()]
    assert count_of(read_with(reader, [whole, *records])) == 1 + len(records)


@given(
    st.lists(
        st.fixed_dictionaries(
            {},
            optional={
                "JobID": st.sampled_from(
                    ["7", "8", "7.batch", "9+0", "9+1", "5_[1-3]"]
                ),
                "State": st.sampled_from(["RUNNING", "PENDING", "CANCELLED by 0", "?"]),
                "Submit": st.sampled_from(["Unknown", "2024-03-05T07:00:00", "1e11"]),
                "Start": st.sampled_from(["Unknown", "None", "2024-03-05T07:00:00"]),
                "End": st.sampled_from(["Unknown", "2024-03-05T07:00:00"]),
                "Elapsed": st.sampled_from(["", "00:00:00", "37-14:00:00", "INVALID"]),
                "Timelimit": st.sampled_from(["UNLIMITED", "Partition_Limit", "x"]),
                "NCPUS": st.sampled_from(["0", "2K", "x"]),
            },
        )
    )
)
def test_each_record_of_sacct_is_counted_once(changes: list[dict[str, str]]) -> None:
    rows = [test_sacct.row(**each) for each in changes]
    assert count_of(test_sacct.read(*rows)) == len(rows)


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
