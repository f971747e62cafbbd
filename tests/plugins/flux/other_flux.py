# SPDX-License-Identifier: MIT
"""Another real Flux instance, of four nodes that are brokers on this host."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import tomli_w
from burst_flux.provider import FluxProvider
from burst_flux.settings import FluxSettings

from burst.config import Seconds
from burst.provider import BurstSpec
from tests.flux_instance import FLUX
from tests.support.fluxlead import broker_environment, short_directory
from tests.support.marked import kill_all_with
from tests.support.waiting import HANG_S, wait_until

NODES, CORES = 4, 4
_MARK = "BURST_TEST_OTHER_FLUX"
# Once `cut` exists, a job is submitted and its answer lost.
_PROGRAM = """#!/bin/sh
[ "$1" = submit ] && [ -e {directory}/cut ] || exec {flux} "$@"
rm {directory}/cut
{flux} "$@" && echo "the connection was lost" >&2
exit 1
"""


class OtherInstance:
    """It runs, and so does what its jobs started, until the end of `other_instance`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.socket = directory / "local-0"
        self.files = directory / "files"
        self._cut = directory / "cut"
        program = directory / "flux"
        program.write_text(_PROGRAM.format(directory=directory, flux=FLUX))
        program.chmod(0o755)
        self.settings = FluxSettings(
            uri=f"local://{self.socket}",
            dir=str(self.files),
            cores=CORES,
            max_nodes=NODES,
            time=Seconds(3600),
            flux=str(program),
        )

    @property
    def table(self) -> dict[str, Any]:
        """Of a provider in burst.toml."""
        return {
            "type": "flux",
            "uri": self.settings.uri,
            "dir": self.settings.dir,
            "time": "1h",
            "cores": CORES,
            "gpus": 1,
            "max_nodes": NODES,
        }

    def provider(
        self,
        owner: str,
        name: str = "other",
        *,
        limit: float = HANG_S,
        clock: Callable[[], float] = time.time,
        **changes: Any,
    ) -> FluxProvider:
        """Return a provider of that owner, with changes of the settings."""
        settings = msgspec.structs.replace(self.settings, **changes)
        return FluxProvider(name, settings, owner, limit=limit, clock=clock)

    def runs(self) -> bool:
        """Return whether all its brokers are up."""
        return " run " in self._flux("uptime").stdout

    def flux(self, *words: str) -> str:
        """Return what a flux command prints there. Fails if it does."""
        done = self._flux(*words)
        assert not done.returncode, (words, done.stderr)
        return done.stdout.strip()

    def _flux(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [FLUX, *words],
            env={**broker_environment(), "FLUX_URI": f"local://{self.socket}"},
            capture_output=True,
            text=True,
            timeout=HANG_S,
            check=False,
        )

    def jobs(self) -> Sequence[str]:
        """Return the jobs that are not over."""
        return self.flux("jobs", "--no-header", "--format={id}").split()

    @contextlib.contextmanager
    def away(self) -> Iterator[None]:
        """Have nobody find its socket."""
        hidden = self.socket.with_name("away")
        self.socket.rename(hidden)
        try:
            yield
        finally:
            hidden.rename(self.socket)

    @contextlib.contextmanager
    def hung(self) -> Iterator[None]:
        """Have its first broker answer nobody."""
        pid = int(self.flux("getattr", "broker.pid"))
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)

    @contextlib.contextmanager
    def stopped(self) -> Iterator[None]:
        """Have its scheduler start no job."""
        self.flux("queue", "stop")
        try:
            yield
        finally:
            self.flux("queue", "start")

    @contextlib.contextmanager
    def disabled(self) -> Iterator[None]:
        """Have it take no job."""
        self.flux("queue", "disable", "--message=no more today")
        try:
            yield
        finally:
            self.flux("queue", "enable")

    def lose_an_answer(self) -> None:
        """Lose the next answer to a submission."""
        self._cut.touch()


@contextlib.contextmanager
def other_instance() -> Iterator[OtherInstance]:
    """Yield it once it takes jobs."""
    with short_directory() as directory:
        other = OtherInstance(directory)
        resources = {
            "R_lite": [{"rank": "0-3", "children": {"core": "0-3", "gpu": "0"}}],
            "starttime": 0.0,
            "expiration": 0.0,
            "nodelist": ["other-[0-3]"],
        }
        path = directory / "R"
        path.write_text(json.dumps({"version": 1, "execution": resources}))
        table = {
            "resource": {"path": str(path), "noverify": True},
            # Else it kills what takes 5 s to leave, as all does on a busy machine.
            "exec": {"kill-timeout": "10m"},
        }
        (directory / "broker.toml").write_text(tomli_w.dumps(table))
        command = [
            *(FLUX, "start", f"--test-size={NODES}", f"--test-rundir={directory}"),
            *("--test-hosts=other-[0-3]", f"--config-path={directory}/broker.toml"),
            "-Sbroker.rc2_none=1",
        ]
        with (directory / "log").open("wb") as log:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**broker_environment(), _MARK: str(directory)},
                start_new_session=True,
            )
        try:
            wait_until(other.runs, (directory / "log").read_text)
            yield other
        finally:
            kill_all_with(f"{_MARK}={directory}")
            process.wait()


def environment_of(pid: int) -> Sequence[str]:
    """Return the names of a process' variables."""
    text = Path(f"/proc/{pid}/environ").read_text()
    return [word.partition("=")[0] for word in text.split("\0") if word]


def rundirs(spec: BurstSpec) -> Sequence[Path]:
    """Return the directories that its followers have left, or have."""
    return list(Path("/tmp").glob(f"{spec.burst_id}-*"))
