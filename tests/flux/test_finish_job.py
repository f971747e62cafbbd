# SPDX-License-Identifier: MIT
"""A held job is given the result of a run elsewhere, as real Flux takes it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from burst.lead import Lead
from burst.model.jobid import JobId, format_f58
from burst.model.lead import JobState
from tests.cli.cli_harness import open_harness
from tests.flux_instance import FLUX, FluxInstance
from tests.support.waiting import HANG_S, wait_until

pytestmark = pytest.mark.flux

PROLOG = {"description": "burst-isolated"}


@pytest.fixture
def lead(instance: FluxInstance) -> Iterator[Lead]:
    with listening(instance) as found:
        yield found


def listening(instance: FluxInstance) -> closing[Any]:
    found = instance.lead()
    found.listen(lambda: None)
    return closing(found)


def held(instance: FluxInstance, lead: Lead) -> JobId:
    job = instance.submit(nodes=3)
    wait_until(lambda: state(lead, job) is JobState.SCHED, "it waits")
    assert not lead.hold([job])
    return job


def state(lead: Lead, job: JobId) -> JobState | None:
    view = lead.observe().jobs.get(job)
    return view.state if view else None


def wait_for_end(lead: Lead, job: JobId) -> None:
    wait_until(lambda: state(lead, job) is JobState.INACTIVE, "its end")


KINDS = ("afterok", "afternotok", "afterany", "afterstart")


def depends(instance: FluxInstance, job: JobId, kind: str) -> str:
    on = [{"scheme": kind, "value": format_f58(job)}]
    attributes = {"dependencies": on}
    return format_f58(instance.submit(burstable=False, attributes=attributes))


def results(instance: FluxInstance, jobs: dict[str, str]) -> dict[str, str]:
    for job in jobs.values():
        instance.flux("job", "wait-event", "-t", f"{HANG_S:g}", job, "clean")
    return {kind: instance.job_line("{result}", job) for kind, job in jobs.items()}


def post(instance: FluxInstance, job: JobId, name: str, context: Any) -> None:
    event = {"id": job, "name": name, "context": context}
    instance.rpc("job-manager.post-event.post", event)


def test_those_that_depend_on_it_go_by_its_result(
    instance: FluxInstance, lead: Lead
) -> None:
    job = held(instance, lead)
    waiting = {kind: depends(instance, job, kind) for kind in KINDS}
    assert lead.finish_job(job, 3, "")
    expected = dict.fromkeys(KINDS, "COMPLETED") | {"afterok": "FAILED"}
    assert results(instance, waiting) == expected
    late = depends(instance, job, "afterany")
    assert results(instance, {"": late}) == {"": "COMPLETED"}


def test_who_is_attached_while_it_waits_gets_output_and_status(
    instance: FluxInstance, lead: Lead
) -> None:
    job = held(instance, lead)
    with subprocess.Popen(
        [FLUX, "job", "attach", "--show-events", format_f58(job)],
        env={**os.environ, "FLUX_URI": instance.uri},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as attached:
        assert attached.stderr is not None
        assert b"submit" in attached.stderr.readline()
        assert lead.finish_job(job, 7, "what it wrote\n")
        output, _ = attached.communicate(timeout=HANG_S)
    assert (attached.returncode, output) == (7, b"what it wrote\n")


STEPS: list[tuple[str, dict[str, Any]]] = [
    ("set-flags", {"flags": ["alloc-bypass"]}),
    ("prolog-start", PROLOG),
    ("alloc", {"bypass": True}),
    ("start", {}),
    ("finish", {"status": 0}),
    ("release", {"ranks": "all", "final": True}),
    ("free", {}),
]


def test_what_a_crash_cut_short_is_completed(
    instance: FluxInstance, lead: Lead
) -> None:
    """The lead is killed after each event of a job but the last, and started again.

    Its scheduler is as before, and one that had ended is kept.
    No dependent by afterstart: it would get its nodes at that moment. A job whose R is
    in the KVS, while its alloc is not in its eventlog yet, stops the scheduler after
    the restart (Flux 0.88: restart.c reads R, alloc.c then says "already allocated").
    """
    over = held(instance, lead)
    assert lead.finish_job(over, 0, "kept\n")
    wait_for_end(lead, over)
    instance.reload_scheduler()
    assert instance.flux("run", "echo", "runs") == "runs"
    begun = [held(instance, lead) for _ in STEPS]
    waiting = {format_f58(job): depends(instance, job, "afterok") for job in begun}
    for posted, job in enumerate(begun, 1):
        for name, context in STEPS[:posted]:
            post(instance, job, name, context)
        last = STEPS[posted - 1][0]
        instance.flux("job", "wait-event", "-t", f"{HANG_S:g}", format_f58(job), last)
    lead.store().write({"all-before": "is kept"})
    lead.close()
    instance.kill()
    instance.start()
    with listening(instance) as again:
        for job in begun:
            assert state(again, job) is not JobState.INACTIVE
            assert again.observe().jobs[job].ranks == frozenset()
            assert again.finish_job(job, 0, "")
            wait_for_end(again, job)
    assert set(results(instance, waiting).values()) == {"COMPLETED"}
    assert instance.flux("run", "echo", "runs") == "runs"
    assert instance.job_line("{result}", format_f58(over)) == "COMPLETED"
    assert instance.flux("job", "attach", format_f58(over)) == "kept"


def test_one_that_was_canceled_meanwhile_ends(
    instance: FluxInstance, lead: Lead
) -> None:
    job = held(instance, lead)
    post(instance, job, *STEPS[1])
    instance.cancel(job)
    wait_until(lambda: state(lead, job) is JobState.CLEANUP, "its prolog is running")
    assert lead.finish_job(job, 0, "")
    wait_for_end(lead, job)
    assert lead.observe().jobs[job].result == "canceled"


def test_one_that_was_released_while_it_was_begun_is_left_to_be_failed(
    instance: FluxInstance, lead: Lead
) -> None:
    """Again, if the first exception did not reach the lead; held again, it is begun."""
    jobs = [held(instance, lead) for _ in range(3)]
    for job in jobs:
        for name, context in STEPS[:2]:
            post(instance, job, name, context)
        assert not lead.release({job: 16})
        post(instance, job, "prolog-finish", {**PROLOG, "status": 0})
        assert not lead.finish_job(job, 0, "")
    failed, canceled, again = jobs
    lead.fail_job(failed, "ran elsewhere")
    instance.cancel(canceled)
    assert not lead.hold([again])
    assert lead.finish_job(again, 0, "")
    for job, result in zip(jobs, ("failed", "canceled", "completed"), strict=True):
        wait_for_end(lead, job)
        assert lead.observe().jobs[job].result == result


def test_where_jobs_have_scripts_it_is_left_to_be_failed(
    instance: FluxInstance, lead: Lead
) -> None:
    """perilog.so would ask for the ranks on which to run them."""
    for script in ("prolog", "epilog"):
        instance.reload_config({"job-manager": {script: {"command": ["true"]}}})
        job = held(instance, lead)
        assert not lead.finish_job(job, 0, "")
        assert state(lead, job) is JobState.SCHED
        lead.fail_job(job, "ran elsewhere")
        wait_for_end(lead, job)


def test_one_that_was_begun_before_there_were_scripts_ends_too(
    instance: FluxInstance, lead: Lead
) -> None:
    """As after a crash, and a reload of the configuration with a prolog."""
    job = held(instance, lead)
    for name, context in STEPS[:2]:
        post(instance, job, name, context)
    instance.reload_config({"job-manager": {"prolog": {"command": ["true"]}}})
    assert not lead.finish_job(job, 0, "")
    lead.fail_job(job, "ran elsewhere")
    wait_until(lambda: state(lead, job) is JobState.CLEANUP, "its prolog is open")
    assert lead.finish_job(job, 0, "")
    wait_for_end(lead, job)
    assert lead.observe().jobs[job].result == "failed"


def test_a_memo_that_nests_too_deeply_leaves_the_result_to_an_exception(
    instance: FluxInstance, lead: Lead
) -> None:
    job = held(instance, lead)
    memo = '{"a":' * 1500 + "1" + "}" * 1500
    instance.rpc("job-manager.memo", f'{{"id": {job}, "memo": {memo}}}')
    assert not lead.finish_job(job, 0, "")
    lead.fail_job(job, "it cannot be ended otherwise")
    wait_for_end(lead, job)
    with open_harness(instance) as cli, cli.daemon():
        assert "knows no job" in cli.run("explain", format_f58(job)).error
