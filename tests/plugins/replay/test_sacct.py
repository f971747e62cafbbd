# SPDX-License-Identifier: MIT
"""What `sacct --parsable2` prints, and flux-fiction's CSV."""

from __future__ import annotations

import pytest
from burst_replay.sacct import read_sacct
from burst_replay.trace import LeftOut, Trace, TraceError, TraceJob

from tests.plugins.replay.logs import HOUR, SACCT_NAMES, read_with, sacct


def read(*rows: str, names: str = SACCT_NAMES) -> Trace:
    """Read records below a first line."""
    return read_with(read_sacct, [names, *rows])


def test_fields_may_be_in_any_order_and_more() -> None:
    names = "State|MaxRSS|NCPUS|Elapsed|JobID|Submit"
    found = read("COMPLETED|4Gn|8|10:00|7|2024-03-05T08:00:00", names=names)
    assert found.jobs == (TraceJob(0.0, 600.0, 8, 600.0, limited=False),)


@pytest.mark.parametrize("between", [",", ";", "\t", "^", "~", "@@", " | ", "\x1f"])
def test_other_delimiters_are_found_out_also_in_a_name(between: str) -> None:
    names = SACCT_NAMES.replace("|", between)
    for name in ("relax", f"a{between}b"):
        found = read(sacct(between=between, JobName=name), names=names)
        assert [job.name for job in found.jobs] == [name]


def test_commas_in_lists_are_no_delimiters_between_commas() -> None:
    names = "JobID,State,NodeList,AllocTRES,Submit,Elapsed,JobName"
    found = read(
        "7,COMPLETED,cn[01,03-04],billing=9,cpu=9,mem=4G,node=3,2024-03-05T08:00:00,1:0,a",
        '8,COMPLETED,"cn[01,03-04]","cpu=9,node=3",2024-03-05T08:00:00,1:0,"a,b"',
        "9,COMPLETED,cn1,cpu=2,2024-03-05T08:00:00,1:0,a,b,c",
        "9,COMPLETED,cn1,cpu=2,later,1:0,a,b,c",
        names=names,
    )
    assert [job.cores for job in found.jobs] == [9, 9, 2]
    assert [job.name for job in found.jobs] == ["a", "a,b", "a,b,c"]
    assert found.left_out == {LeftOut.UNREADABLE: 1}
    assert found.examples[LeftOut.UNREADABLE] == "line 5: 9 fields instead of 7"


def test_parsable_ends_each_line_with_a_delimiter() -> None:
    found = read(sacct() + "|", sacct(JobID="102") + "|", names=SACCT_NAMES + "|")
    assert (len(found.jobs), found.left_out) == (2, {})


def test_a_name_with_a_delimiter_in_it() -> None:
    assert read(sacct(JobName="a|b|c")).jobs[0].name == "a|b|c"
    assert read(sacct(JobName="a|b", Submit="x")).left_out == {LeftOut.UNREADABLE: 1}


def test_lines_that_are_too_short_are_told() -> None:
    found = read(sacct(), "slurm: connection lost", "7|ann", sacct(JobID="8"), "1|2")
    assert (len(found.jobs), found.left_out) == (2, {LeftOut.UNREADABLE: 3})
    assert found.examples == {LeftOut.UNREADABLE: "line 3: 1 fields instead of 15"}


def test_banners_rules_and_further_first_lines() -> None:
    found = read(
        *("# made by cron", SACCT_NAMES, "-----|-----|-----", sacct(), ""),
        *(SACCT_NAMES, sacct(JobID="102")),
        "State|JobID|Submit|Elapsed|NCPUS",
        "COMPLETED|103|2024-03-05T08:00:00|05:00|4",
        names="Welcome to cluster",
    )
    assert [job.cores for job in found.jobs] == [64, 64, 4]
    assert found.examples == {
        LeftOut.UNREADABLE: "line 1: it comes before the names of the fields"
    }


@pytest.mark.parametrize(
    "job_id", ["101.batch", "101.0", "101_3.extern", "101+0.1", "101.interactive"]
)
def test_steps_are_no_jobs(job_id: str) -> None:
    found = read(sacct(), sacct(JobID=job_id, User="", Partition=""))
    assert (len(found.jobs), found.left_out) == (1, {LeftOut.STEP: 1})


