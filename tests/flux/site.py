# SPDX-License-Identifier: MIT
"""A site: a real Flux lead, a cli beside it, and users who type flux commands."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from burst_local.processes import Process, scan

from burst.model.burst import Burst
from burst.runtime.read_records import read_records
from tests.cli.cli_harness import CliHarness, open_harness
from tests.flux import gated
from tests.flux_instance import FLUX, FluxInstance
from tests.flux_pool import FluxPool
from tests.support.waiting import HANG_S, wait_until

# As users type it. Where all brokers share a machine, this tells them apart.
HOSTNAME = ("flux", "getattr", "hostname")

# Starts a broker once the gate `join` is open.
_FLUX_AT_GATE = """#!/bin/sh
while [ "$1" = broker ] && [ -e {gates}/join ]; do sleep 0.02; done
exec {flux} "$@"
"""


class Site:
    """What a test does at one site, and what it finds there."""

    def __init__(
        self,
        instance: FluxInstance,
        cli: CliHarness,
        table: Mapping[str, Any] | None = None,
    ) -> None:
        """`table`: of the provider, that of type `local` by default."""
        self.instance = instance
        self.cli = cli
        self._table = table or {"type": "local", **cli.options}
        self._gates = cli.directory / "gates"
        self._gates.mkdir()
        self._program = cli.directory / "flux"
        self._program.write_text(_FLUX_AT_GATE.format(gates=self._gates, flux=FLUX))
        self._program.chmod(0o700)
        gated.install(cli.directory / "site")
        with closing(instance.lead()) as lead:
            self._owner = lead.identity().owner
        self.write()

    def write(self, **tables: Any) -> None:
        """Write the settings: a gated provider, and these."""
        provider = {
            "type": gated.TYPE,
            "gates": str(self._gates),
            "behind": {**self._table, "flux": str(self._program)},
        }
        name = str(self._table["type"])
        self.cli.write(**{"providers": {name: provider}, **tables})

    def change(self, **tables: Any) -> None:
        """Write the settings, and have a daemon that serves read them."""
        self.write(**tables)
        said = self.cli.run("reload").lines
        assert said[0].startswith("reloaded; changed: "), said

    def offer_provider(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let daemons find the provider."""
        # Before what is there, which may say where this project itself is.
        packages = str(self.cli.directory / "site")
        monkeypatch.setenv("PYTHONPATH", packages, prepend=os.pathsep)

    def close_gate(self, name: str) -> None:
        """Have whoever comes to that gate wait there."""
        (self._gates / name).touch()

    def open_gate(self, name: str) -> None:
        """Let everybody pass."""
        (self._gates / name).unlink()

    def wait_at_gate(self, name: str) -> None:
        """Return once somebody waits there."""
        at_gate = self._gates / f"{name}.waits"
        wait_until(at_gate.exists, f"the daemon to stand at {name}")

    def flux(self, *words: str, **environment: str) -> str:
        """Run a flux command as a user does and return what it printed."""
        done = self.try_flux(*words, **environment)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout

    def try_flux(
        self, *words: str, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a flux command; it may fail."""
        beside = str(Path(sys.executable).parent)
        path = f"{beside}:{os.environ['PATH']}"
        return subprocess.run(
            [FLUX, *words],
            cwd=self.instance.directory,
            env={**os.environ, "PATH": path, "FLUX_URI": self.cli.uri, **environment},
            capture_output=True,
            text=True,
            timeout=HANG_S,
            check=False,
        )

    def submit(self, *words: str) -> str:
        """Submit a burstable job and return its id."""
        return self.flux("submit", "--setattr=burstable", *words).strip()

    def jobs(self, form: str, job: str) -> str:
        """Return a line of flux jobs on one job."""
        return self.instance.job_line(form, job)

    def names(self) -> list[str]:
        """Return the names of all jobs."""
        return self.flux("jobs", "-a", "-n", "-o", "{name}").split()

    def output(self, job: str) -> list[str]:
        """Return the words of a job's output."""
        # To attach for writing would need the job's nodes, which may be gone.
        return self.flux("job", "attach", "--read-only", job).split()

    def job(self, job: str) -> str:
        """Return a job's state, or how it ended."""
        return self.jobs("{status}", job)

    def wait_for_job(self, job: str, status: str) -> None:
        """Wait until a job has a status, such as RUN or COMPLETED."""
        wait_until(
            lambda: self.job(job) == status,
            lambda: f"{job} to be {status}: {self.explain(job)}",
        )

    def wait_for_start(self, job: str) -> None:
        """Wait until the shells of a job run, which is after the state RUN."""
        self.flux("job", "wait-event", f"--timeout={HANG_S:g}", job, "start")

    def write_kvs(self) -> None:
        """Have the lead write its KVS to disk; one that is killed has that again."""
        self.flux("kvs", "put", "--sync", "written=true")

    def explain(self, job: str) -> str:
        """Return what `burst explain` says, even if it says why it cannot."""
        said = self.cli.run("explain", job)
        return said.stdout + said.stderr

    def bursts(self) -> list[Any]:
        """Return the rows of all bursts, oldest first."""
        found: list[Any] = self.cli.status()["bursts"]
        return found

    def wait_for_burst(self, state: str) -> str:
        """Wait until the one burst that is not over has a state; return its id."""

        found: list[str] = []

        def one() -> bool:
            rows = self.bursts()
            found[:] = [row["id"] for row in rows if row["state"] == state]
            return len(found) == 1

        wait_until(one, lambda: f"{state}: {self.bursts()}")
        return found[0]

    def wait_for_end(self, burst_id: str) -> Any:
        """Wait until a burst is over and its ranks are free; return its row."""
        self.cli.wait_for_state(burst_id, "inactive")
        wait_until(lambda: not self.drained(), lambda: f"undrain: {self.drained()}")
        return self.cli.row(burst_id)

    def followers(self) -> dict[str, Process]:
        """Return the followers' processes that live, by host."""
        return {
            process.environ["BURST_HOST"]: process
            for process in self._ours()
            if process.pid == process.session
        }

    def kill_follower(self, host: str) -> bool:
        """End a follower as a machine that fails does; tell whether it still ran."""
        follower = self.followers().get(host)
        if follower is None:
            return False
        try:
            os.kill(follower.pid, signal.SIGKILL)
        except ProcessLookupError:  # it has just ended
            return False
        return True

    def drained(self) -> dict[str, str]:
        """Return the reasons of drained ranks, by idset."""
        drained = self.instance.rpc("resource.status", {})["drain"]
        return {ranks: entry["reason"] for ranks, entry in drained.items()}

    def online(self) -> str:
        """Return the ranks that are online, an idset."""
        online: str = self.instance.rpc("resource.status", {})["online"]
        return online

    def record_sizes(self) -> dict[str, int]:
        """Return the length in bytes of each record in the KVS, by key."""
        with closing(self.instance.lead()) as lead:
            kept = lead.store().load()
        return {key: len(text.encode()) for key, text in kept.items()}

    def records(self) -> list[Burst]:
        """Return the bursts that the KVS has, as their records say."""
        with closing(self.instance.lead()) as lead:
            kept = lead.store().load()
        records = read_records(kept, time.time())
        return list(records.bursts.values())

    def check_that_nothing_is_left(self) -> None:
        """Fail if there is a process, a file, a lease, a drain or a hold of ours.

        Undraining follows an end, and what a listing shows may be a tick old.
        """
        wait_until(lambda: not self._left(), lambda: f"an end of {self._left()}")

    def _left(self) -> dict[str, Any]:
        status = self.cli.status()
        home = self.cli.home
        found = {
            "processes": list(self._ours()),
            "files": list(home.iterdir()) if home.exists() else [],
            "records": [b for b in self.records() if b.live or b.drained],
            "drained": self.drained(),
            "slots": [slot for slot in status["slots"] if slot["state"] != "free"],
            "held": status["held"],
            "orphans": status["orphans"],
        }
        return {what: those for what, those in found.items() if those}

    def _ours(self) -> Iterator[Process]:
        for process in scan().values():
            if process.environ.get("BURST_OWNER") == self._owner:
                yield process


@contextmanager
def open_site(
    extra: Mapping[str, Any] | None = None,
    pool: FluxPool | None = None,
    prepare: Callable[[FluxInstance], None] | None = None,
    table: Mapping[str, Any] | None = None,
) -> Iterator[Site]:
    """Yield a site whose lead has two nodes of its own, both up.

    The lead is one of the pool, or of a pool of its own; `prepare` as of `FluxPool`,
    `table` as of `Site`.
    """
    lender = pool or FluxPool()
    try:
        with (
            lender.lend(extra, followers=["lead-1"], prepare=prepare) as instance,
            open_harness(instance) as cli,
        ):
            site = Site(instance, cli, table)
            try:
                yield site
            finally:
                # Those of a lead that is gone would not leave when they are asked to.
                for process in site.followers().values():
                    with suppress(ProcessLookupError):
                        os.kill(process.pid, signal.SIGKILL)
    finally:
        if not pool:
            lender.end()
