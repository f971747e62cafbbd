# SPDX-License-Identifier: MIT
"""A real Flux instance on loopback: a lead and its followers, for tests.

All of it is in one private directory with a short path, and all its processes end with
it: brokers by their ids, and what their jobs left behind by the directory in their
environment. The user's side of it speaks Flux's own Python.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import tomli_w

from burst.flux import FluxLead, connect
from burst.model.jobid import JobId, format_f58
from tests.contract.instance import LastingInstance, SharedInstance, Submission, rank_of
from tests.support.marked import kill_all_with
from tests.support.ports import free_port
from tests.support.waiting import HANG_S

FLUX = shutil.which("flux") or ""
MISSING = "no flux on PATH"

_GUEST = {"FLUX_HANDLE_ROLEMASK": "0x2", "FLUX_HANDLE_USERID": "1234"}
_HOSTS = ("lead-[0-1]", "burst-0-[0-3]", "burst-1-[0-3]")


@cache
def flux_bindings() -> Any:
    """Return Flux's own Python, with `flux.job`."""
    ask = [FLUX, "python", "-c", "import flux; print(flux.__path__[0])"]
    where = subprocess.run(ask, capture_output=True, text=True, check=True)
    sys.path.append(str(Path(where.stdout.strip()).parent))
    import flux  # noqa: PLC0415 - it can be found only now
    import flux.job  # noqa: PLC0415

    return flux


@contextlib.contextmanager
def flux_instance(
    extra: Mapping[str, Any] | None = None,
    *options: str,
    further: int = 0,
    address: str = "127.0.0.1",
) -> Iterator[FluxInstance]:
    """Yield a started instance; end it in any case.

    `extra` are tables added to the lead's configuration, `options` to its command.
    Beside the usual ranks there are `further` ones, of the hosts more-0, more-1, ...
    Followers connect to that address of this host.
    """
    directory = Path(tempfile.mkdtemp(prefix="bf-", dir="/tmp"))
    instance = FluxInstance(directory, extra or {}, options, further, address)
    try:
        instance.start()
        yield instance
    finally:
        instance.end()
        shutil.rmtree(directory)


