# SPDX-License-Identifier: MIT
"""An instance that knows nothing of bursts, and a user of it who does."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import tomli_w

from tests.cli.cli_harness import BURST, CommandResult
from tests.flux_instance import FLUX
from tests.support.fluxlead import broker_environment
from tests.support.forked import run_program
from tests.support.marked import kill_all_with, pids_with
from tests.support.waiting import HANG_S, wait_until

SETTINGS = {
    "daemon": {"cadence": "1s"},
    "deadlines": {"reap": "10m", "join": "1h"},
}


class Parent:
    """An instance of two brokers that knows nothing of bursts, and one user of it."""

    def __init__(self, rundir: Path) -> None:
        config = rundir / "config"
        config.mkdir()
        # On a busy machine taking bursts down takes longer than the usual 5 s.
        (config / "exec.toml").write_text('[exec]\nkill-timeout = "10m"\n')
        options = ("--test-size=2", f"--test-rundir={rundir}", f"-c{config}")
        with (rundir / "log").open("wb") as log:
            self.process = subprocess.Popen(
                [FLUX, "start", *options, "sh", "-c", f"touch {rundir}/up; sleep inf"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=broker_environment(),
                process_group=0,
            )
        self.uri = f"local://{rundir}/local-0"
        self.log = rundir / "log"

    def end(self) -> None:
        # flux start does not hand a signal on to the brokers that it started.
        environment = {**broker_environment(), "FLUX_URI": self.uri}
        command = [FLUX, "shutdown", "--quiet"]
        try:
            subprocess.run(command, env=environment, check=False, timeout=HANG_S)
            self.process.wait(HANG_S)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


class User:
    """Somebody with a directory, who types commands in it."""

    def __init__(self, parent: Parent, directory: Path) -> None:
        self.directory = directory
        self.base = directory / "data/burst/batch"
        self.local: dict[str, object] = {
            "type": "local",
            "cores": 2,
            "dir": str(directory / "followers"),
            # Followers have it, and so do all processes of the job.
            "environment": {"BURST_TEST": str(directory)},
        }
        self.tables: dict[str, object] = {
            **SETTINGS,
            "providers": {"local": self.local},
        }
        plain = broker_environment()
        self.environment = {
            **plain,
            "PATH": f"{Path(sys.executable).parent}:{plain['PATH']}",
            "FLUX_URI": parent.uri,
            "FLUX_URI_RESOLVE_LOCAL": "1",
            "XDG_DATA_HOME": str(directory / "data"),
            "XDG_CONFIG_HOME": str(directory / "config"),
            "BURST_TEST": str(directory),
        }

    def run(self, *words: str) -> CommandResult:
        done = run_program(words, self.environment, self.directory)
        return CommandResult(done.returncode, done.stdout, done.stderr)

    def flux(self, *words: str) -> str:
        return "\n".join(self.run(FLUX, *words).lines)

    def batch(self, *words: str, script: str = "", slots: str = "4") -> CommandResult:
        (self.directory / "burst.toml").write_text(tomli_w.dumps(self.tables))
        told = ("--config", "burst.toml", "--slots", slots)
        if script:
            (self.directory / "script.sh").write_text(f"#!/bin/sh\n{script}")
            words = (*words, "script.sh")
        return self.run(BURST, "lead", "batch", *told, *words)

    def submit(self, *words: str, script: str) -> str:
        (job,) = self.batch(*words, script=script).lines
        return job

    def status(self, job: str) -> int:
        """Wait for the job's end, and return its exit status."""
        self.flux("job", "wait-event", f"-t{HANG_S:.0f}", job, "clean")
        return self.run(FLUX, "job", "status", job).status

    def output(self) -> str:
        (path,) = self.directory.glob("flux-*.out")
        return path.read_text()

    def followers(self) -> set[int]:
        return {pid for pid in self.processes() if b"BURST_OWNER=" in environ(pid)}

    def processes(self) -> set[int]:
        return set(pids_with(f"BURST_TEST={self.directory}"))

    def left(self) -> list[Path]:
        """Return what is left of any lead and any follower."""
        places = (self.base, self.directory / "followers")
        return [path for place in places if place.exists() for path in place.iterdir()]

    def ends_clean(self) -> None:
        wait_until(lambda: not self.processes(), "all processes to end")
        assert self.left() == []

    def kill(self) -> None:
        kill_all_with(f"BURST_TEST={self.directory}")


def environ(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


@contextlib.contextmanager
def open_parent() -> Iterator[Parent]:
    """Yield a started instance; end it in any case."""
    rundir = Path(tempfile.mkdtemp(prefix="bp-", dir="/tmp"))
    parent = Parent(rundir)
    try:
        wait_until((rundir / "up").exists, parent.log.read_text)
        yield parent
    finally:
        parent.end()
        shutil.rmtree(rundir, ignore_errors=True)


@contextlib.contextmanager
def open_user(parent: Parent) -> Iterator[User]:
    """Yield a user; end all of his jobs and processes in any case."""
    directory = Path(tempfile.mkdtemp(prefix="bu-", dir="/tmp"))
    user = User(parent, directory)
    try:
        yield user
    finally:
        user.run(FLUX, "cancel", "--all", "--quiet")
        user.kill()
        shutil.rmtree(directory)
