# SPDX-License-Identifier: MIT
"""`burst ensemble agent` beside one real Flux instance, and a daemon at another."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.flux.site import Site
from tests.flux_pool import FluxPool
from tests.support.agent_story import AgentStory, loses_and_doubles_nothing

pytestmark = pytest.mark.flux


@pytest.fixture
def story(flux_pool: FluxPool, site: Site, tmp_path: Path) -> Iterator[AgentStory]:
    with flux_pool.lend() as member:
        yield AgentStory(site.cli, member.uri, tmp_path)


def test_no_job_is_lost_or_run_twice_whoever_is_killed(story: AgentStory) -> None:
    loses_and_doubles_nothing(story)
