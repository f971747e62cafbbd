# SPDX-License-Identifier: MIT
"""The Standard Workload Format."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from burst_replay.read_trace import read_trace
from burst_replay.swf import read_swf
from burst_replay.trace import LeftOut, Machine, SeenUse, TraceError, TraceJob

from tests.plugins.replay.logs import read_with

# Of no time, so that each worker of pytest-xdist collects the same tests.
_PACKED = gzip.compress(b"x" * 1000, mtime=0)


HEADER = "; MaxNodes: 16\n"


def line(
    submit: float = 10,
    run_time: float = 60,
    used: int = 4,
    asked: int = 8,
    limit: float = 100,
) -> str:
    """A job of user 7, program 5, queue 2."""
    return f"1 {submit} 3 {run_time} {used} 9 -1 {asked} {limit} -1 1 7 1 5 2 -1 -1 -1"


def test_a_job_and_the_machine() -> None:
    header = ["; MaxNodes: 16", "; MaxProcs: 128 (of all)", ";", "; UnixStartTime: 9"]
    found = read_with(read_swf, [*header, "", line()])
    assert found.machine == Machine(nodes=16, cores=8)
    assert found.started == 9
    assert found.jobs == (
        TraceJob(10.0, 60.0, 4, 100.0, userid=7, name="5", queue="2"),
    )


@pytest.mark.parametrize(
    ("header", "machine"),
    [
        ([], None),
        (["; MaxProcs: 24"], Machine(24, 1)),
        (["; MaxNodes: 24", "; MaxProcs: -1"], Machine(24, 1)),
        (["; MaxNodes: many"], None),
    ],
)
def test_what_a_header_leaves_out(header: list[str], machine: Machine | None) -> None:
    assert read_with(read_swf, header).machine == machine


def test_a_line_with_more_cores_than_any_machine_has_is_left_out() -> None:
    lines = [line(used=10**12), line(used=-1, asked=10**12), line()]
    found = read_with(read_swf, lines)
    assert (len(found.jobs), found.left_out) == (1, {LeftOut.UNREADABLE: 2})
    assert found.left_out_texts == [
        "2 broken lines left out (line 1: 1000000000000 cores, which no machine has)"
    ]


@pytest.mark.parametrize("text", ["; MaxNodes: 16\n" + line(), '{"jobs": []}'])
def test_a_byte_order_mark_is_no_part_of_a_trace(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.swf"
    row = '{"t_submit": 9.0, "t_run": 9.0, "t_cleanup": 19.0, "ncores": 1}'
    path.write_bytes(b"\xef\xbb\xbf" + text.replace("[]", f"[{row}]").encode())
    found = read_trace(path)
    assert (len(found.jobs), found.left_out) == (1, {})
    assert (found.machine is None) is text.startswith("{")


def test_what_was_used_at_once_is_known_by_the_waits() -> None:
    # The second starts when the first ends, and the third is still there.
    lines = [line(submit=10), line(submit=70, used=5), line(submit=13, used=3)]
    assert read_with(read_swf, lines).seen == SeenUse(cores=8)
    without = [text.replace(" 3 ", " -1 ", 1) for text in lines]
    assert read_with(read_swf, without).seen == SeenUse(cores=5)


def test_jobs_are_by_submission_and_end_at_their_limit() -> None:
    lines = [line(submit=20, run_time=500), line(submit=5, limit=-1, used=-1)]
    first, second = read_with(read_swf, lines).jobs
    assert (first.submit, first.run_time, first.cores) == (5, 60, 8)
    assert first.limit == 500  # the longest of all
    assert (second.run_time, second.limit) == (100, 100)


def test_broken_lines_are_counted_and_told_and_so_is_what_never_ran() -> None:
    broken = [
        "1 2 3",
        line().replace("60", "sixty"),
        line(submit=-1),
        line(limit=1e300),
    ]
    found = read_with(
        read_swf,
        [*broken, line(), line(run_time=-1), line(used=0, asked=-1), "nan " * 18],
    )
    assert len(found.jobs) == 1
    assert found.left_out == {
        LeftOut.NEVER_RAN: 1,
        LeftOut.NO_TIME: 2,
        LeftOut.NO_CORES: 1,
        LeftOut.UNREADABLE: 3,
    }
    assert found.examples == {
        LeftOut.UNREADABLE: "line 1: 3 of 18 fields",
        LeftOut.NO_TIME: "line 3: a time that cannot be",
    }


def test_a_file_may_be_compressed(tmp_path: Path) -> None:
    plain, packed = tmp_path / "a.swf", tmp_path / "b.swf.gz"
    plain.write_text(line())
    packed.write_bytes(gzip.compress(line().encode()))
    assert read_trace(plain).jobs == read_trace(packed).jobs
    assert read_trace(packed).name == "b.swf.gz"


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "no job"),
        (b"\n \n", "no job"),
        (b"; MaxNodes: 16\n", "no job"),
        (line(run_time=0).encode(), "no job in it that ran; 1 more never ran;"),
        (b'{"jobs": []}', "no job"),
        (b"\xff what \x00", "format is not known; its first line is '. what .x00'"),
        (line().replace(" 9 ", " x ").encode(), "format is not known"),
        ((HEADER + "1 2").encode(), "1 broken line left out .line 2: 2 of 18 fields"),
        (_PACKED[:-9], "not whole"),
        (_PACKED[:12] + b"\xff" * 20, "not whole"),
        (_PACKED[:-4] + b"abcd", "cannot be read"),
        (None, "No such file"),
    ],
)
def test_a_file_that_is_no_trace(tmp_path: Path, data: bytes | None, says: str) -> None:
    path = tmp_path / "trace"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(TraceError, match=says):
        read_trace(path)


@pytest.mark.parametrize("place", [1, 3, 8])
def test_a_time_that_is_no_number_is_a_broken_line(place: int) -> None:
    line = "1 5 0 10 1 -1 -1 1 20 -1 1 1 1 1 1 1 -1 -1"
    fields = line.split()
    fields[place] = "nan"
    trace = read_with(read_swf, [" ".join(fields)])
    assert (trace.jobs, trace.left_out) == ((), {LeftOut.NO_TIME: 1})
