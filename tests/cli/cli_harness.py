# SPDX-License-Identifier: MIT
"""A lead, settings, and a person who types commands: what tests of the CLI share.

    with open_harness(instance) as cli, cli.daemon():
        assert cli.run("status").stdout

Commands run in this process, daemons as processes of their own. Followers, daemons and
files are gone after the block, however it ends.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Protocol

import click
import msgspec
import tomli_w
from burst_local.provider import LocalProvider, LocalSettings
from click.testing import CliRunner

from burst.cli import group
from burst.config import convert
from burst.errors import BurstError
from burst.lead import Lead
from burst.model.burst import BurstId
from burst.provider import BurstSpec
from tests.builders import split_constants
from tests.contract.instance import BURST_SHAPE
from tests.support.forked import Forked
from tests.support.reaping import reap_until_gone
from tests.support.waiting import HANG_S, wait_until

BURST = str(Path(sys.executable).with_name("burst"))
# Bursts stay until they are taken down, however long they take to join, and the daemon
# is quick.
TABLES: dict[str, Any] = {
    "daemon": {"cadence": "1s"},
    "deadlines": {"idle": "1h", "join": "1h"},
}


class InstanceUnderTest(Protocol):
    """What is needed of an instance under test."""

    uri: str
    directory: Path

    def lead(self) -> Lead:
        """Return a new client of the owner."""
        ...


class CommandResult(msgspec.Struct, frozen=True):
    """What a command printed, and its exit status."""

    status: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        """What it printed as JSON."""
        assert self.status == 0, self.stderr
        return json.loads(self.stdout)

    @property
    def lines(self) -> list[str]:
        """What it printed, if it succeeded."""
        assert self.status == 0, self.stderr
        return self.stdout.splitlines()

    @property
    def error(self) -> str:
        """Its one line of error, if it failed as errors do that people are to read."""
        assert self.status == 1, (self.status, self.stdout, self.stderr)
        assert self.stderr.startswith("burst: ERROR: "), self.stderr
        return self.stderr.removeprefix("burst: ERROR: ").rstrip()


def burst(*words: str) -> CommandResult:
    """Run a command as `burst` does, in this process."""
    return invoke(group, "burst", *words)


def invoke(program: click.Command, name: str, *words: str) -> CommandResult:
    """Run a program of ours in this process, which shows errors under its name."""
    result = CliRunner().invoke(program, words)
    error = result.exception
    if isinstance(error, BurstError):
        # As burst.cli.main has it, which a daemon of these tests shows by a process.
        return CommandResult(
            1, result.stdout, f"{result.stderr}{name}: ERROR: {error}\n"
        )
    if error is not None and not isinstance(error, SystemExit):
        raise error
    return CommandResult(result.exit_code, result.stdout, result.stderr)


class DaemonProcess:
    """`burst daemon` or another command that serves, and what it logged."""

    def __init__(
        self,
        cli: CliHarness,
        *options: str,
        words: Sequence[str] = ("daemon",),
        env: Mapping[str, str] | None = None,
    ) -> None:
        """With `env`, it finds the settings and the lead by its environment."""
        self._path = cli.directory / f"{words[0]}-{time.monotonic_ns()}.log"
        program = [BURST, *words]
        if words == ("daemon",) and json.loads(cli.constants.read_text()):
            module = "tests.support.daemon_with_constants"
            program = ["-m", module, str(cli.constants)]
        about = [] if env else ["-c", str(cli.config), "--uri", cli.uri]
        command = [*program, *about, *options]
        log = str(self._path)
        files = ("/dev/null", log, log)
        self.process = Forked(command, files, env or os.environ, os.getcwd())

    def __enter__(self) -> DaemonProcess:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.end()

    @property
    def log(self) -> str:
        """All that it has said."""
        return self._path.read_text(errors="replace")

    def says(self, text: str, times: int = 1) -> None:
        """Wait until it has said that. Fails at once if it has ended without it."""

        def said() -> bool:
            ended = self.process.poll() is not None
            found = self.log.count(text) >= times
            assert found or not ended, f"it has ended without {text!r}: {self.log}"
            return found

        wait_until(said, lambda: f"{text!r} in {self.log}")

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """End it and return its exit status."""
        self.process.send_signal(number)
        return self.wait()

    def wait(self) -> int:
        """Return its exit status once it has ended."""
        try:
            return self.process.wait(HANG_S)
        except subprocess.TimeoutExpired as error:
            raise AssertionError(f"it does not end: {self.log}") from error
        finally:
            self.process.kill()
            self.process.wait()


class CliHarness:
    """Types commands about one lead."""

    def __init__(self, instance: InstanceUnderTest, directory: Path) -> None:
        self.instance = instance
        self.uri = instance.uri
        self.directory = directory
        self.config = directory / "burst.toml"
        self.constants = directory / "constants.json"
        self.write()

    def write(self, **tables: Any) -> None:
        """Write the settings: the usual ones, and these.

        Constants that no file has may be given, too, for daemons that start with some.
        """
        usual = {**TABLES, "providers": {"local": {"type": "local", **self.options}}}
        for name, table in tables.items():
            whole = name == "providers" or isinstance(table, list)
            usual[name] = table if whole else usual.get(name, {}) | table
        left, constants = split_constants(usual)
        self.config.write_text(tomli_w.dumps(left))
        self.constants.write_text(json.dumps(constants))

    @property
    def home(self) -> Path:
        """Where the local provider keeps its followers' directories."""
        return self.directory / "p"

    @property
    def options(self) -> dict[str, Any]:
        """Of the local provider."""
        sold = {"cores": 4, "gpus": 1, "max_nodes": 8}
        return {"dir": str(self.home), **sold}

    def run(self, *words: str) -> CommandResult:
        """Run a command with these settings, about this lead."""
        uri = () if "--uri" in words else ("--uri", self.uri)
        return burst(*words, "-c", str(self.config), *uri)

    def status(self) -> Any:
        """Return what `burst status -a` knows."""
        return self.run("status", "-a", "--json").json

    def is_known(self) -> bool:
        """Tell whether the daemon has read the lead, and what providers offer."""
        found = self.status()
        offered = all(provider["offers"] for provider in found["providers"])
        return offered and not found["lead"]["trouble"]

    def row(self, burst_id: str) -> Any:
        """Return a burst's row of the status."""
        return next(row for row in self.status()["bursts"] if row["id"] == burst_id)

    def wait_for_state(self, burst_id: str, state: str) -> None:
        """Wait until a burst is in a state."""
        wait_until(
            lambda: self.row(burst_id)["state"] == state,
            lambda: f"{burst_id} to be {state}: {self.row(burst_id)}",
        )

    @contextmanager
    def daemon(self, *options: str) -> Iterator[DaemonProcess]:
        """Yield a daemon that serves; end it in any case."""
        with DaemonProcess(self, *options) as daemon:
            daemon.says(" serves ")
            wait_until(self.is_known, "the first tick")
            yield daemon

    def provider(self) -> LocalProvider:
        """Return the provider as a daemon has it."""
        with closing(self.instance.lead()) as lead:
            owner = lead.identity().owner
        settings = convert(LocalSettings, self.options, "cli")
        return LocalProvider("local", settings, owner)

    def make_orphan(self) -> BurstId:
        """Make what bears the tag of this lead, and no record explains."""
        with closing(self.instance.lead()) as lead:
            identity = lead.identity()
        spec = BurstSpec(
            burst_id=BurstId("burst-1-0rphan"),
            owner=identity.owner,
            offer="local",
            hosts=("burst-1-0",),
            ranks=(6,),
            shape=BURST_SHAPE,
            lead=identity,
        )
        self.provider().provision(spec)
        return spec.burst_id

    def reap_all(self, provider: LocalProvider) -> None:
        """Leave no follower."""
        for status in provider.observe():
            reap_until_gone(provider, status.burst_id)


@contextmanager
def open_harness(instance: InstanceUnderTest) -> Iterator[CliHarness]:
    """Yield a cli with settings that go with the instance."""
    directory = instance.directory / "cli"
    directory.mkdir()
    cli = CliHarness(instance, directory)
    provider = cli.provider()
    try:
        yield cli
    finally:
        cli.reap_all(provider)