class FluxInstance(LastingInstance, SharedInstance):
    """A lead with burst ranks, as `tests.contract.instance` describes it."""

    opener = "burst.flux:connect"

    def __init__(
        self,
        directory: Path,
        extra: Mapping[str, Any],
        options: Sequence[str],
        further: int = 0,
        address: str = "127.0.0.1",
    ) -> None:
        self._address = address
        self.directory = directory
        self.uri = f"local://{directory}/lead-0/local"
        self.is_reusable = True
        """False once a test did what `tests.flux_pool` cannot undo."""
        self._options = options
        more = [f"more-[0-{further - 1}]"] if further else []
        self._hosts = (*_HOSTS, *more)
        self._brokers: dict[str, subprocess.Popen[bytes]] = {}
        self._handle: Any = None
        subprocess.run([FLUX, "keygen", str(directory / "cert")], check=True)
        (directory / "R").write_text(json.dumps(_resources(self._hosts, 9 + further)))
        self._extra = extra
        self._configure()

    @property
    def config_path(self) -> Path:
        """What brokers read: a file, or a directory of files."""
        return self.directory / "broker.toml"

    def start(self) -> None:
        """Start the lead, and return once it takes jobs."""
        state = self.directory / "state"
        state.mkdir(exist_ok=True)
        quorum = ("-Sbroker.quorum=1", f"-Sstatedir={state}", *self._options)
        broker = self._start("lead-0", *quorum)
        deadline = time.monotonic() + HANG_S
        while not self._is_up():
            assert broker.poll() is None, f"the lead ended: {self.log('lead-0')}"
            assert time.monotonic() < deadline, f"no lead: {self.log('lead-0')}"
            time.sleep(0.02)

    def _configure(self) -> None:
        own = {"path": str(self.directory / "R"), "noverify": True}
        own |= self._extra.get("resource", {})
        bootstrap = _bootstrap(self.directory, self._hosts, self._address)
        tables = {"bootstrap": bootstrap, **self._extra, "resource": own}
        (self.directory / "broker.toml").write_text(tomli_w.dumps(tables))

    def reload_config(self, extra: Mapping[str, Any]) -> None:
        """Have the lead read its configuration again, with further tables."""
        path = self.directory / "broker.toml"
        tables = tomllib.loads(path.read_text())
        path.write_text(tomli_w.dumps({**tables, **extra}))
        self.flux("config", "reload")

    def start_follower(self, host: str) -> None:
        self._start(host)

    def stop_follower(self, host: str) -> None:
        self._end(host, signal.SIGTERM)

    def kill_follower(self, host: str) -> None:
        self._end(host, signal.SIGKILL)

    def stop(self) -> None:
        for host in self.followers():
            self.stop_follower(host)
        self._end("lead-0", signal.SIGTERM)

    def kill(self) -> None:
        self._end("lead-0", signal.SIGKILL)

    def lose_disk(self) -> None:
        self.flux("module", "remove", "content-sqlite")

    def restore_disk(self) -> None:
        self.flux("module", "load", "content-sqlite")

    def pids(self) -> dict[str, int]:
        """Return the processes of brokers that live, by host."""
        brokers = self._brokers.items()
        return {host: each.pid for host, each in brokers if each.poll() is None}

    def followers(self) -> list[str]:
        """Return the hosts whose followers were started and not ended."""
        return [host for host in self._brokers if host != "lead-0"]

    def play_owner(self) -> None:
        """Let later handles be the owner's again, whoever asked for a guest's."""
        for name in _GUEST:
            os.environ.pop(name, None)

    def end(self) -> None:
        """Kill all that is left, and let go of what tests changed here."""
        self.play_owner()
        for host in list(self._brokers):
            self._end(host, signal.SIGKILL)
        kill_all_with(str(self.directory))

    def reload_scheduler(self) -> None:
        """Have the lead load its scheduler anew."""
        self.flux("module", "reload", "-f", "sched-simple")

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a flux command at the lead, as the owner."""
        return subprocess.run(
            [FLUX, *words],
            env={**os.environ, "FLUX_URI": self.uri},
            capture_output=True,
            text=True,
            check=False,
        )

    def flux(self, *words: str) -> str:
        """Return what a flux command writes. Fails if it does."""
        done = self.run(*words)
        assert not done.returncode, (words, done.stderr)
        return done.stdout.strip()

    def follower_uri(self, host: str) -> str:
        """Return where clients on that follower's host connect."""
        return f"local://{self.directory}/{host}/local"

    def pid(self, host: str) -> int:
        """Return the broker's process id."""
        return self._brokers[host].pid

    def log(self, host: str) -> str:
        """Return what that broker has written."""
        return (self.directory / f"{host}.log").read_text(errors="replace")

    def lead(self) -> FluxLead:
        return connect(self.uri)

    def guest(self) -> FluxLead:
        # Flux's own tests play the guest by this; it holds for every later handle.
        os.environ.update(_GUEST)
        return connect(self.uri)

    @property
    def handle(self) -> Any:
        """The owner's `flux.Flux`, until the lead is killed or stopped."""
        return self._handle

    def rpc(self, topic: str, payload: Mapping[str, Any] | str) -> Any:
        """Ask a service, as the owner; a text is sent as it is."""
        sent = payload if isinstance(payload, str) else dict(payload)
        asked = self._handle.rpc(topic, sent)
        return asked.wait_for(HANG_S).get()

    def submit_job(self, job: Submission) -> JobId:
        bindings = flux_bindings().job
        spec = bindings.JobspecV1.from_command(
            list(job.command),
            num_tasks=job.slots or job.nodes or 1,
            num_nodes=job.nodes or None,
            cores_per_task=job.cores,
            gpus_per_task=job.gpus or None,
        )
        spec.cwd = str(self.directory)
        spec.environment = {"PATH": os.environ["PATH"]}
        for name, value in job.system.items():
            spec.setattr(name, value)
        return JobId(int(bindings.submit(self._handle, spec, urgency=job.urgency)))

    def cancel(self, job: JobId) -> None:
        flux_bindings().job.cancel(self._handle, job)

    def set_urgency(self, job: JobId, urgency: int) -> None:
        self.rpc("job-manager.urgency", {"id": job, "urgency": urgency})

    def job_line(self, form: str, job: str) -> str:
        """Return what `flux jobs -a -n -o FORM JOB` writes, without that process."""
        bindings = flux_bindings().job
        (found,) = bindings.JobList(self._handle, ids=[job]).jobs()
        return str(bindings.JobInfoFormat(form).format(found)).strip()

    def output(self, job: JobId) -> str:
        return self.run("job", "attach", "--read-only", format_f58(job)).stdout

    def memo(self, job: JobId) -> dict[str, Any]:
        for entry in self.rpc("job-manager.list", {"max_entries": 0})["jobs"]:
            if entry["id"] == job:
                return dict(entry.get("annotations", {}).get("user", {})["burst"])
        raise AssertionError(f"no active job {job}")

    def exception(self, job: JobId) -> tuple[str, str]:
        try:
            event = flux_bindings().job.event_wait(self._handle, job, "exception")
        except OSError:
            return "", ""  # it has ended without one
        return event.context["type"], event.context["note"]

    def drain(self, host: str, reason: str) -> None:
        why = {"reason": reason} if reason else {}
        self.rpc("resource.drain", {"targets": str(rank_of(host)), **why})

    @contextlib.contextmanager
    def store_late(self) -> Iterator[None]:
        topic = "job-manager.set-batch-timeout"
        # What is submitted next has to wait as long.
        self.rpc(topic, {"timeout": 2.0})
        try:
            yield
        finally:
            self.rpc(topic, {"timeout": 0.01})

    def _start(self, host: str, *options: str) -> subprocess.Popen[bytes]:
        own = self.directory / host
        shutil.rmtree(own, ignore_errors=True)
        own.mkdir()
        command = [
            FLUX,
            "broker",
            f"--config-path={self.config_path}",
            f"-Shostname={host}",
            f"-Srundir={own}",
            f"-Slocal-uri=local://{own}/local",
            "-Sbroker.rc2_none=1",
            *options,
        ]
        plain = {k: v for k, v in os.environ.items() if not k.startswith("FLUX_")}
        with (self.directory / f"{host}.log").open("ab") as log:
            self._brokers[host] = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=plain
            )
        return self._brokers[host]

    def _end(self, host: str, how: signal.Signals) -> None:
        broker = self._brokers.pop(host)
        broker.send_signal(how)
        try:
            broker.wait(HANG_S)
        finally:
            broker.kill()
            broker.wait()

    def _is_up(self) -> bool:
        try:
            self._handle = flux_bindings().Flux(self.uri)
            self._handle.rpc("state-machine.wait", {}).wait_for(HANG_S).get()
        except OSError:
            return False
        return True


def _bootstrap(directory: Path, hosts: Sequence[str], address: str) -> dict[str, Any]:
    return {
        "curve_cert": str(directory / "cert"),
        "default_port": free_port(),
        "default_bind": f"tcp://{address}:%p",
        "default_connect": f"tcp://{address}:%p",
        "hosts": [{"host": host} for host in hosts],
    }


def _resources(hosts: Sequence[str], last: int) -> dict[str, Any]:
    lite = [
        {"rank": "0-1", "children": {"core": "0-1"}},
        {"rank": f"2-{last}", "children": {"core": "0-3", "gpu": "0"}},
    ]
    names = {"local": "0-1", "burst": f"2-{last}", "burst-0": "2-5", "burst-1": "6-9"}
    execution = {
        "R_lite": lite,
        "starttime": 0.0,
        "expiration": 0.0,
        "nodelist": list(hosts),
        "properties": names,
    }
    return {"version": 1, "execution": execution}
