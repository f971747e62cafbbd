# SPDX-License-Identifier: MIT
"""What `sacct --parsable2` prints, and flux-fiction's CSV."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from burst_replay.sacct import read_sacct
from burst_replay.trace import LeftOut, Machine, SeenUse, Trace, TraceError, TraceJob

from tests.plugins.replay.logs import read_with

NAMES = (
    "JobID|User|UID|Account|Partition|JobName|State|Submit|Start|End|Elapsed|Timelimit"
    "|NNodes|NCPUS|NodeList"
)
HOUR = 3600.0
BASE = {
    "JobID": "101",
    "User": "ann",
    "UID": "1001",
    "Account": "chem",
    "Partition": "batch",
    "JobName": "relax",
    "State": "COMPLETED",
    "Submit": "2024-03-05T08:00:00",
    "Start": "2024-03-05T08:10:00",
    "End": "2024-03-05T09:10:00",
    "Elapsed": "01:00:00",
    "Timelimit": "02:00:00",
    "NNodes": "2",
    "NCPUS": "64",
    "NodeList": "cn[01-02]",
}


def row(names: str = NAMES, between: str = "|", **changes: str) -> str:
    """A job of one hour on two nodes, with some fields changed."""
    fields = BASE | changes
    return between.join(fields[name] for name in names.split("|"))


def read(*rows: str, names: str = NAMES) -> Trace:
    return read_with(read_sacct, [names, *rows])


def table(names: Sequence[str], *rows: Sequence[str]) -> Trace:
    return read_with(read_sacct, ["|".join(names), *map("|".join, rows)])


def test_a_job() -> None:
    found = read(row())
    assert found.jobs == (
        TraceJob(0.0, HOUR, 64, 2 * HOUR, 1001, "relax", "batch", "chem"),
    )
    assert (found.left_out, found.notes) == ({}, ())
    assert found.users == {"ann": 1001}
    assert found.seen == SeenUse(cores=64, nodes=2, node_cores=32)
    assert found.seen.least == Machine(nodes=2, cores=32)
    assert (found.machine, found.numbers_of_host) == (None, False)
    assert found.started > 0


def test_fields_may_be_in_any_order_and_more() -> None:
    names = "State|MaxRSS|NCPUS|Elapsed|JobID|Submit"
    found = read_with(
        read_sacct, [names, "COMPLETED|4Gn|8|10:00|7|2024-03-05T08:00:00"]
    )
    assert found.jobs == (TraceJob(0.0, 600.0, 8, 600.0),)


@pytest.mark.parametrize("between", [",", ";", "\t", "^", "~", "@@", " | ", "\x1f"])
def test_other_delimiters_are_found_out(between: str) -> None:
    lines = [NAMES.replace("|", between), row(between=between)]
    lines = [line.replace("cn[01-02]", "cn01") for line in lines]
    found = read_with(read_sacct, lines)
    assert (len(found.jobs), found.left_out) == (1, {})


def test_commas_in_lists_are_no_delimiters_between_commas() -> None:
    names = "JobID,State,NodeList,AllocTRES,Submit,Elapsed,JobName"
    lines = [
        names,
        "7,COMPLETED,cn[01,03-04],billing=9,cpu=9,mem=4G,node=3,2024-03-05T08:00:00,1:0,a",
        '8,COMPLETED,"cn[01,03-04]","cpu=9,node=3",2024-03-05T08:00:00,1:0,"a,b"',
        "9,COMPLETED,cn1,cpu=2,2024-03-05T08:00:00,1:0,a,b,c",
        "9,COMPLETED,cn1,cpu=2,later,1:0,a,b,c",
    ]
    found = read_with(read_sacct, lines)
    assert [job.cores for job in found.jobs] == [9, 9, 2]
    assert [job.name for job in found.jobs] == ["a", "a,b", "a,b,c"]
    assert found.left_out == {LeftOut.UNREADABLE: 1}
    assert found.examples[LeftOut.UNREADABLE] == "line 5: 9 fields instead of 7"
    assert found.seen.nodes == 4


def test_parsable_ends_each_line_with_a_delimiter() -> None:
    found = read_with(read_sacct, [NAMES + "|", row() + "|", row(JobID="102") + "|"])
    assert (len(found.jobs), found.left_out) == (2, {})


def test_windows_ends_of_lines_and_names_in_quotation_marks() -> None:
    quoted = ",".join(f'"{name}"' for name in NAMES.split("|"))
    values = ",".join(f'"{text}"' for text in row().split("|"))
    found = read_with(read_sacct, [quoted + "\r", values + "\r"])
    assert (found.jobs[0].name, found.seen.nodes) == ("relax", 2)


def test_a_name_with_a_delimiter_in_it() -> None:
    found = read(row(JobName="a|b|c"), row(JobName="réseau ü"))
    assert found.jobs[0].name == "a|b|c"
    assert found.left_out == {LeftOut.REPEATED: 1}
    assert read(row(JobName="a|b", Submit="x")).left_out == {LeftOut.UNREADABLE: 1}


def test_lines_that_are_too_short_are_told() -> None:
    lines = [row(), "slurm: connection lost", "7|ann", row(JobID="8"), "1|2"]
    found = read(*lines)
    assert (len(found.jobs), found.left_out) == (2, {LeftOut.UNREADABLE: 3})
    assert found.examples == {LeftOut.UNREADABLE: "line 3: 1 fields instead of 15"}


def test_banners_rules_and_further_first_lines() -> None:
    other = "State|JobID|Submit|Elapsed|NCPUS"
    lines = [
        "Welcome to cluster",
        "# made by cron",
        NAMES,
        "-----|-----|-----",
        row(),
        "",
        NAMES,
        row(JobID="102"),
        other,
        "COMPLETED|103|2024-03-05T08:00:00|05:00|4",
    ]
    found = read_with(read_sacct, lines)
    assert [job.cores for job in found.jobs] == [64, 64, 4]
    assert found.left_out == {LeftOut.UNREADABLE: 1}
    assert found.examples[LeftOut.UNREADABLE] == (
        "line 1: it is before the names of fields"
    )


@pytest.mark.parametrize(
    "job_id", ["101.batch", "101.0", "101_3.extern", "101+0.1", "101.interactive"]
)
def test_steps_are_no_jobs(job_id: str) -> None:
    found = read(row(), row(JobID=job_id, User="", Partition=""))
    assert (len(found.jobs), found.left_out) == (1, {LeftOut.STEP: 1})


def test_steps_where_jobs_have_no_ids() -> None:
    names = "User|JobName|Submit|Elapsed|NCPUS"
    steps = [row(names, JobName="batch"), row(names, User="", JobName="solver")]
    found = read_with(read_sacct, [names, row(names), *steps])
    # Without ids, two that are alike may be two jobs.
    assert (len(found.jobs), found.left_out) == (1, {LeftOut.STEP: 2})
    assert len(read_with(read_sacct, [names, row(names), row(names)]).jobs) == 2
    alone = "JobName|Submit|Elapsed|NCPUS"
    assert len(read_with(read_sacct, [alone, row(alone)]).jobs) == 1


def test_arrays_have_a_job_for_each_task() -> None:
    found = read(row(JobID="5_1"), row(JobID="5_2"), row(JobID="5_[3-9%2]", State="PD"))
    assert (len(found.jobs), found.left_out) == (2, {LeftOut.STILL_WAITED: 1})


def test_components_of_a_heterogeneous_job_are_one_job() -> None:
    found = read(
        row(JobID="12+0"),
        row(JobID="12+0.batch"),
        row(JobID="12+1", NCPUS="8", NNodes="1", NodeList="gpu1", Elapsed="01:30:00"),
        row(JobID="13+0"),
        row(JobID="13+"),
    )
    assert [job.cores for job in found.jobs] == [72, 64, 64]
    assert found.jobs[0].run_time == 1.5 * HOUR
    assert found.left_out == {LeftOut.STEP: 1, LeftOut.COMPONENT: 1}
    assert found.seen.nodes == 3


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"State": "RUNNING", "End": "Unknown"}, LeftOut.STILL_RAN),
        ({"State": "SUSPENDED"}, LeftOut.STILL_RAN),
        ({"State": "PENDING", "Start": "Unknown"}, LeftOut.STILL_WAITED),
        ({"State": "REQUEUE_HOLD"}, LeftOut.STILL_WAITED),
        ({"State": "CANCELLED by 1001", "Start": "None"}, LeftOut.NEVER_RAN),
        ({"State": "CANCELLED+", "Start": "Unknown"}, LeftOut.NEVER_RAN),
        ({"State": "CANCELLED by 1001", "Elapsed": "00:00:00"}, LeftOut.NEVER_RAN),
        ({"State": "FAILED", "Submit": "Unknown"}, LeftOut.NO_TIME),
        ({"State": "", "End": "Unknown"}, LeftOut.STILL_RAN),
        ({"Elapsed": "INVALID", "End": "Unknown"}, LeftOut.NO_TIME),
        ({"Elapsed": "abc"}, LeftOut.NO_TIME),
        ({"Timelimit": "abc"}, LeftOut.NO_TIME),
        ({"Elapsed": "", "End": "2024-03-05T08:00:00"}, LeftOut.ENDED_BEFORE_START),
        ({"NCPUS": "0"}, LeftOut.NO_CORES),
        ({"NCPUS": "many"}, LeftOut.UNREADABLE),
        ({"NCPUS": "1e999"}, LeftOut.UNREADABLE),
        ({"NCPUS": "999999999999"}, LeftOut.UNREADABLE),
    ],
)
def test_records_that_are_no_jobs(changes: dict[str, str], reason: LeftOut) -> None:
    found = read(row(JobID="1"), row(JobID="2", **changes))
    assert (len(found.jobs), found.left_out) == (1, {reason: 1})


@pytest.mark.parametrize(
    "state",
    [
        *("COMPLETED", "TIMEOUT", "FAILED", "CANCELLED by 1001", "NODE_FAIL", "CD"),
        *("PREEMPTED", "REQUEUED", "OUT_OF_MEMORY", "DEADLINE", "SOME_NEW_STATE", ""),
    ],
)
def test_all_that_ran_and_ended_are_jobs(state: str) -> None:
    assert len(read(row(State=state)).jobs) == 1


def test_a_runaway_that_ended_at_no_known_time_ran_for_its_elapsed() -> None:
    assert read(row(State="FAILED", End="Unknown")).jobs[0].run_time == HOUR


def test_each_run_of_a_requeued_job_is_a_job_and_what_is_there_twice_is_one() -> None:
    again = row(Submit="2024-03-05T08:30:00", Start="2024-03-05T09:30:00")
    runs = row(JobID="7", State="RUNNING", End="Unknown")
    found = read(
        row(State="REQUEUED"),
        again,
        again,
        runs,
        runs,
        row(JobID="7"),
        row(JobID="8", State="PENDING", Start="Unknown"),
        row(JobID="8", State="RUNNING", End="Unknown"),
        row(JobID="9", State="PENDING", Start="Unknown"),
        row(JobID="9", State="CANCELLED by 0", Start="Unknown"),
    )
    assert len(found.jobs) == 3
    assert found.left_out == {
        LeftOut.REPEATED: 5,
        LeftOut.STILL_RAN: 1,
        LeftOut.NEVER_RAN: 1,
    }


def test_unfinished_jobs_without_ids_are_counted_each() -> None:
    names = "State|Submit|Elapsed|NCPUS"
    found = read_with(read_sacct, [names, *[row(names, State="PENDING")] * 2])
    assert found.left_out == {LeftOut.STILL_WAITED: 2}


def test_a_list_of_nodes_that_is_none_names_no_node() -> None:
    found = read(row(NodeList="None assigned"), row(JobID="2", NodeList="cn[1-"))
    assert (len(found.jobs), found.seen.nodes) == (2, 0)


def test_a_long_delimiter_in_a_name() -> None:
    lines = [NAMES.replace("|", "@@"), row(between="@@", JobName="a@@b")]
    assert read_with(read_sacct, lines).jobs[0].name == "a@@b"


def test_clusters_have_ids_of_their_own() -> None:
    names = f"{NAMES}|Cluster"
    found = read(f"{row()}|a", f"{row()}|b", names=names)
    assert len(found.jobs) == 2


def test_cores_are_what_was_allocated_or_else_asked() -> None:
    names = [
        "JobID",
        "Submit",
        "Elapsed",
        "AllocCPUS",
        "ReqCPUS",
        "AllocTRES",
        "ReqTRES",
    ]
    times = ["2024-03-05T08:00:00", "01:00"]
    tres = "billing=8,cpu=6,gres/gpu=8,mem=4G,node=2"
    found = table(
        names,
        ["1", *times, "4", "9", tres, "cpu=7"],
        ["2", *times, "0", "9", tres, "cpu=7"],
        ["3", *times, "", "9", "", "cpu=7"],
        ["4", *times, "", "", "", "cpu=7"],
        ["5", *times, "2K", "", "", ""],
        ["7", *times, "1.5k", "", "", ""],
        ["6", *times, "", "", "gres/gpu=2", ""],
    )
    assert [job.cores for job in found.jobs] == [4, 6, 9, 7, 2048, 1536]
    assert found.left_out == {LeftOut.NO_CORES: 1}
    assert found.seen.node_cores == 3


def test_raw_fields_count_seconds_and_minutes() -> None:
    names = ["JobIDRaw", "Submit", "ElapsedRaw", "TimelimitRaw", "NCPUS"]
    found = table(
        names, ["1", "1709625600", "90", "2", "4"], ["2", "1709625660", "0", "", "4"]
    )
    assert found.jobs == (TraceJob(0.0, 90.0, 4, 120.0),)
    assert found.left_out == {LeftOut.NEVER_RAN: 1}


def test_without_elapsed_it_is_the_end_less_the_start() -> None:
    names = "JobID|Submit|Start|End|NCPUS"
    found = read_with(
        read_sacct, [names, row(names), row(names, JobID="2", End="Unknown")]
    )
    assert found.jobs[0].run_time == HOUR
    assert found.left_out == {LeftOut.STILL_RAN: 1}


def test_what_all_lines_lack_is_told() -> None:
    found = read_with(read_sacct, ["JobID|Start|Elapsed|NNodes", "7|1709625600|90|3"])
    assert found.jobs == (TraceJob(0.0, 90.0, 3, 90.0),)
    assert found.notes == (
        "it has no Submit: Start is taken for it",
        "it has no NCPUS: a node is counted as one core",
    )
    names = "JobID|Eligible|Elapsed|NCPUS"
    noted = read_with(read_sacct, [names, "7|1709625600|90|3"]).notes
    assert noted == ("it has no Submit: Eligible is taken for it",)


@pytest.mark.parametrize(
    ("names", "says"),
    [
        ("JobID|State|Elapsed|NCPUS", "no Submit;"),
        ("JobID|Submit|State|NCPUS|End", "no Elapsed;"),
        (
            "JobID|State|User|ExitCode",
            "no Submit, no Elapsed, no NCPUS; write it with",
        ),
    ],
)
def test_fields_without_which_nothing_can_be_read(names: str, says: str) -> None:
    with pytest.raises(TraceError, match=says):
        read_with(read_sacct, [names])


def test_users_without_numbers_get_such_as_no_user_has() -> None:
    names = NAMES.replace("|UID", "")
    rows = [
        row(names, JobID=str(number), User=user)
        for number, user in enumerate(("ann", "bob", "ann"))
    ]
    found = read(*rows, names=names)
    first, second, third = (job.userid for job in found.jobs)
    assert first == third != second
    assert min(first, second) >= 2**32
    assert found.users == {"ann": first, "bob": second}


def test_a_field_that_no_csv_has_is_a_broken_line() -> None:
    names = "JobID,Submit,Elapsed,NCPUS"
    found = read_with(read_sacct, [names, "7,1709625600,90,4", '"' + "x" * 140_000])
    assert (len(found.jobs), found.left_out) == (1, {LeftOut.UNREADABLE: 1})


def test_flux_fiction() -> None:
    lines = [
        "JobID,NNodes,NCPUS,Timelimit,Submit,Elapsed,NGPUS, RabbitGiB",
        " 1,1,16,00:10:00,2019-01-01T00:00:00,00:06:00,1, 10",
        " 2,4,2,1:00:10:00,2019-01-01T00:01:00.500000,00:06:00,0, 10",
    ]
    found = read_with(read_sacct, lines)
    assert [(job.submit, job.run_time, job.cores) for job in found.jobs] == [
        (0.0, 360.0, 16),
        (60.5, 360.0, 4),
    ]
    assert [job.limit for job in found.jobs] == [600.0, 87000.0]
    exact = "JobID,NNodes,NCPUS,Timelimit,Submit,Elapsed,t_submit,elapsed_s"
    found = read_with(read_sacct, [exact, "1,1,16,00:10:00,x,y,1546300800.25,6.125"])
    assert (found.started, found.jobs[0].run_time) == (1546300800.25, 6.125)
