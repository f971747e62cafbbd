# SPDX-License-Identifier: MIT
"""The accounting log of LSF."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from burst_replay.lsf import is_lsf, read_lsf
from burst_replay.trace import LeftOut, SeenUse, TraceJob

from tests.plugins.replay.logs import read_with

T0 = 1_700_000_000
USAGE = "1.5 0.25 -1 0 0 0 0 0 0 0 0 0 -1 0 0 0 9 9 -1"


def tail(
    limit: int = 7200, ext: str = '1 1110 "default"', usage: str = "0", index: int = 0
) -> str:
    """The fields from mailUser on, as version 10.1 writes them."""
    return (
        f'"" "chem" 0 8 "" "" {index} 4000 0 "" "" "" "" 0 "" 0 "" -1 "" "" "" "" -1'
        f' "" "" 6160 "" {T0} "" "" {ext} {usage} {limit} 4194304 900'
        ' "select[type == any] order[r15s:pg] " "" -1 "" -1 0 "" 0 0 "" 3600 "/home"'
    )


def record(
    job: int = 41,
    *,
    hosts: Sequence[str] = ("4*n1", "4*n2"),
    asked: Sequence[str] = (),
    start: int = T0 + 600,
    end: int = T0 + 4200,
    more: str | None = None,
) -> str:
    """A job of an hour that waited for ten minutes."""
    lists = " ".join(
        " ".join([str(len(names)), *(f'"{name}"' for name in names)])
        for names in (asked, hosts)
    )
    more = tail() if more is None else more
    return (
        f'"JOB_FINISH" "10.1" {end} {job} 1001 33882139 8 {T0} 0 0 {start} "ann"'
        f' "normal" "span[ptile=4]" "" "" "login1" "/home/ann" "" "%J.out" ""'
        f' "{T0}.{job}" {lists} 64 60.0 "relax" "echo ""a b"";sleep 1"'
        f" {USAGE} {more}"
    )


def test_a_job() -> None:
    found = read_with(read_lsf, [record()])
    assert found.jobs == (
        TraceJob(0.0, 3600.0, 8, 7200.0, 1001, "relax", "normal", "chem"),
    )
    assert (found.started, found.left_out) == (T0, {})
    assert found.users == {"ann": 1001}
    assert found.seen == SeenUse(cores=8, nodes=2, node_cores=4)


@pytest.mark.parametrize(
    ("asked", "hosts", "cores"),
    [
        ((), ("n1",), 1),
        (("n1", "n2+1"), ("n1", "n1", "n2"), 3),
        (("grp",), ("16*n1", "16*n2", "n3"), 33),
        ((), ("x*n1",), 1),
    ],
)
def test_lists_of_hosts(asked: Sequence[str], hosts: Sequence[str], cores: int) -> None:
    found = read_with(read_lsf, [record(asked=asked, hosts=hosts)])
    assert [(job.cores, job.name) for job in found.jobs] == [(cores, "relax")]
    assert found.jobs[0].limit == 7200


@pytest.mark.parametrize(
    ("more", "limit"),
    [
        (tail(ext="0"), 7200),
        (tail(usage="1 n1 900 0 5 6"), 7200),
        (tail(usage="1 n1 900 0 5 6 0"), 7200),
        (tail(usage="2 n1 900 0 5 6 n2 900 0 5 6"), 7200),
        (tail(usage="2 n1 900 0 5 6 0 n2 900 0 5 6 0"), 7200),
        # No limit: it is the run time, which is the longest of the trace.
        (tail(limit=-1), 3600),
        (tail(limit=0), 3600),
        ('"" "chem" 0 8', 3600),
        ("", 3600),
        (tail(ext="x"), 3600),
        (tail(ext="900"), 3600),
    ],
)
def test_limits_are_behind_lists_of_any_length(more: str, limit: float) -> None:
    found = read_with(read_lsf, [record(more=more)])
    assert [job.limit for job in found.jobs] == [limit]


def test_arrays_have_a_job_for_each_index() -> None:
    lines = [record(more=tail(index=index)) for index in (1, 2, 2)]
    found = read_with(read_lsf, lines)
    assert (len(found.jobs), found.left_out) == (2, {LeftOut.REPEATED: 1})


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (record(2, start=0, hosts=()), LeftOut.NEVER_RAN),
        (record(2, end=T0), LeftOut.ENDED_BEFORE_START),
        (record(2, hosts=()), LeftOut.NO_CORES),
        (record(2).replace(f" 8 {T0} 0 0", " 8 0 0 0"), LeftOut.NO_TIME),
        (record(2).replace(f" 8 {T0} 0 0", " 8 -9 0 0"), LeftOut.NO_TIME),
        (f'"JOB_RESIZE" "10.1" {T0} 41 0 0', LeftOut.OTHER),
        (f'"EVENT_ADRSV_FINISH" "10.1" {T0} {T0} 0', LeftOut.OTHER),
        (record(2)[:150], LeftOut.UNREADABLE),
        (record(2).partition(" 64 60.0")[0], LeftOut.UNREADABLE),
        (record(2).replace(' 0 2 "4*n1"', ' 3 2 "4*n1"'), LeftOut.UNREADABLE),
        (record(2).replace(' 0 2 "4*n1"', ' -1 2 "4*n1"'), LeftOut.UNREADABLE),
        (record(2).replace("relax", "x" * 140_000), LeftOut.UNREADABLE),
        ("what", LeftOut.UNREADABLE),
    ],
)
def test_records_that_are_no_jobs(line: str, reason: LeftOut) -> None:
    found = read_with(read_lsf, ["#1700000000", record(), line])
    assert (len(found.jobs), found.left_out) == (1, {reason: 1})


def test_a_record_that_is_cut_off_behind_what_is_needed_is_a_job() -> None:
    assert len(read_with(read_lsf, [record()[:300]]).jobs) == 1


def test_what_is_wrong_is_told() -> None:
    found = read_with(read_lsf, [record()[:150], record()])
    assert found.examples == {LeftOut.UNREADABLE: "line 1: it is cut off"}
    assert is_lsf('"JOB_NEW" "10.1" 1700000000 41 1001')
    assert not is_lsf('"JOB_FINISH" 10')
