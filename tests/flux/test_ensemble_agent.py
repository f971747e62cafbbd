# SPDX-License-Identifier: MIT
"""`burst ensemble agent` beside one real Flux instance, and a daemon at another."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.flux.site import Site
from tests.flux_pool import FluxPool
from tests.support.agent_story import (
    AgentStory,
    loses_and_doubles_nothing,
)
from tests.support.waiting import wait_until

pytestmark = pytest.mark.flux


@pytest.fixture
def story(flux_pool: FluxPool, site: Site, tmp_path: Path) -> Iterator[AgentStory]:
    with flux_pool.lend() as member:
        yield AgentStory(site.cli, member.uri, tmp_path)


def test_no_job_is_lost_or_run_twice_whoever_is_killed(story: AgentStory) -> None:
    loses_and_doubles_nothing(story)


def test_jobs_that_others_submit_are_told_too(story: AgentStory, site: Site) -> None:
    with story.cli.daemon(), story.agent():
        story.up(command="true", count=1, target=50)
        story.wait_for_runs(1)
        site.flux("submit", "--cc=1-3", "sleep", "600", FLUX_URI=story.member)

        def three() -> bool:
            seen = story.md
            runs = seen.get("queue", {}).get("run", 0)
            return bool(runs) and sum(seen["waiting"].values()) + runs == 3

        wait_until(three, lambda: f"three jobs: {story.md}")
        assert story.tally()["finished"] == 1
        site.flux("cancel", "--all", FLUX_URI=story.member)
