# SPDX-License-Identifier: MIT
"""A provider on a batch system of which a test says what it has and answers."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
import pytest

from burst.errors import NotFound, SpecRefused, Transient
from burst.kits.job_provider import JobProvider
from burst.kits.job_tasks import NOT_SUBMITTED, JobSeen, JobTasks
from burst.kits.node_settings import NodeSettings
from burst.model.finding import Finding, ok, wrong
from burst.model.lead import LeadIdentity
from burst.model.shape import Shape
from burst.provider import BurstId, BurstSpec, BurstStatus, Phase
from burst.testing import example_lead, example_spec

NOW = 1000.0


class BatchJob(msgspec.Struct):
    number: int
    over: bool = False


class Batch(JobProvider[BatchJob]):
    """Its batch system is in memory."""

    Settings = NodeSettings
    task_rank = "BATCH_RANK"
    unanswered = "start it"

    def __init__(self, place: Path) -> None:
        settings = NodeSettings(dir=str(place / "shared"), cores=4, max_nodes=2)
        super().__init__("batch", settings, "owner", 600.0, lambda: NOW)
        self.jobs: dict[str, list[BatchJob]] = {}
        self.submitted: list[float] = []
        self.answers = True

    def list_jobs(self) -> Mapping[str, Sequence[BatchJob]]:
        return self.jobs

    def list_names(self) -> Iterable[str]:
        return [f"{self._prefix}{name}" for name in self.jobs]

    def find_job(self, burst_id: BurstId) -> str | None:
        assert self.submitted
        found = self.jobs.get(burst_id)
        return str(found[0].number) if found else None

    def submit(self, spec: BurstSpec, files: JobTasks, seconds: float) -> str:
        assert files.exist()
        self.submitted.append(seconds)
        self.jobs[spec.burst_id] = [BatchJob(7)]
        if not self.answers:
            raise Transient("no answer")
        return "7"

    def status(self, burst_id: BurstId, jobs: Sequence[BatchJob]) -> BurstStatus:
        files = self.files(burst_id)
        noted = files.submission()
        seen = NOT_SUBMITTED if noted is None else JobSeen(Phase.FAILED, noted)
        if jobs:
            seen = JobSeen(Phase.FAILED if jobs[0].over else Phase.PENDING, "seen")
        return files.status(burst_id, seen)

    def examine_jobs(self, lead: LeadIdentity | None) -> Iterator[Finding]:
        yield ok("there is a batch system")
        raise Transient("it does not answer")

    def end_jobs(self, burst_id: BurstId) -> bool:
        return bool(self.jobs.pop(burst_id, None))


@pytest.fixture
def batch(tmp_path: Path) -> Batch:
    return Batch(tmp_path)


@pytest.fixture
def spec(tmp_path: Path) -> BurstSpec:
    spec = example_spec(example_lead(tmp_path), 0, "nodes")
    return msgspec.structs.replace(spec, shape=Shape(4), owner="owner")


def test_a_burst_has_one_job_though_the_answer_was_lost(
    batch: Batch, spec: BurstSpec
) -> None:
    batch.answers = False
    with pytest.raises(Transient):
        batch.provision(spec)
    batch.provision(spec)
    [status] = batch.observe()
    assert (status.burst_id, status.phase) == (spec.burst_id, Phase.PENDING)
    # The number is known then, when the job is listed no more.
    batch.jobs.clear()
    [status] = batch.observe()
    assert (status.phase, status.why) == (Phase.FAILED, "7")
    batch.provision(spec)
    assert batch.submitted == [600.0]


def test_an_error_of_a_check_is_the_last_finding(batch: Batch) -> None:
    *_, first, last = batch.examine(None)
    assert first == ok("there is a batch system")
    assert last == wrong("it does not answer", "start it")


def test_files_go_once_no_job_lives(batch: Batch, spec: BurstSpec) -> None:
    batch.provision(spec)
    [owned] = batch.list_all()
    assert owned.burst_id == spec.burst_id
    batch.reap(spec.burst_id)
    assert batch.files(spec.burst_id).exist()
    with pytest.raises(NotFound):
        batch.reap(spec.burst_id)
    assert not batch.files(spec.burst_id).exist()
    assert batch.observe() == []


def test_a_job_without_files_is_seen_while_it_lives(batch: Batch) -> None:
    batch.jobs = {
        "burst-9-abcdef": [BatchJob(8)],
        "burst-9-aaaaaa": [BatchJob(9, True)],
    }
    [status] = batch.observe()
    assert (status.burst_id, status.why) == ("burst-9-abcdef", "seen")


def test_a_lease_that_has_ended_has_no_job_and_no_files(
    batch: Batch, spec: BurstSpec
) -> None:
    with pytest.raises(SpecRefused):
        batch.provision(msgspec.structs.replace(spec, lease_end=NOW))
    assert batch.submitted == []
    assert batch.observe() == []
