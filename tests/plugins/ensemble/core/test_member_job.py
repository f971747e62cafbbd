# SPDX-License-Identifier: MIT
"""The jobs of an ensemble's file as jobspecs."""

from __future__ import annotations

from typing import Any

from burst_ensemble.config.spec import EnsembleSpec
from burst_ensemble.core.intents import JobRef
from burst_ensemble.core.member_job import MemberNodes, job_name, make_job
from burst_ensemble.core.record import EnsembleStart

from burst.config.convert import convert
from burst.lead import NewJob
from burst.model.request import (
    ResourceRequest,
    is_burstable,
    parse_attributes,
    parse_duration,
    parse_preferences,
    parse_request,
)
from burst.model.shape import Shape

SHAPE = Shape(8)
JOB: dict[str, Any] = {"name": "md", "command": "lmp -in 'my file'", "count": 0}


def spec(job: dict[str, Any], **tables: Any) -> EnsembleSpec:
    found = {
        "name": "sweep",
        "members": [{"name": "a", "provider": "local", "jobs": [{**JOB, **job}]}],
        **tables,
    }
    return convert(EnsembleSpec, found, "test")


def made(number: int = 0, **job: Any) -> NewJob:
    ensemble = spec(job, directory="/data/run")
    start = EnsembleStart(
        spec=ensemble,
        userid=1000,
        environment={"HOME": "/home/u"},
        slots={"a": ("burst-0-0", "burst-0-1")},
    )
    assert start.spec == ensemble
    ref = JobRef("md", number)
    name = job_name(ensemble, "a", ref, 255.9)
    return make_job(start, "a", ref, name, MemberNodes(SHAPE, start.slots["a"]))


def request(job: NewJob) -> ResourceRequest:
    return parse_request(job.jobspec)


def system(job: NewJob) -> dict[str, Any]:
    found: dict[str, Any] = job.jobspec["attributes"]["system"]
    return found


def test_a_job_is_held_and_for_nodes_of_its_member() -> None:
    job = made(duration="90s")
    assert job.urgency == 0
    assert is_burstable(job.jobspec)
    preferences = parse_preferences(job.jobspec)
    assert (preferences.tag, preferences.urgency) == ("sweep/a", 16)
    assert parse_duration(job.jobspec) == 90.0
    assert parse_attributes(job.jobspec)["burst_group"] == "md"
    assert system(job)["constraints"] == {"hostlist": ["burst-0-[0-1]"]}
    assert system(job)["environment"] == {"HOME": "/home/u"}
    assert system(job)["cwd"] == "/data/run"
    assert system(job)["job"] == {"name": "sweep/a/md/0-ff"}
    assert job.jobspec["tasks"][0]["command"] == ["lmp", "-in", "my file"]
    assert request(job).exclusive


def test_tasks_and_cores() -> None:
    assert (request(made(nodes=2)).slots, request(made(nodes=2)).cores_per_slot) == (
        2,
        1,
    )
    spread = request(made(nodes=2, tasks=8))
    assert (spread.slots, spread.cores_per_slot) == (8, 2)
    given = request(made(nodes=1, tasks=2, cores=3))
    assert (given.slots, given.cores_per_slot) == (2, 3)
    assert request(made(tasks=16)).cores_per_slot == 1


def test_lines_of_a_batch_and_jobs_that_are_shared() -> None:
    batch: dict[str, Any] = {"batch": "list", "commands": ["one", "two"], "command": ""}
    assert made(1, **batch).jobspec["tasks"][0]["command"] == ["two"]
    shared = spec({}, jobs=[{"name": "all", "command": "run"}])
    ref = JobRef("all", 3, shared=True)
    assert job_name(shared, "a", ref, 16.0) == "sweep/all/3-10"
    alike = JobRef("a.all", 3, shared=True), JobRef("all", 3)
    names = [job_name(shared, "a", each, 16.0) for each in alike]
    assert len(set(names)) == 2
    start = EnsembleStart(spec=shared, userid=1)
    job = make_job(start, "a", ref, "x", MemberNodes(SHAPE))
    assert job.jobspec["tasks"][0]["command"] == ["run"]
    assert system(job)["cwd"] == "/"
    assert "constraints" not in system(job), "it names no hosts"
