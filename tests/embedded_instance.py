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
from collections.abc import Iterator, Mapping
from contextlib import (
    AbstractContextManager,
    ExitStack,
    closing,
    contextmanager,
    nullcontext,
)
from pathlib import Path
from typing import Any

import msgspec
from burst_embedded.handle import connect_handle
from burst_embedded.lead_client import connect

from burst.decode import from_json
from burst.errors import LeadGone
from burst.flux.job_requests import read_ended
from burst.flux.job_state import JournalEvent, job_from_jobspec
from burst.flux.rpc import RpcClient
from burst.kits import certificate
from burst.lead import Lead
from burst.model.event import Event
from burst.model.jobid import JobId
from burst.model.lead import JobView
from burst.model.resource_set import ResourceSet
from tests.contract.instance import HOSTS, LastingInstance, Submission, rank_of
from tests.embedded.jobspecs import Wanted, build_jobspec
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


class _Entry(msgspec.Struct):
    """A job as the job manager keeps it."""

    eventlog: list[JournalEvent]
    jobspec: msgspec.Raw
    R: ResourceSet | None = None


def merge(memo: dict[str, Any], changes: Mapping[str, Any]) -> None:
    """Merge changes deeply into a memo, as Flux shows it; None deletes a key."""
    for key, value in changes.items():
        if value is None:
            memo.pop(key, None)
        elif isinstance(value, Mapping):
            merge(memo.setdefault(key, {}), value)
        else:
            memo[key] = value


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
        asked = {"jobspec": jobspec, "urgency": job.urgency}
        return JobId(self.call("job-ingest.submit", asked)["id"])

    def cancel(self, job: JobId) -> None:
        self.call("job-manager.raise", {"id": job, "type": "cancel", "note": ""})

    def set_urgency(self, job: JobId, urgency: int) -> None:
        self.call("job-manager.urgency", {"id": job, "urgency": urgency})

    def output(self, job: JobId) -> str:
        with closing(connect(self.uri)) as lead:
            while lead.events(job)[-1].name != "clean":
                time.sleep(_LOOK_S)
            pieces = lead.output(job)
        return b"".join(each.data for each in pieces if each.stream == 1).decode()

    def info(self, job: JobId) -> JobView:
        """Return a job, ended or not, by all its events."""
        with closing(connect_handle(self.uri)) as handle:
            told = read_ended(RpcClient(handle), [job])[job]
        entry = from_json(told, _Entry)
        found = job_from_jobspec(job, bytes(entry.jobspec), lambda _: True)
        assert found is not None
        for event in entry.eventlog:
            found.apply(event, entry.R)
        return found.view()

    def jobspec(self, job: JobId) -> Mapping[str, Any]:
        """Return its jobspec as it is now."""
        with closing(self.lead()) as lead:
            return lead.jobspec(job)

    def memo(self, job: JobId) -> dict[str, Any]:
        memo: dict[str, Any] = {}
        for event in self._events(job, "memo"):
            merge(memo, event.context)
        burst: dict[str, Any] = memo.get("burst", {})
        return burst

    def exception(self, job: JobId) -> tuple[str, str]:
        last = self._events(job, "exception")[-1]
        return last.context["type"], last.context["note"]

    def drain(self, host: str, reason: str) -> None:
        ranks = str(rank_of(host))
        self.call("resource.drain", {"targets": ranks, "reason": reason})

    def store_late(self) -> AbstractContextManager[None]:
        return nullcontext()

    def call(self, topic: str, payload: Mapping[str, Any]) -> dict[str, Any]:
        """Call the lead as a client of its own would."""
        with closing(connect_handle(self.uri)) as handle:
            return RpcClient(handle).ask(topic, payload)

    def _events(self, job: JobId, name: str) -> list[Event]:
        with closing(self.lead()) as lead:
            return [event for event in lead.events(job) if event.name == name]

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
                connect_handle(self.uri).close()
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
