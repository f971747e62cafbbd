# SPDX-License-Identifier: MIT
"""What is particular to the logs of PBS, LSF, Grid Engine, and the SWF."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from burst_replay.grid_engine import is_grid_engine, read_grid_engine
from burst_replay.lsf import is_lsf, read_lsf
from burst_replay.pbs import is_pbs, read_pbs
from burst_replay.swf import read_swf
from burst_replay.trace import LeftOut, Machine, TraceJob

from tests.plugins.replay.logs import (
    GRID_ENGINE_CATEGORY,
    T0,
    UNIVA,
    grid_engine,
    lsf,
    lsf_tail,
    pbs,
    pbs_event,
    read_with,
    swf,
)


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
def test_cores_and_nodes_of_pbs(values: dict[str, str], cores: int, nodes: int) -> None:
    found = read_with(read_pbs, [pbs(**values)])
    assert [job.cores for job in found.jobs] == [cores] * bool(cores)
    assert found.left_out == ({} if cores else {LeftOut.NO_CORES: 1})
    assert found.node_cores == (-(-cores // nodes) if nodes else 1)


def test_other_forms_of_times_of_pbs() -> None:
    lines = [
        pbs(job="1", ctime="", start=f"{T0 + 600}.25", end=f"{T0 + 660}.75"),
        # Where both are told, the end counts.
        pbs(job="6", **{"resources_used.walltime": "9"}),
        pbs(job="2", end="", **{"resources_used.walltime": "00:10:00"}),
        pbs(job="3", end="", **{"resources_used.walltime": "30"}),
        pbs(job="4", **{"Resource_List.walltime": "86400"}),
        pbs(job="5", **{"Resource_List.walltime": ""}),
    ]
    found = read_with(read_pbs, lines)
    assert [job.run_time for job in found.jobs] == [60.5, 3600, 600, 30, 3600, 3600]
    assert [job.limit for job in found.jobs] == [7200, 7200, 7200, 7200, 86400, 86400]


def test_jobs_of_which_no_end_is_told() -> None:
    lines = [
        *(pbs_event(kind, "41.head") for kind in "QS"),
        pbs(),
        *(pbs_event(kind, "42.head") for kind in "QS"),
        pbs_event("Q", "43.head"),
        *(pbs_event(kind, "44.head") for kind in "QD"),
        *(pbs_event(kind, "45.head") for kind in "QSD"),
        *(pbs_event(kind, "46.head") for kind in "QSR"),
        pbs_event("L", "license", "floating license hour:3"),
        pbs_event("B", "R7.head", "owner=ann"),
    ]
    found = read_with(read_pbs, lines)
    assert len(found.jobs) == 1
    assert found.left_out == {
        LeftOut.NEVER_RAN: 1,  # 44
        LeftOut.STILL_WAITED: 2,  # 43, 46
        LeftOut.STILL_RAN: 2,  # 42, 45
        LeftOut.OTHER: 10,
    }


def test_a_run_that_was_given_up_is_a_job_where_it_is_told_whole() -> None:
    later = {"start": str(T0 + 5000), "end": str(T0 + 5060)}
    found = read_with(read_pbs, [pbs("R"), pbs(**later), pbs(**later)])
    assert [job.run_time for job in found.jobs] == [3600, 60]
    assert found.left_out == {LeftOut.REPEATED: 1}
    unfinished = read_with(read_pbs, [pbs("R")])
    assert (len(unfinished.jobs), unfinished.left_out) == (1, {})


def test_arrays_of_pbs_have_a_job_for_each_task() -> None:
    lines = [pbs(job=f"7[{index}].head") for index in ("", "1", "2")]
    found = read_with(read_pbs, lines)
    assert (len(found.jobs), found.left_out) == (2, {LeftOut.ARRAY: 1})


@pytest.mark.parametrize(
    ("asked", "hosts", "cores"),
    [
        ((), ("n1",), 1),
        (("n1", "n2+1"), ("n1", "n1", "n2"), 3),
        (("grp",), ("16*n1", "16*n2", "n3"), 33),
        ((), ("x*n1",), 1),
    ],
)
def test_lists_of_hosts_of_lsf(
    asked: Sequence[str], hosts: Sequence[str], cores: int
) -> None:
    found = read_with(read_lsf, [lsf(asked=asked, hosts=hosts)])
    assert [(job.cores, job.name) for job in found.jobs] == [(cores, "relax")]
    assert found.jobs[0].limit == 7200


@pytest.mark.parametrize(
    ("more", "limit"),
    [
        (lsf_tail(ext="0"), 7200),
        (lsf_tail(usage="1 n1 900 0 5 6"), 7200),
        (lsf_tail(usage="1 n1 900 0 5 6 0"), 7200),
        (lsf_tail(usage="2 n1 900 0 5 6 n2 900 0 5 6"), 7200),
        (lsf_tail(usage="2 n1 900 0 5 6 0 n2 900 0 5 6 0"), 7200),
        # No limit: it is the run time, which is the longest of the trace.
        (lsf_tail(limit=-1), 3600),
        (lsf_tail(limit=0), 3600),
        ('"" "chem" 0 8', 3600),
        ("", 3600),
        (lsf_tail(ext="x"), 3600),
        (lsf_tail(ext="900"), 3600),
    ],
)
def test_limits_of_lsf_are_behind_lists_of_any_length(more: str, limit: float) -> None:
    found = read_with(read_lsf, [lsf(more=more)])
    assert [job.limit for job in found.jobs] == [limit]


def test_arrays_of_lsf_have_a_job_for_each_index() -> None:
    lines = [lsf(more=lsf_tail(index=index)) for index in (1, 2, 2)]
    found = read_with(read_lsf, lines)
    assert (len(found.jobs), found.left_out) == (2, {LeftOut.REPEATED: 1})


def test_a_record_that_is_cut_off_behind_what_is_needed_is_a_job() -> None:
    found = read_with(read_lsf, [lsf()[:150], lsf()[:300]])
    assert len(found.jobs) == 1
    assert found.examples == {LeftOut.UNREADABLE: "line 1: it is cut off"}


def test_univa_has_more_fields_and_milliseconds() -> None:
    times = (T0 * 1000 + 250, (T0 + 600) * 1000, (T0 + 4200) * 1000 + 500)
    found = read_with(read_grid_engine, [grid_engine(times=times, more=UNIVA)])
    assert found.jobs[0].run_time == pytest.approx(3600.5)
    assert found.started == T0 + 0.25


@pytest.mark.parametrize(
    ("category", "limit"),
    [
        (GRID_ENGINE_CATEGORY, 7200),
        ("-l h_rt=02:00:00,h_vmem=2G", 7200),
        ("-l h_rt=7200", 7200),
        ("-l s_rt=7200", 7200),
        ("-l h_rt=02:00:00", 7200),
        ("-q all.q", 3600),
        ("NONE", 3600),
    ],
)
def test_limits_of_grid_engine_are_in_the_category(category: str, limit: float) -> None:
    found = read_with(read_grid_engine, [grid_engine(category=category)])
    assert [(job.limit, job.bank) for job in found.jobs] == [(limit, "")]


def test_tasks_of_arrays_are_jobs_and_those_of_parallel_jobs_are_not() -> None:
    lines = [
        *(grid_engine(task=task) for task in "122"),
        grid_engine(pe_task="1.n2", slots="1"),
        grid_engine(pe_task="2.n3", slots="1"),
    ]
    found = read_with(read_grid_engine, lines)
    assert len(found.jobs) == 2
    assert found.left_out == {LeftOut.STEP: 2, LeftOut.REPEATED: 1}


def test_which_lines_are_of_a_format() -> None:
    assert is_lsf('"JOB_NEW" "10.1" 1700000000 41 1001')
    assert not is_lsf('"JOB_FINISH" 10')
    assert not is_pbs("11/14/2023 23:23:20;0100;PBS_Server;Job;41.head;x")
    assert not is_grid_engine(grid_engine().replace(str(T0), "x"))
    assert not is_grid_engine("a:b:c")


def test_a_job_of_swf_and_the_machine() -> None:
    header = ["; MaxNodes: 16", "; MaxProcs: 128 (of all)", ";", "; UnixStartTime: 9"]
    found = read_with(read_swf, [*header, "", swf()])
    assert (found.machine, found.started) == (Machine(nodes=16, cores=8), 9)
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


def test_nodes_that_differ_have_all_the_processors() -> None:
    found = read_with(read_swf, ["; MaxNodes: 184", "; MaxProcs: 1664", swf(used=1664)])
    assert found.machine == Machine(nodes=185, cores=9)
    assert found.notes == ("its header says 184 nodes with 1664 processors",)


def test_parts_of_a_job_are_in_its_summary() -> None:
    lines = [swf(status=each) for each in (1, 2, 3, 0, 2, 4, 5, -1)]
    found = read_with(read_swf, lines)
    assert (len(found.jobs), found.left_out) == (4, {LeftOut.STEP: 4})


def test_jobs_are_by_submission_and_end_at_their_limit() -> None:
    lines = [swf(submit=20, run_time=500), swf(submit=5, limit=-1, used=-1)]
    first, second = read_with(read_swf, lines).jobs
    assert (first.submit, first.run_time, first.cores) == (5, 60, 8)
    assert first.limit == 500  # the longest of all
    assert (second.run_time, second.limit) == (100, 100)


def test_what_is_left_out_is_told_with_the_first_of_each() -> None:
    lines = ["1 2 3", swf(used=10**12), swf(submit=-1), swf(), swf(run_time=0)]
    assert read_with(read_swf, lines).left_out_text == (
        "left out: 1 never_ran, 1 no_time (line 3: an impossible time),"
        " 2 unreadable (line 1: 3 of 18 fields)"
    )
