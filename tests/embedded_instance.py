# SPDX-License-Identifier: MIT
"""An embedded lead and its followers as processes, for tests that need an instance.

    with embedded_instance() as instance:
        instance.start_follower("burst-0-0")

The hosts and their resources are those of `tests.contract.instance`. Everything is in
one short directory under /tmp; processes and files are gone after the block, however it
ends. Ports are ephemeral, so tests may run in parallel.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

from burst_embedded.connection import Connection
from burst_embedded.job import Job
from burst_embedded.jobspec import Wanted, build_jobspec
from burst_embedded.lead_client import connect
from burst_embedded.wire import Output

from burst.errors import LeadGone
from burst.kits import certificate
from burst.lead import Lead
from burst.model.jobid import JobId
from tests.contract.instance import HOSTS, LastingInstance, Submission, rank_of
from tests.support.forked import Forked
from tests.support.ports import free_port
from tests.support.waiting import HANG_S

_LOOK_S = 0.02

BROKER = """\
[bootstrap]
curve_cert = "{directory}/curve.cert"
default_port = {port}
default_bind = "tcp://127.0.0.1:%p"
default_connect = "tcp://127.0.0.1:%p"
hosts = [
    {{ host = "lead-[0-1]" }},
    {{ host = "burst-0-[0-3]" }},
    {{ host = "burst-1-[0-3]" }},
]
[resource]
path = "{directory}/R"
noverify = true
"""
R = {
    "version": 1,
    "execution": {
        "R_lite": [
            {"rank": "0-1", "children": {"core": "0-1"}},
            {"rank": "2-9", "children": {"core": "0-3", "gpu": "0"}},
        ],
        "nodelist": ["lead-[0-1],burst-0-[0-3],burst-1-[0-3]"],
        "properties": {
            "local": "0-1",
            "burst": "2-9",
            "burst-0": "2-5",
            "burst-1": "6-9",
        },
        "starttime": 0,
        "expiration": 0,
    },
}


def write_files(directory: Path, port: int) -> Path:
    """Write certificate, R and broker.toml, and return the last one's path."""
    keypair = directory / "curve.cert"
    certificate.write(certificate.create("test"), keypair, replace=True)
    (directory / "R").write_text(json.dumps(R))
    config = directory / "broker.toml"
    config.write_text(BROKER.format(directory=directory, port=port))
    return config


@contextmanager
def short_directory() -> Iterator[Path]:
    """Yield a private directory whose path leaves room for sockets in it."""
    directory = Path(tempfile.mkdtemp(prefix="be-", dir="/tmp"))
    try:
        yield directory
    finally:
        shutil.rmtree(directory)


@contextmanager
def embedded_instance(*, statedir: bool = True) -> Iterator[EmbeddedInstance]:
    """Yield a running instance; only lead-0 is up."""
    with short_directory() as directory:
        instance = EmbeddedInstance(directory, statedir)
        try:
            instance.start()
            yield instance
        finally:
            instance.end()


