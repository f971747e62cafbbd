# SPDX-License-Identifier: MIT
"""What is read of Flux's housekeeping, by a job manager that answers as Flux does."""

from __future__ import annotations

import errno
import json
from collections.abc import Mapping
from typing import Any

import pytest

from burst.errors import Unreadable
from burst.flux.housekeeping import Cleaned, Housekeeping
from burst.flux.rpc import RpcClient
from burst.model.jobid import JobId, format_f58
from burst.model.lead import JobState, JobView
from burst.model.shape import Shape
from tests.builders import identity, job, view
from tests.flux.fake_handle import FakeHandle, Fault

STATS, LOOKUP = "job-manager.stats-get", "job-info.lookup"
FIRST, SECOND = JobId(9), JobId(10)


class Manager:
    """Jobs in housekeeping, each with the ranks left, and all with `cores` a rank."""

    def __init__(self, running: Mapping[JobId, str], cores: str = "0-3") -> None:
        self.running = dict(running)
        self.cores = cores
        self.lookups: list[JobId] = []
        self.answers: dict[str, Any] = {}
        services = {STATS: self.stats, LOOKUP: self.lookup}
        self.client = RpcClient(FakeHandle(services).as_handle())
        self.housekeeping = Housekeeping()

    def stats(self, _: Any) -> Any:
        found = {
            format_f58(job): {
                "pending": ranks,
                "allocated": ranks,
                "t_start": 5.0 + job,
            }
            for job, ranks in self.running.items()
        }
        return self.answers.get(STATS, {"housekeeping": {"running": found}})

    def lookup(self, asked: Any) -> Any:
        self.lookups.append(asked["id"])
        lite = [{"rank": "2-4", "children": {"core": self.cores}}]
        text = json.dumps({"version": 1, "execution": {"R_lite": lite}})
        return self.answers.get(LOOKUP, {"id": asked["id"], "R": text})

    def has_just_ended(self) -> bool:
        return self.housekeeping.has_just_ended

    def read(self, **seen: Any) -> Mapping[int, float]:
        return self.clean(**seen).housekeeping

    def clean(self, *jobs: JobView, **seen: Any) -> Cleaned:
        known = {job.id: job for job in jobs}
        return self.housekeeping.read(self.client, view(**seen), identity(), known)


def test_ranks_that_it_has_alone_and_since_when() -> None:
    manager = Manager({FIRST: "2-3"})
    assert manager.read(busy=(2, 3, 4)) == {2: 14.0, 3: 14.0}
    assert manager.read(busy=(3, 4)) == {3: 14.0}
    assert manager.lookups == [FIRST]  # once
    assert not manager.has_just_ended()
    manager.running = {}
    assert manager.read(busy=(3, 4)) == {}
    # What was read before may be out of date, and is no more once it is read again.
    assert manager.has_just_ended()
    assert manager.read(busy=(3, 4)) == {}
    assert not manager.has_just_ended()


def test_a_rank_that_a_job_shares_with_it_is_left_out() -> None:
    manager = Manager({FIRST: "2"}, cores="0")
    free = {2: Shape(2, 1)}
    assert manager.read(allocated=frozenset({2}), free=free) == {}
    manager.running[SECOND] = "2"
    assert manager.read(allocated=frozenset({2}), free=free) == {2: 14.0}


def after_it(number: JobId, state: JobState = JobState.CLEANUP) -> JobView:
    """Return a job with an epilog, of all cores of the ranks 2 and 3."""
    epilogs = {"job-manager.epilog": 20.0}
    ranks = frozenset({2, 3})
    view: JobView = job(number, None, state=state, ranks=ranks, epilogs=epilogs)
    return view


def test_ranks_that_an_epilog_has_alone() -> None:
    manager = Manager({FIRST: "4"})
    found = manager.clean(after_it(SECOND), busy=(2, 3, 4))
    assert found.epilogs == {2: 20.0, 3: 20.0}
    assert found.housekeeping == {4: 14.0}
    # One that began while its job runs is none of these.
    found = manager.clean(after_it(SECOND, JobState.RUN), busy=(2, 3, 4))
    assert found.epilogs == {}


def test_a_rank_that_a_job_shares_with_an_epilog_is_left_out() -> None:
    manager = Manager({}, cores="0")
    free = {2: Shape(2, 1)}
    seen = {"allocated": frozenset({2}), "free": free}
    assert manager.clean(after_it(SECOND), **seen).epilogs == {}


def test_a_job_whose_resources_cannot_be_read_counts_as_one() -> None:
    for answer in (Fault(errno.ENOENT), {"R": "{"}, {}):
        manager = Manager({FIRST: "2"})
        manager.answers[LOOKUP] = answer
        assert manager.read(busy=(2,)) == {}


def test_what_is_not_answered_is_unreadable() -> None:
    for topic in (STATS, LOOKUP):
        manager = Manager({FIRST: "2"})
        manager.answers[topic] = Fault(errno.ENOSYS)
        with pytest.raises(Unreadable):
            manager.read(busy=(2,))


@pytest.mark.parametrize("answer", [{}, {"housekeeping": {"running": {"f9": {}}}}])
def test_statistics_of_another_form_are_unreadable(answer: Any) -> None:
    manager = Manager({})
    manager.answers[STATS] = answer
    with pytest.raises(Unreadable, match="statistics cannot be read"):
        manager.read()
