# SPDX-License-Identifier: MIT
"""Intake: how fast the burstable jobs among many pending jobs are found.

A lead of its own gets pending jobs, a tenth of them burstable. One run measures three
ways on the same jobs:

* ours: `FluxLead.listen` until it returns, and one `observe`,
* raw: the same journal read to its end by Flux's own Python, keeping nothing,
* look-up: a list of the jobs, then a request for each job's information and jobspec, as
  flux-burst does at each of its polls.

    python benchmarks/intake.py [--json] [--jobs 20000]
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

from benchmarks.table import Goal, Measure, Skipped, main_of
from tests.flux_instance import FLUX, MISSING, FluxInstance, flux_bindings
from tests.flux_instance import flux_instance as started

BURSTABLE_EACH = 10
LOOKED_UP = 2000
"""How many jobs are looked up one by one; the time for all is scaled from these."""
ROUNDS = 3


def measure(jobs: int) -> list[Measure]:
    """Return all measures; those of raw and ours are the best of several rounds."""
    if not FLUX:
        raise Skipped(MISSING)
    with started() as instance:
        fill(instance, jobs)
        raw, ours = [], []
        for _ in range(ROUNDS):
            raw.append(timed(lambda: read_raw(instance, jobs)))
            ours.append(timed(lambda: read_ours(instance, jobs)))
        listing = timed(lambda: list_jobs(instance, jobs))
        sample = list_jobs(instance, jobs)[: min(LOOKED_UP, jobs)]
        one_by_one = timed(lambda: look_up(instance, sample))
    looked_up = listing + one_by_one * jobs / len(sample)
    best = min(ours)
    return [
        Measure(f"{jobs:,} pending jobs, a tenth burstable", best, "s"),
        Measure("the same journal, raw", min(raw), "s"),
        Measure(f"list, then look up; of {len(sample):,}, scaled", looked_up, "s"),
        Measure("rate against raw", min(raw) / best, "x", Goal(">=", 0.65)),
        Measure("rate against look up", looked_up / best, "x", Goal(">=", 15)),
    ]


def timed(work: Callable[[], Any]) -> float:
    """Return the seconds that some work takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def fill(instance: FluxInstance, jobs: int) -> None:
    """Submit jobs that wait for nodes that are down."""
    job = flux_bindings().job
    handle = flux_bindings().Flux(instance.uri)
    spec = job.JobspecV1.from_command(["sleep", "600"], num_tasks=4, num_nodes=4)
    spec.cwd = str(instance.directory)
    spec.environment = {}
    plain = spec.dumps()
    spec.setattr("burstable", True)
    marked = spec.dumps()
    futures = []
    for number in range(jobs):
        text = plain if number % BURSTABLE_EACH else marked
        futures.append(job.submit_async(handle, text))
        if len(futures) == 500:
            for future in futures:
                future.get_id()
            futures.clear()
    for future in futures:
        future.get_id()


def read_ours(instance: FluxInstance, jobs: int) -> None:
    """Read as the daemon does at its start."""
    with closing(instance.lead()) as lead:
        lead.listen(lambda: None)
        assert len(lead.observe().jobs) == jobs // BURSTABLE_EACH


def read_raw(instance: FluxInstance, jobs: int) -> None:
    """Read the journal's backlog with Flux's Python, and only count the entries."""
    flux = flux_bindings()
    handle = flux.Flux(instance.uri)
    streaming = flux.constants.FLUX_RPC_STREAMING
    journal = handle.rpc("job-manager.events-journal", {"full": False}, 0, streaming)
    count = 0
    while journal.get()["id"] != -1:
        count += 1
        journal.reset()
    assert count == jobs


def list_jobs(instance: FluxInstance, jobs: int) -> list[dict[str, Any]]:
    """Return the jobs from Flux's job list."""
    job = flux_bindings().job
    handle = flux_bindings().Flux(instance.uri)
    found: list[dict[str, Any]] = job.job_list(handle, max_entries=0).get_jobs()
    assert len(found) == jobs
    return found


def look_up(instance: FluxInstance, listed: list[dict[str, Any]]) -> None:
    """Ask for each job's information and jobspec."""
    job = flux_bindings().job
    handle = flux_bindings().Flux(instance.uri)
    burstable = 0
    for entry in listed:
        query = {"id": entry["id"], "attrs": ["all"]}
        answer = job.list.JobListIdRPC(handle, "job-list.list-id", query)
        answer.get_job()
        answer.get_jobinfo()
        jobspec = job.job_kvs(handle, entry["id"]).get("jobspec")
        burstable += bool(jobspec["attributes"]["system"].get("burstable"))
    assert burstable


if __name__ == "__main__":
    main_of(__doc__, measure, jobs=(20_000, "number of pending jobs"))