def test_steps_where_jobs_have_no_ids() -> None:
    names = "User|JobName|Submit|Elapsed|NCPUS"
    steps = [sacct(names, JobName="batch"), sacct(names, User="", JobName="solver")]
    found = read(sacct(names), *steps, names=names)
    # Without ids, two that are alike may be two jobs.
    assert (len(found.jobs), found.left_out) == (1, {LeftOut.STEP: 2})
    assert len(read(sacct(names), sacct(names), names=names).jobs) == 2
    alone = "JobName|Submit|Elapsed|NCPUS"
    assert len(read(sacct(alone), names=alone).jobs) == 1


def test_arrays_have_a_job_for_each_task() -> None:
    tasks = [sacct(JobID="5_1"), sacct(JobID="5_2"), sacct(JobID="5_[3-9]", State="PD")]
    found = read(*tasks)
    assert (len(found.jobs), found.left_out) == (2, {LeftOut.STILL_WAITED: 1})


def test_components_of_a_heterogeneous_job_are_one_job() -> None:
    found = read(
        sacct(JobID="12+0"),
        sacct(JobID="12+0.batch"),
        sacct(
            JobID="12+1", NCPUS="8", NNodes="1", NodeList="gpu[1-9]", Elapsed="01:30:00"
        ),
        sacct(JobID="13+0"),
        sacct(JobID="13+"),
    )
    assert [job.cores for job in found.jobs] == [72, 64, 64]
    assert found.jobs[0].run_time == 1.5 * HOUR
    assert found.left_out == {LeftOut.STEP: 1, LeftOut.COMPONENT: 1}


@pytest.mark.parametrize(
    "state",
    [
        *("COMPLETED", "TIMEOUT", "FAILED", "CANCELLED by 1001", "NODE_FAIL", "CD"),
        *("PREEMPTED", "REQUEUED", "OUT_OF_MEMORY", "DEADLINE", "SOME_NEW_STATE", ""),
    ],
)
def test_all_that_ran_and_ended_are_jobs(state: str) -> None:
    assert len(read(sacct(State=state)).jobs) == 1


def test_a_runaway_that_ended_at_no_known_time_ran_for_its_elapsed() -> None:
    assert read(sacct(State="FAILED", End="Unknown")).jobs[0].run_time == HOUR


def test_each_run_of_a_requeued_job_is_a_job_and_what_is_there_twice_is_one() -> None:
    again = sacct(Submit="2024-03-05T08:30:00", Start="2024-03-05T09:30:00")
    runs = sacct(JobID="7", State="RUNNING", End="Unknown")
    found = read(
        *(sacct(State="REQUEUED"), again, again, runs, runs, sacct(JobID="7")),
        sacct(JobID="8", State="PENDING", Start="Unknown"),
        sacct(JobID="8", State="RUNNING", End="Unknown"),
        sacct(JobID="9", State="PENDING", Start="Unknown"),
        sacct(JobID="9", State="CANCELLED by 0", Start="Unknown"),
    )
    assert len(found.jobs) == 3
    assert found.left_out == {
        LeftOut.REPEATED: 5,
        LeftOut.STILL_RAN: 1,
        LeftOut.NEVER_RAN: 1,
    }


def test_unfinished_jobs_without_ids_are_counted_each() -> None:
    names = "State|Submit|Elapsed|NCPUS"
    found = read(*[sacct(names, State="PENDING")] * 2, names=names)
    assert found.left_out == {LeftOut.STILL_WAITED: 2}


def test_clusters_have_ids_of_their_own() -> None:
    names = f"{SACCT_NAMES}|Cluster"
    found = read(f"{sacct()}|a", f"{sacct()}|b", names=names)
    assert len(found.jobs) == 2


