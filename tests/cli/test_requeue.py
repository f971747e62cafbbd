# SPDX-License-Identifier: MIT
"""A job whose follower is killed is run again, once, though the daemon is killed."""

from __future__ import annotations

import os
import signal
import time
from contextlib import closing

import msgspec
from burst_local.processes import scan

from burst.core.repeats import ASK_AGAIN_S
from burst.model.jobid import JobId, format_f58, parse_jobid
from burst.model.lead import JobState
from burst.model.repeat import Repeat
from tests.cli.cli_harness import CliHarness
from tests.embedded_instance import EmbeddedInstance
from tests.support.waiting import wait_until


def submit(instance: EmbeddedInstance) -> JobId:
    """Submit a job that runs on lent nodes until a file is made."""
    program = f"while [ ! -e {instance.directory}/go ]; do sleep 0.05; done"
    lent = {"constraints": {"properties": ["burst"]}, "burst": {"requeue": True}}
    return instance.submit(nodes=1, command=("sh", "-c", program), attributes=lent)


def wait_until_it_runs(instance: EmbeddedInstance, job: JobId) -> None:
    wait_until(lambda: instance.info(job).state is JobState.RUN, "the job to run")


def lose_its_node(instance: EmbeddedInstance, job: JobId) -> None:
    """Kill the follower on which a job runs; return once Flux has ended the job."""
    (rank,) = instance.info(job).ran_on
    with closing(instance.lead()) as lead:
        known = lead.identity()
    its = {"BURST_OWNER": known.owner, "BURST_HOST": known.hosts[rank]}
    for process in scan().values():
        if process.pid == process.session and its.items() <= process.environ.items():
            os.kill(process.pid, signal.SIGKILL)
    wait_until(lambda: instance.info(job).state is JobState.INACTIVE, "its end")


def second_job(cli: CliHarness, job: JobId) -> JobId:
    """Return the job that `burst explain` names, once there is one."""

    def told() -> str:
        again: str = cli.run("explain", format_f58(job), "--json").json["again"]
        return again

    wait_until(lambda: "submitted again as" in told(), told)
    return parse_jobid(told().rpartition(" ")[2])


def forget_the_answer(instance: EmbeddedInstance, job: JobId) -> None:
    """Leave what is on record when a daemon is killed as it submits the job."""
    intent = Repeat(losses=1, urgency=16, since=time.time() - ASK_AGAIN_S)
    with closing(instance.lead()) as lead:
        lead.store().write({f"repeat/{job}": msgspec.json.encode(intent).decode()})


def repeats_of(instance: EmbeddedInstance, job: JobId) -> list[JobId]:
    """Return the jobs that the lead has in place of one."""
    with closing(instance.lead()) as lead:
        lead.listen(lambda: None)
        jobs = lead.observe().jobs.values()
    name = format_f58(job)
    return [each.id for each in jobs if each.preferences.repeats == name]


def test_it_runs_again_on_other_nodes_and_its_user_is_told(
    cli: CliHarness, instance: EmbeddedInstance
) -> None:
    with cli.daemon():
        job = submit(instance)
        wait_until_it_runs(instance, job)
        lose_its_node(instance, job)
        second = second_job(cli, job)
        wait_until_it_runs(instance, second)
        story = cli.run("explain", format_f58(job)).stdout
        assert f"it was submitted again as {format_f58(second)}" in story
        assert repeats_of(instance, job) == [second]
        (instance.directory / "go").touch()
        wait_until(lambda: instance.info(second).state is JobState.INACTIVE, "its end")
        assert instance.info(second).result == "completed"


def test_a_daemon_that_is_killed_as_it_submits_makes_one_job(
    cli: CliHarness, instance: EmbeddedInstance
) -> None:
    with cli.daemon() as daemon:
        job = submit(instance)
        wait_until_it_runs(instance, job)
        daemon.end(signal.SIGKILL)
    lose_its_node(instance, job)
    # Before the lead had the second job.
    forget_the_answer(instance, job)
    with cli.daemon() as daemon:
        second = second_job(cli, job)
        daemon.end(signal.SIGKILL)
    # After that, and before its id was on record.
    forget_the_answer(instance, job)
    with cli.daemon():
        assert second_job(cli, job) == second
        wait_until_it_runs(instance, second)
        assert repeats_of(instance, job) == [second]
        (instance.directory / "go").touch()
        wait_until(lambda: instance.info(second).state is JobState.INACTIVE, "its end")
        assert instance.info(second).result == "completed"
