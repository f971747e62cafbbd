# SPDX-License-Identifier: MIT
"""What is said of a burst whose job the other instance does not list."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from burst_flux.states import SETTLES_S

from burst.errors import NotFound
from burst.provider import Phase
from tests.plugins.flux.flux_program import Other, job


@pytest.fixture
def other(tmp_path: Path) -> Other:
    return Other(tmp_path)


def test_a_job_that_is_not_listed_for_a_moment_is_not_lost(other: Other) -> None:
    """The module job-list may not have learned of it."""
    now = [time.time()]
    provider, burst = other.provider(lambda: now[0]), other.spec.burst_id
    provider.provision(other.spec)
    for _ in range(2):
        [status] = provider.observe()
        assert status.phase is Phase.PENDING
        assert status.why.startswith("its job is not listed there, and how it ended")
        provider.reap(burst)
        now[0] += SETTLES_S - 1
        other.flux.jobs(job(other.name, "SCHED", t_submit=now[0]))
        [status] = provider.observe()
        assert status.why == "Flux job f1 waits for nodes"
        other.flux.jobs()
    assert other.flux.calls("cancel") == []


def test_a_job_that_is_forgotten_is_not_submitted_again(other: Other) -> None:
    now = [time.time()]
    provider = other.provider(lambda: now[0])
    for _ in range(2):
        provider.provision(other.spec)
    assert len(other.flux.calls("submit")) == len(other.flux.calls("resource")) == 1
    provider.observe()
    now[0] += SETTLES_S
    [status] = provider.observe()
    assert (status.phase, status.why) == (
        Phase.FAILED,
        "its job is not known there any more",
    )
    with pytest.raises(NotFound):
        provider.reap(other.spec.burst_id)


def test_a_job_that_ends_is_not_gone_before_it_is_over(other: Other) -> None:
    """It is in the second of two lists, and its tasks may still run."""
    provider, burst = other.provider(), other.spec.burst_id
    provider.provision(other.spec)
    ends = job(other.name, "CLEANUP")
    other.flux.jobs(ended=[ends])
    assert provider.observe()[0].phase is Phase.PENDING
    provider.reap(burst)
    assert provider.observe()[0].phase is Phase.PENDING
    other.flux.jobs(ended=[{**ends, "state": "INACTIVE"}])
    with pytest.raises(NotFound):
        provider.reap(burst)
