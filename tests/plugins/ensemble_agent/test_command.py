# SPDX-License-Identifier: MIT
"""`burst ensemble agent` beside an embedded instance, and a daemon at another."""

from __future__ import annotations

from pathlib import Path

from tests.cli.cli_harness import CliHarness
from tests.embedded_instance import embedded_instance
from tests.support.agent_story import AgentStory


def test_an_agent_ends_with_its_instance(cli: CliHarness, tmp_path: Path) -> None:
    with embedded_instance() as member, cli.daemon():
        story = AgentStory(cli, member.uri, tmp_path)
        with story.agent("--gone", "1s") as agent:
            agent.says("agent of sweep/md beside")
            member.kill()
            assert agent.ends() == 0
            assert "the instance has been gone for 1s" in agent.log