def test_cores_are_what_was_allocated_or_else_asked() -> None:
    tres = "billing=8,cpu=6,gres/gpu=8,mem=4G,node=2"
    counts = [
        *(f"4|9|{tres}|cpu=7", f"0|9|{tres}|cpu=7", "|9||cpu=7", "|||cpu=7"),
        *("2K|||", "1.5k|||", "||gres/gpu=2|"),
    ]
    found = read(
        *(f"{job}|2024-03-05T08:00:00|01:00|{each}" for job, each in enumerate(counts)),
        names="JobID|Submit|Elapsed|AllocCPUS|ReqCPUS|AllocTRES|ReqTRES",
    )
    assert [job.cores for job in found.jobs] == [4, 6, 9, 7, 2048, 1536]
    assert found.left_out == {LeftOut.NO_CORES: 1}
    assert found.node_cores == 3


def test_raw_fields_count_seconds_and_minutes() -> None:
    names = "JobIDRaw|Submit|ElapsedRaw|TimelimitRaw|NCPUS"
    found = read("1|1709625600|90|2|4", "2|1709625660|0||4", names=names)
    assert found.jobs == (TraceJob(0.0, 90.0, 4, 120.0),)
    assert found.left_out == {LeftOut.NEVER_RAN: 1}


def test_without_elapsed_it_is_the_end_less_the_start() -> None:
    names = "JobID|Submit|Start|End|NCPUS"
    runs = sacct(names, JobID="2", End="Unknown")
    found = read(sacct(names), runs, names=names)
    assert found.jobs[0].run_time == HOUR
    assert found.left_out == {LeftOut.STILL_RAN: 1}


def test_what_all_lines_lack_is_told() -> None:
    found = read("7|1709625600|90|3", names="JobID|Start|Elapsed|NNodes")
    assert found.jobs == (TraceJob(0.0, 90.0, 3, 90.0, limited=False),)
    assert found.notes == (
        "it has no Submit: Start is used instead",
        "it has no NCPUS: a node is counted as one core",
    )
    found = read("7|1709625600|90|3", names="JobID|Eligible|Elapsed|NCPUS")
    assert found.notes == ("it has no Submit: Eligible is used instead",)


@pytest.mark.parametrize(
    ("names", "says"),
    [
        ("JobID|State|Elapsed|NCPUS", "no Submit;"),
        ("JobID|Submit|State|NCPUS|End", "no Elapsed;"),
        ("JobID|State|User|ExitCode", "no Submit, no Elapsed, no NCPUS; write it with"),
    ],
)
def test_fields_without_which_nothing_can_be_read(names: str, says: str) -> None:
    with pytest.raises(TraceError, match=says):
        read(names=names)


def test_users_without_numbers_get_such_as_no_user_has() -> None:
    names = SACCT_NAMES.replace("|UID", "")
    rows = [
        sacct(names, JobID=str(number), User=user)
        for number, user in enumerate(("ann", "bob", "ann"))
    ]
    found = read(*rows, names=names)
    first, second, third = (job.userid for job in found.jobs)
    assert first == third != second
    assert min(first, second) >= 2**32
    assert found.users == {"ann": first, "bob": second}


def test_a_field_that_no_csv_has_is_a_broken_line() -> None:
    broken = '"' + "x" * 140_000
    found = read("7,1709625600,90,4", broken, names="JobID,Submit,Elapsed,NCPUS")
    assert (len(found.jobs), found.left_out) == (1, {LeftOut.UNREADABLE: 1})


def test_flux_fiction() -> None:
    found = read(
        " 1,1,16,00:10:00,2019-01-01T00:00:00,00:06:00,1, 10",
        " 2,4,2,1:00:10:00,2019-01-01T00:01:00.500000,00:06:00,0, 10",
        names="JobID,NNodes,NCPUS,Timelimit,Submit,Elapsed,NGPUS, RabbitGiB",
    )
    assert found.jobs == (
        TraceJob(0.0, 360.0, 16, 600.0),
        TraceJob(60.5, 360.0, 4, 87000.0),
    )
    exact = "JobID,NNodes,NCPUS,Timelimit,Submit,Elapsed,t_submit,elapsed_s"
    found = read("1,1,16,00:10:00,x,y,1546300800.25,6.125", names=exact)
    assert (found.started, found.jobs[0].run_time) == (1546300800.25, 6.125)
