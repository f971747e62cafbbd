# SPDX-License-Identifier: MIT
"""The accounting file of Grid Engine."""

from __future__ import annotations

import pytest
from burst_replay.grid_engine import is_grid_engine, read_grid_engine
from burst_replay.trace import LeftOut, SeenUse, TraceJob

from tests.plugins.replay.logs import read_with

T0 = 1_700_000_000
CATEGORY = "-u ann -l h_rt=7200,h_vmem=2G -pe mpi 8"
UNIVA = ":NONE:NONE:668106752:638583808:login1:/home:qsub a.sh:3600.0:9:NONE:1,n1:n1"


def record(
    job: str = "41",
    *,
    times: tuple[int, int, int] = (T0, T0 + 600, T0 + 4200),
    slots: str = "8",
    task: str = "0",
    category: str = CATEGORY,
    project: str = "NONE",
    pe_task: str = "NONE",
    more: str = "",
) -> str:
    """A job of an hour that waited for ten minutes."""
    submit, start, end = times
    usage = ":".join(["0"] * 18)
    return (
        f"all.q:n1:chem:ann:relax:{job}:sge:0:{submit}:{start}:{end}:0:0:{usage}"
        f":{project}:dept:mpi:{slots}:{task}:9.5:1.25:0.5:{category}:0.000000:{pe_task}"
        f":1891.000000:0:0{more}"
    )


def test_a_job() -> None:
    found = read_with(
        read_grid_engine, ["# Version: 8.1.9", "#", "", record(project="bio")]
    )
    (only,) = found.jobs
    assert only == TraceJob(
        0.0, 3600.0, 8, 7200.0, only.userid, "relax", "all.q", "bio"
    )
    assert (found.started, found.left_out) == (T0, {})
    assert found.users == {"ann": only.userid}
    # On how many nodes it ran is not told.
    assert found.seen == SeenUse(cores=8, nodes=1)


def test_univa_has_more_fields_and_milliseconds() -> None:
    times = (T0 * 1000 + 250, (T0 + 600) * 1000, (T0 + 4200) * 1000 + 500)
    found = read_with(read_grid_engine, [record(times=times, more=UNIVA)])
    assert found.jobs[0].run_time == pytest.approx(3600.5)
    assert found.started == T0 + 0.25


@pytest.mark.parametrize(
    ("category", "limit"),
    [
        (CATEGORY, 7200),
        ("-l h_rt=02:00:00,h_vmem=2G", 7200),
        ("-l h_rt=7200", 7200),
        ("-l s_rt=7200", 7200),
        ("-l h_rt=02:00:00", 7200),
        ("-q all.q", 3600),
        ("NONE", 3600),
    ],
)
def test_limits_are_in_the_category(category: str, limit: float) -> None:
    found = read_with(read_grid_engine, [record(category=category)])
    assert [job.limit for job in found.jobs] == [limit]


def test_tasks_of_arrays_are_jobs_and_those_of_parallel_jobs_are_not() -> None:
    found = read_with(
        read_grid_engine,
        [
            record(task="1"),
            record(task="2"),
            record(task="2"),
            record(pe_task="1.n2", slots="1"),
            record(pe_task="2.n3", slots="1"),
        ],
    )
    assert len(found.jobs) == 2
    assert found.left_out == {LeftOut.STEP: 2, LeftOut.REPEATED: 1}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (record("2", times=(T0, 0, 0)), LeftOut.NEVER_RAN),
        (record("2", times=(0, 0, 0)), LeftOut.NEVER_RAN),
        (record("2", times=(T0, T0 + 5, T0 + 5)), LeftOut.NEVER_RAN),
        (record("2", times=(T0, T0 + 5, T0 + 4)), LeftOut.ENDED_BEFORE_START),
        (record("2", times=(0, T0, T0 + 4)), LeftOut.NO_TIME),
        (record("2", slots="0"), LeftOut.NO_CORES),
        (record("2", slots="x"), LeftOut.UNREADABLE),
        (record("2")[:100], LeftOut.UNREADABLE),
        ("what", LeftOut.UNREADABLE),
    ],
)
def test_records_that_are_no_jobs(line: str, reason: LeftOut) -> None:
    found = read_with(read_grid_engine, [record(), line])
    assert (len(found.jobs), found.left_out) == (1, {reason: 1})


def test_which_lines_are_of_it() -> None:
    assert is_grid_engine(record())
    assert not is_grid_engine(record().replace(str(T0), "x"))
    assert not is_grid_engine("a:b:c")
