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
    stops_cleanly,
)
from tests.support.waiting import wait_until


@pytest.fixture
def story(cli: CliHarness, tmp_path: Path) -> Iterator[AgentStory]:
    with embedded_instance() as member:
        yield AgentStory(cli, member.uri, tmp_path)


def test_an_agent_runs_the_jobs_of_its_member_and_ends(story: AgentStory) -> None:
    runs_its_jobs_and_ends(story)


def test_an_agent_that_is_silent_makes_its_member_unreadable(
    cli: CliHarness, tmp_path: Path
) -> None:
    with embedded_instance() as member:
        silent_and_back(AgentStory(cli, member.uri, tmp_path, silence="2s"))


def silent_and_back(story: AgentStory) -> None:
    with story.cli.daemon() as daemon:
        story.up(command="sleep 1", count=100)
        assert "has not reported" in story.md["member"]["waits_for"]
        with story.agent() as agent:
            story.wait_for_runs(1)
            wait_until(
                lambda: not story.md["member"]["silent"],
                lambda: f"a report: {story.md}",
            )
            stops_cleanly(agent)
        wait_until(lambda: story.md["member"]["silent"], lambda: f"silence: {story.md}")
        assert "its agent is silent since" in story.md["member"]["waits_for"]
        assert "unreadable" in "\n".join(story.cli.run("ensemble", "status").lines)
        daemon.says("the agent of md is silent since")
        with story.agent():
            daemon.says("the agent of md reports again")
            said = story.cli.run("ensemble", "resize", "sweep", "md", "2").error
            assert "instance of its own" in said
            story.cli.run("ensemble", "down", "sweep")


def test_the_end_cancels_what_waits(story: AgentStory) -> None:
    with story.cli.daemon(), story.agent() as agent:
        story.up(command="sleep 1", count=50)
        story.wait_for_runs(1)
        assert story.cli.run("ensemble", "down", "sweep").status == 0
        assert agent.ends() == 0
        assert "sweep/md has ended: ended by hand" in agent.log
        assert story.runs() < 50


def test_a_wrong_token_is_refused_and_tried_again(
    story: AgentStory, tmp_path: Path
) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_text("f" * 32)
    wrong.chmod(0o600)
    with story.cli.daemon():
        story.up(count=1)
        with story.agent("--token-file", str(wrong)) as agent:
            agent.says("did not take the report (401): the token is missing or wrong")
            assert "has not reported" in story.md["member"]["waits_for"]
            wrong.write_bytes(story.token.read_bytes())
            story.wait_for_end()
            assert agent.ends() == 0


def test_there_is_one_agent(story: AgentStory) -> None:
    with story.cli.daemon():
        story.up(command="sleep 1", count=100)
        with story.agent() as first:
            first.says("agent of sweep/md beside")
            with story.agent() as second:
                second.says("tries again")
                assert "submitted" not in second.log
            stops_cleanly(first)


def test_an_agent_without_an_instance_ends(story: AgentStory, tmp_path: Path) -> None:
    with story.agent("--uri", f"embedded://{tmp_path}/none", "--start", "1s") as agent:
        assert agent.ends() == 1
        assert "no instance answered within 1s" in agent.log


def test_an_agent_ends_with_its_instance(cli: CliHarness, tmp_path: Path) -> None:
    with embedded_instance() as member, cli.daemon():
        story = AgentStory(cli, member.uri, tmp_path)
        with story.agent("--gone", "1s") as agent:
            agent.says("agent of sweep/md beside")
            member.kill()
            assert agent.ends() == 0
            assert "the instance is gone for 1s" in agent.log
