# SPDX-License-Identifier: MIT
"""A system instance in a lab: brokers of `flux`, guests' jobs by the IMP, a daemon.

All files are in one directory that all users may pass through. The burst ranks are
absent until the daemon's local provider starts them.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import tomli_w

from tests.flux_instance import flux_bindings
from tests.multiuser.lab import (
    OWNER,
    UIDS,
    Lab,
    end_process,
    imp_path,
)
from tests.support.brokers import is_fork
from tests.support.forked import Forked
from tests.support.ports import free_port
from tests.support.waiting import HANG_S, wait_until

HOSTS = ("lead-[0-1]", "burst-0-[0-3]", "burst-1-[0-3]")
_AWAIT = ("job", "wait-event", f"--timeout={HANG_S:g}")

# Of the daemon: nothing waits longer than a test would. What keeps users apart needs
# the frobnicator in the lead's configuration (test_apart.py).
_SETTINGS: dict[str, Any] = {
    "daemon": {"cadence": "0.2s"},
    "deadlines": {"idle": "2s", "join": "1h"},
    "plan": {"share_users": True},
}


class SystemInstance:
    """A lead with burst ranks, the daemon's settings, and what users type."""

    def __init__(self, lab: Lab, extra: Mapping[str, Any] | None = None) -> None:
        self.lab = lab
        made = tempfile.mkdtemp(prefix="i-", dir=lab.directory)
        self.directory = Path(made)
        self.directory.chmod(0o755)
        self.uri = f"local://{made}/lead/local"
        self.settings = self.directory / "burst.toml"
        self._extra = dict(extra or {})
        self._brokers: dict[str, subprocess.Popen[bytes]] = {}
        self._handle: Any = None
        self.is_reusable = True
        self._give(self.directory)
        lab.run(OWNER, "flux", "keygen", f"{made}/cert")
        (self.directory / "R").write_text(json.dumps(_resources()))
        self._tables = self.tables()
        self._configure({})
        self.write_settings()

    def _configure(self, extra: Mapping[str, Any]) -> None:
        config = tomli_w.dumps({**self._tables, **extra})
        (self.directory / "broker.toml").write_text(config)

    def reload_config(self, extra: Mapping[str, Any]) -> None:
        """Have the lead read its configuration again, with these tables, too."""
        self._configure(extra)
        self.rpc("config.reload", {})

    def tables(self) -> dict[str, Any]:
        """Return the lead's configuration."""
        place = self.directory
        port = free_port()
        return {
            "access": {"allow-guest-user": True, "allow-root-owner": True},
            "exec": {"imp": str(imp_path())},
            "resource": {"path": str(place / "R"), "noverify": True},
            "bootstrap": {
                "curve_cert": str(place / "cert"),
                "default_port": port,
                "default_bind": "tcp://127.0.0.1:%p",
                "default_connect": "tcp://127.0.0.1:%p",
                "hosts": [{"host": host} for host in HOSTS],
            },
            **self._extra,
        }

    def write_settings(self, **tables: Any) -> None:
        """Write the daemon's settings: the usual ones, and these over them."""
        local = {"type": "local", "dir": f"{self.directory}/p", "cores": 4}
        usual = {**_SETTINGS, "providers": {"local": local}}
        whole = {
            name: {**usual.get(name, {}), **table} if isinstance(table, dict) else table
            for name, table in {**usual, **tables}.items()
        }
        self.settings.write_text(tomli_w.dumps(whole))
        self._give(self.settings)

    def _give(self, path: Path, user: str = OWNER) -> None:
        number = str(UIDS[user])
        subprocess.run(["chown", f"{number}:{number}", str(path)], check=True)

    def start(self) -> None:
        """Start the lead, and return once it takes jobs."""
        self._start_lead()
        wait_until(self._is_up, lambda: self.log("lead-0"))
        self._handle = flux_bindings().Flux(self.uri)

    def _start_lead(self) -> None:
        rundir = self.make_directory("lead", 0o755)
        state = self.make_directory("state", 0o700)
        self.start_broker(
            "lead-0",
            rundir,
            *("-Sbroker.quorum=1", f"-Sstatedir={state}", "-Sbroker.rc2_none=1"),
        )

    @property
    def is_running(self) -> bool:
        """Tell whether the lead's process lives."""
        return self._brokers["lead-0"].poll() is None

    def play_owner(self) -> None:
        """Do nothing: `rpc` is root's, whom the lead takes for its owner."""

    def rpc(self, topic: str, payload: Mapping[str, Any]) -> Any:
        """Ask a service, with the owner's rights."""
        asked = self._handle.rpc(topic, dict(payload))
        return asked.wait_for(HANG_S).get()

    def pids(self) -> dict[str, int]:
        """Return the processes of brokers that live: the lead's, the others by number.

        Whoever started them.
        """
        place = f"-Srundir={self.directory}/"
        found = {"lead-0": self._brokers["lead-0"].pid} if self.is_running else {}
        for pid in self.lab.pids():
            with suppress(OSError):
                entry = Path(f"/proc/{pid}")
                command = (entry / "cmdline").read_text()
                words = command.split("\0")
                ours = any(w.startswith(place) and w != f"{place}lead" for w in words)
                if ours and not is_fork(entry, command):
                    found[str(pid)] = pid
        return found

    def followers(self) -> list[str]:
        """Return the others than the lead's."""
        return [host for host in self.pids() if host != "lead-0"]

    def kill_follower(self, host: str) -> None:
        """Kill the process of a broker."""
        with suppress(ProcessLookupError):
            os.kill(int(host), signal.SIGKILL)

    def make_directory(self, name: str, mode: int) -> Path:
        """Make a directory of the owner's, unless it is there."""
        place = self.directory / name
        place.mkdir(exist_ok=True)
        place.chmod(mode)
        self._give(place)
        return place

    def _is_up(self) -> bool:
        assert self.is_running, self.log("lead-0")
        return not self.try_flux("ann", "jobs").returncode

    def start_broker(
        self, host: str, rundir: Path, *options: str, config: str = "broker.toml"
    ) -> None:
        """Start a broker of this instance as its owner, with this file of ours."""
        with (self.directory / f"{host}.log").open("ab") as log:
            self._brokers[host] = self.lab.start(
                OWNER,
                *("flux", "broker", f"--config-path={self.directory}/{config}"),
                *(f"-Shostname={host}", f"-Srundir={rundir}"),
                *(f"-Slocal-uri=local://{rundir}/local", *options),
                log=log,
            )

    def broker(self, host: str) -> subprocess.Popen[bytes]:
        """Return the process of a broker that this started."""
        return self._brokers[host]

    def log(self, host: str) -> str:
        """Return what a broker that this started has printed."""
        return (self.directory / f"{host}.log").read_text(errors="replace")

    def end(self) -> None:
        """End the brokers that this started."""
        for broker in reversed(self._brokers.values()):
            end_process(broker)

    def try_flux(
        self, user: str, *words: str, **env: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a flux command as a user at the lead; it may fail."""
        return self.lab.try_run(user, "flux", *words, env={"FLUX_URI": self.uri, **env})

    def flux(self, user: str, *words: str, **env: str) -> str:
        """Run a flux command as a user and return what it printed."""
        done = self.try_flux(user, *words, **env)
        assert done.returncode == 0, (user, words, done.stdout, done.stderr)
        return done.stdout.strip()

    def try_burst(self, user: str, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a burst command as a user; it may fail. Guests name no settings."""
        return self.lab.try_run(
            user, "python", "-m", "burst", *words, "--uri", self.uri
        )

    def burst(self, user: str, *words: str) -> str:
        """Run a burst command as a user and return what it printed."""
        done = self.try_burst(user, *words)
        assert done.returncode == 0, (user, words, done.stdout, done.stderr)
        return done.stdout

    def status(self, user: str = OWNER) -> Any:
        """Return what `burst status -a` tells a user."""
        if user == OWNER:
            return self.rpc("burst.status", {})
        return json.loads(self.burst(user, "status", "-a", "--json"))

    def bursts(self, user: str = OWNER) -> list[Any]:
        """Return the rows of all bursts that a user is shown."""
        return list(self.status(user)["bursts"])

    def jobs(self, form: str, *jobs: str) -> list[str]:
        """Return a line as `flux jobs` has it for each of these jobs, or of all."""
        every = {"user": "all", "filters": ["pending", "running", "inactive"]}
        listing = flux_bindings().job.JobList(self._handle, ids=jobs, **every).jobs()
        row = flux_bindings().job.info.JobInfoFormat(form)
        return [row.format(job).rstrip() for job in listing]

    def wait_for_end(self, user: str, job: str) -> subprocess.CompletedProcess[str]:
        """Wait until a user's job has ended; return its output and how it ended.

        A burst for it may have to come first.
        """
        # While a job ends, attach may fail as it looks for the shell to send input to.
        wait_until(
            lambda: not self.try_flux(user, *_AWAIT, job, "clean").returncode,
            lambda: self.try_flux(user, "job", "eventlog", job),
        )
        return self.try_flux(user, "job", "attach", "--read-only", job)

    @contextmanager
    def daemon(
        self, group: Path | None = None, env: Mapping[str, str] | None = None
    ) -> Iterator[DaemonRun]:
        """Yield a daemon of the owner that serves; end it in any case.

        It runs in the control group, if one is given.
        """
        daemon = DaemonRun(self, env or {}, group)
        try:
            wait_until(
                lambda: " serves " in daemon.log() or daemon.process.poll() is not None,
                daemon.log,
            )
            assert daemon.process.poll() is None, daemon.log()
            wait_until(self._is_known, daemon.log)
            yield daemon
        finally:
            daemon.end()

    def _is_known(self) -> bool:
        try:
            return all(each["offers"] for each in self.status()["providers"])
        except OSError:
            return False


class DaemonRun:
    """`burst daemon` as the owner, and what it logged."""

    def __init__(
        self,
        instance: SystemInstance,
        env: Mapping[str, str],
        group: Path | None,
    ) -> None:
        of_daemon = ("-c", str(instance.settings), "--uri", instance.uri)
        words = ("python", "-m", "burst", "daemon", *of_daemon)
        self.process: Forked | subprocess.Popen[bytes]
        self._path = instance.directory / f"daemon-{time.monotonic_ns()}.log"
        if not (env or group):
            self.process = instance.lab.fork(OWNER, *words, log=self._path, env={})
            return
        # What /proc says of it is its own, and it is in the group from its start.
        enter = f"echo $$ > {group}/cgroup.procs; " if group else ""
        with self._path.open("wb") as log:
            self.process = instance.lab.start(
                OWNER, *words, log=log, first=enter, env=env
            )

    def log(self) -> str:
        """Return all that it has said."""
        return self._path.read_text(errors="replace") if self._path.exists() else ""

    def end(self) -> None:
        """End it in order, if it runs."""
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(HANG_S)
        finally:
            self.process.kill()
            self.process.wait()


def _resources() -> dict[str, Any]:
    lite: Sequence[Mapping[str, Any]] = [
        {"rank": "0-1", "children": {"core": "0-1"}},
        {"rank": "2-9", "children": {"core": "0-3"}},
    ]
    names = {"local": "0-1", "burst": "2-9", "burst-0": "2-5", "burst-1": "6-9"}
    execution = {
        "R_lite": lite,
        "starttime": 0.0,
        "expiration": 0.0,
        "nodelist": list(HOSTS),
        "properties": names,
    }
    return {"version": 1, "execution": execution}
