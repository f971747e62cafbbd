# SPDX-License-Identifier: MIT
"""A daemon at one lead, and an agent beside another instance: real processes."""

from __future__ import annotations

import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.cli.cli_harness import BURST, CliHarness
from tests.support.ensemble_story import ensemble
from tests.support.ports import free_port
from tests.support.waiting import HANG_S, wait_until

TOKEN = "0123456789abcdef0123456789abcdef"
FILE = """
name = "sweep"
checkSeconds = "0.3s"

[[members]]
name = "md"
mode = "external"
jobs = [{{ name = "step", command = "{command}", count = {count} }}]

[[members.algorithm]]
name = "more-jobs"

[[members.algorithm]]
name = "stop"
# What a test does between two jobs may take longer than an idle member is kept.
options = {{ successTarget = {count}, disableTermination = "yes" }}
"""


class AgentProcess:
    """`burst ensemble agent`, and what it logged."""

    def __init__(self, story: AgentStory, *options: str) -> None:
        self._path = story.directory / f"agent-{time.monotonic_ns()}.log"
        command = [BURST, "ensemble", "agent", "sweep/md", "--uri", story.member]
        command += ["--daemon", f"http://127.0.0.1:{story.port}"]
        command += ["--token-file", str(story.token), *options]
        with self._path.open("wb") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    @property
    def log(self) -> str:
        return self._path.read_text(errors="replace")

    def says(self, text: str) -> None:
        wait_until(lambda: text in self.log, lambda: f"{text!r} in {self.log}")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def ends(self) -> int:
        return self.process.wait(HANG_S)


class AgentStory:
    """What a test does with them."""

    def __init__(self, cli: CliHarness, member: str, directory: Path) -> None:
        self.cli, self.member, self.directory = cli, member, directory
        self.port = free_port()
        self.token = directory / "token"
        self.ran = directory / "ran"
        self.ran.touch()
        self.token.write_text(TOKEN)
        self.token.chmod(0o600)
        cli.write(
            http={"listen": f"127.0.0.1:{self.port}", "token_file": str(self.token)},
        )

    def up(self, command: str = "", count: int = 6) -> None:
        script = self.directory / "job.sh"
        script.write_text(f"#!/bin/sh\n{command}\necho $FLUX_JOB_ID >> {self.ran}\n")
        script.chmod(0o700)
        file = self.directory / "sweep.toml"
        file.write_text(FILE.format(command=script, count=count))
        lines = self.cli.run("ensemble", "check", str(file)).lines
        assert "its own" in lines[2]
        assert self.cli.run("ensemble", "up", str(file)).status == 0

    @contextmanager
    def agent(self, *options: str) -> Iterator[AgentProcess]:
        agent = AgentProcess(self, *options)
        try:
            yield agent
        finally:
            agent.kill()

    @property
    def row(self) -> Any:
        return ensemble(self.cli)

    @property
    def md(self) -> Any:
        return self.row["members"]["md"]

    def wait_for_runs(self, count: int) -> None:
        wait_until(
            lambda: self.runs() >= count,
            lambda: f"{count} runs: {self.runs()} {self.row}",
        )

    def runs(self) -> int:
        return len(self.ran.read_text().splitlines())

    def wait_for_end(self) -> None:
        wait_until(
            lambda: self.row["state"] == "ended",
            lambda: f"its end: {self.row}",
        )

    def each_ran_once(self, count: int) -> None:
        found = Counter(self.ran.read_text().split())
        assert self.runs() == count
        assert found.total() == len(found) == count


def loses_and_doubles_nothing(story: AgentStory) -> None:
    """Daemon and agent are killed in turn, at whatever moment comes."""
    with story.cli.daemon() as first:
        story.up(command="sleep 0.3", count=12)
        with story.agent() as agent:
            story.wait_for_runs(1)
            agent.kill()
        first.process.kill()
        first.process.wait()
    with story.cli.daemon() as second, story.agent() as agent:
        story.wait_for_runs(4)
        second.process.kill()
        second.process.wait()
        agent.says("cannot be reached")
        with story.cli.daemon():
            story.wait_for_runs(6)
            agent.kill()
            with story.agent() as last:
                story.wait_for_end()
                assert last.ends() == 0
                story.each_ran_once(12)
                tally = story.row["members"]["md"]["member"]
                assert "12 jobs have succeeded" in tally["why"]
