# SPDX-License-Identifier: MIT
"""The accounting logs of PBS and Torque."""

from __future__ import annotations

import pytest
from burst_replay.pbs import is_pbs, read_pbs
from burst_replay.trace import LeftOut, SeenUse, TraceJob

from tests.plugins.replay.logs import read_with

T0 = 1_700_000_000


def record(kind: str = "E", job: str = "41.head", **values: str) -> str:
    """The end of a job of an hour that waited for ten minutes."""
    all_values = {
        "user": "ann",
        "group": "chem",
        "project": "_pbs_project_default",
        "jobname": "relax",
        "queue": "workq",
        "ctime": str(T0),
        "qtime": str(T0),
        "etime": str(T0),
        "start": str(T0 + 600),
        "exec_host": "n1/0*4+n2/0*4",
        "Resource_List.walltime": "02:00:00",
        "end": str(T0 + 4200),
    } | values
    message = " ".join(f"{key}={value}" for key, value in all_values.items() if value)
    return f"11/14/2023 23:23:20;{kind};{job};{message}"


def test_a_job() -> None:
    found = read_with(read_pbs, [record(account='"chem lab end=3"')])
    (only,) = found.jobs
    assert only == TraceJob(
        0.0, 3600.0, 8, 7200.0, only.userid, "relax", "workq", "chem lab end=3"
    )
    assert (found.started, found.left_out) == (T0, {})
    assert found.seen == SeenUse(cores=8, nodes=2, node_cores=4)
    assert found.users == {"ann": only.userid}


@pytest.mark.parametrize(
    ("values", "cores", "nodes"),
    [
        ({"exec_host": "n1/0*4+n2/0*4"}, 8, 2),
        ({"exec_host": "n1/24"}, 1, 1),
        ({"exec_host": "n1/0+n1/1+n2/0+n2/1"}, 4, 2),
        ({"exec_host": "n1/0-7+n2/0-3,6,9"}, 14, 2),
        ({"exec_host": "n1.site.org/0-1", "total_execution_slots": "3"}, 3, 1),
        (
            {
                "exec_host": "n1/0*0",
                "exec_vnode": "(n1[0]:mem=9kb:ncpus=24+n1[1]:ncpus=24)+(n2:ncpus=8)",
            },
            56,
            2,
        ),
        ({"exec_host": "", "Resource_List.ncpus": "6"}, 6, 0),
        ({"exec_host": "", "Resource_List.nodes": "3:ppn=4:gpus=1"}, 12, 3),
        ({"exec_host": "", "Resource_List.nodes": "n7:ppn=4"}, 0, 0),
        ({"exec_host": "", "Resource_List.nodect": "30"}, 30, 30),
    ],
)
def test_cores_and_nodes(values: dict[str, str], cores: int, nodes: int) -> None:
    found = read_with(read_pbs, [record(**values)])
    assert [job.cores for job in found.jobs] == [cores] * bool(cores)
    assert found.left_out == ({} if cores else {LeftOut.NO_CORES: 1})
    assert found.seen.node_cores == (-(-cores // nodes) if nodes else 0)


def test_other_forms_of_times() -> None:
    found = read_with(
        read_pbs,
        [
            record(job="1", ctime="", start=f"{T0 + 600}.25", end=f"{T0 + 660}.75"),
            record(job="2", end="", **{"resources_used.walltime": "00:10:00"}),
            record(job="3", end="", **{"resources_used.walltime": "30"}),
            record(job="4", **{"Resource_List.walltime": "86400"}),
            record(job="5", **{"Resource_List.walltime": ""}),
        ],
    )
    assert [job.run_time for job in found.jobs] == [60.5, 600, 30, 3600, 3600]
    assert [job.limit for job in found.jobs] == [7200, 7200, 7200, 86400, 86400]


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"start": ""}, LeftOut.NEVER_RAN),
        ({"end": str(T0 + 600)}, LeftOut.NEVER_RAN),
        ({"end": str(T0)}, LeftOut.ENDED_BEFORE_START),
        ({"ctime": "", "qtime": ""}, LeftOut.NO_TIME),
        ({"ctime": "soon"}, LeftOut.NO_TIME),
        ({"end": ""}, LeftOut.NO_TIME),
        ({"Resource_List.walltime": "x"}, LeftOut.NO_TIME),
        ({"exec_host": "n1/0*x"}, LeftOut.UNREADABLE),
        ({"exec_host": "n1/0-x"}, LeftOut.UNREADABLE),
    ],
)
def test_ends_that_are_no_jobs(values: dict[str, str], reason: LeftOut) -> None:
    found = read_with(read_pbs, [record(job="1"), record(job="2", **values)])
    assert (len(found.jobs), found.left_out) == (1, {reason: 1})


def event(kind: str, job: str, message: str = "queue=workq") -> str:
    return f"11/14/2023 23:13:20;{kind};{job};{message}"


def test_jobs_of_which_no_end_is_told() -> None:
    lines = [
        "# of the head",
        *(event(kind, "41.head") for kind in "QS"),
        record(),
        *(event(kind, "42.head") for kind in "QS"),
        event("Q", "43.head"),
        *(event(kind, "44.head") for kind in "QD"),
        *(event(kind, "45.head") for kind in "QSD"),
        *(event(kind, "46.head") for kind in "QSR"),
        event("L", "license", "floating license hour:3"),
        event("B", "R7.head", "owner=ann"),
    ]
    found = read_with(read_pbs, lines)
    assert len(found.jobs) == 1
    assert found.left_out == {
        LeftOut.NEVER_RAN: 1,  # 44
        LeftOut.STILL_WAITED: 2,  # 43, 46
        LeftOut.STILL_RAN: 2,  # 42, 45
        LeftOut.OTHER: 10,
    }
    assert len(found.jobs) + sum(found.left_out.values()) == len(lines) - 1


def test_a_run_that_was_given_up_is_a_job_where_it_is_told_whole() -> None:
    later = {"start": str(T0 + 5000), "end": str(T0 + 5060)}
    found = read_with(read_pbs, [record("R"), record(**later), record(**later)])
    assert [job.run_time for job in found.jobs] == [3600, 60]
    assert found.left_out == {LeftOut.REPEATED: 1}
    unfinished = read_with(read_pbs, [record("R")])
    assert (len(unfinished.jobs), unfinished.left_out) == (1, {})


def test_arrays_have_a_job_for_each_task() -> None:
    found = read_with(
        read_pbs, [record(job=f"7[{index}].head") for index in ("", "1", "2")]
    )
    assert (len(found.jobs), found.left_out) == (2, {LeftOut.ARRAY: 1})


def test_lines_that_are_no_records() -> None:
    found = read_with(read_pbs, ["what", record(), "11/14/2023 23:23:20;E;41.head"])
    assert (len(found.jobs), found.left_out) == (1, {LeftOut.UNREADABLE: 2})
    assert found.examples == {LeftOut.UNREADABLE: "line 1: it is no accounting record"}
    assert not is_pbs("11/14/2023 23:23:20;0100;PBS_Server;Job;41.head;x")