class EmbeddedInstance(LastingInstance):
    """An embedded lead and its followers."""

    opener = "burst_embedded.lead_client:connect"

    def __init__(self, directory: Path, statedir: bool = True) -> None:
        self.directory = directory
        self.uri = f"embedded://{directory}/r/control"
        self.config = directory / "broker.toml"
        self._statedir = ["--statedir", str(directory / "s")] if statedir else []
        self._brokers: dict[str, Forked] = {}

    def lead(self) -> Lead:
        return connect(self.uri)

    def start(self) -> None:
        """Start the lead, on another port if the first one was taken meanwhile."""
        while True:
            if not self.config.exists():
                write_files(self.directory, free_port())
            self._spawn("lead", HOSTS[0], "r", *self._statedir)
            try:
                self._wait_for_lead()
            except AssertionError:
                if "cannot listen on" not in self.log(HOSTS[0]):
                    raise
                self.config.unlink()
            else:
                return

    def stop(self) -> None:
        for host in reversed(list(self._brokers)):
            self._end(host, signal.SIGTERM)

    def kill(self) -> None:
        self._end(HOSTS[0], signal.SIGKILL)

    def lose_disk(self) -> None:
        (self.directory / "s").rename(self.directory / "gone")

    def restore_disk(self) -> None:
        (self.directory / "gone").rename(self.directory / "s")

    def end(self) -> None:
        """End what is left: cleanly, or by force and a failure."""
        with ExitStack() as stack:
            for host in self._brokers:
                stack.callback(self._end, host, signal.SIGTERM)

    def start_follower(self, host: str) -> None:
        if host in self._brokers:
            self._end(host, signal.SIGKILL)
        self._spawn("follower", host, host)

    def stop_follower(self, host: str) -> None:
        self._end(host, signal.SIGTERM)

    def kill_follower(self, host: str) -> None:
        self._end(host, signal.SIGKILL)

    def start_second(self, role: str, host: str) -> Forked:
        """Start one more broker as that host; its log is that of `second`."""
        self._spawn(role, host, "second", name="second")
        return self._brokers["second"]

    def process(self, host: str) -> Forked:
        """Return the process of that host's broker."""
        return self._brokers[host]

    def log(self, host: str) -> str:
        """Return what that host's brokers wrote to their standard error."""
        return (self.directory / f"{host}.log").read_text()

    def submit_job(self, job: Submission) -> JobId:
        system = {"environment": dict(os.environ), **job.system}
        wanted = Wanted(
            nodes=job.nodes, slots=job.slots, cores=job.cores, gpus=job.gpus
        )
        jobspec = build_jobspec(job.command, wanted, system)
        return JobId(self.call(int, "submit", jobspec, job.urgency))

    def cancel(self, job: JobId) -> None:
        self.call(None, "raise_exception", job, "cancel", "")

    def set_urgency(self, job: JobId, urgency: int) -> None:
        self.call(None, "set_urgency", job, urgency)

    def output(self, job: JobId) -> str:
        text = b""
        with closing(Connection(self.uri)) as client:
            for piece in client.stream(Output | None, "attach", job):
                if piece and piece.stream == 1:
                    text += piece.data
        return text.decode()

    def info(self, job: JobId) -> Job:
        """Return what the lead tells of a job."""
        found: Job = self.call(Job, "find", job)
        return found

    def memo(self, job: JobId) -> dict[str, Any]:
        memo: dict[str, Any] = self.info(job).memo.get("burst", {})
        return memo

    def exception(self, job: JobId) -> tuple[str, str]:
        last = [each for each in self.info(job).events if each.name == "exception"][-1]
        return last.context["type"], last.context["note"]

    def drain(self, host: str, reason: str) -> None:
        self.call(None, "drain", {rank_of(host)}, reason)

    def call(self, kind: Any, method: str, *args: Any) -> Any:
        """Call the lead as a client of its own would."""
        with closing(Connection(self.uri)) as client:
            return client.call(kind, method, *args)

    def _spawn(
        self, role: str, host: str, rundir: str, *options: str, name: str = ""
    ) -> None:
        name = name or host
        command = ["-m", "burst_embedded", role]
        command += ["--config", str(self.config), "--hostname", host]
        command += ["--rundir", str(self.directory / rundir), *options]
        log = str(self.directory / f"{name}.log")
        files = ("/dev/null", log, log)
        self._brokers[name] = Forked(command, files, os.environ, os.getcwd())

    def _wait_for_lead(self) -> None:
        deadline = time.monotonic() + HANG_S
        while True:
            try:
                Connection(self.uri).close()
            except LeadGone:
                assert self._brokers[HOSTS[0]].poll() is None, self.log(HOSTS[0])
                assert time.monotonic() < deadline, self.log(HOSTS[0])
                time.sleep(_LOOK_S)
            else:
                return

    def _end(self, host: str, number: signal.Signals) -> None:
        process = self._brokers.pop(host)
        process.send_signal(number)
        try:
            process.wait(HANG_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
