# SPDX-License-Identifier: MIT
"""`burst ensemble agent` beside an embedded instance, and a daemon at another."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.cli_harness import CliHarness
from tests.embedded_instance import embedded_instance
from tests.support.agent_story import (
    AgentStory,
    runs_its_jobs_and_ends,
)


@pytest.fixture
def story(cli: CliHarness, tmp_path: Path) -> Iterator[AgentStory]:
    with embedded_instance() as member:
        yield AgentStory(cli, member.uri, tmp_path)


def test_an_agent_runs_the_jobs_of_its_member_and_ends(story: AgentStory) -> None:
    runs_its_jobs_and_ends(story)


def test_an_agent_ends_with_its_instance(cli: CliHarness, tmp_path: Path) -> None:
    with embedded_instance() as member, cli.daemon():
        story = AgentStory(cli, member.uri, tmp_path)
        with story.agent("--gone", "1s") as agent:
            agent.says("agent of sweep/md beside")
            member.kill()
            assert agent.ends() == 0
            assert "the instance is gone for 1s" in agent.log
