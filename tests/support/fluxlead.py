# SPDX-License-Identifier: MIT
"""A real Flux lead, started from the files and by the command of `burst lead init`."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from burst.config import convert
from burst.lead_setup.lead_files import LeadFiles, write_lead
from burst.lead_setup.lead_plan import LeadPlan, PlannedSlot
from burst.model.lead import Bootstrap, LeadIdentity
from burst.model.ranks import parse_hostlist, parse_idset
from burst.model.shape import Shape
from tests.flux_instance import flux_bindings
from tests.support.ports import free_port
from tests.support.waiting import HANG_S, wait_until

needs_flux = pytest.mark.skipif(
    shutil.which("flux") is None, reason="no flux on PATH: install flux-core"
)


@contextlib.contextmanager
def short_directory() -> Iterator[Path]:
    """Make a directory whose name leaves room for a unix socket in it."""
    path = Path(tempfile.mkdtemp(prefix="b-", dir="/tmp"))
    try:
        yield path
    finally:
        shutil.rmtree(path)


def broker_environment() -> dict[str, str]:
    """Return an environment in which a broker depends on nothing of this user's.

    Brokers run their rc scripts by $SHELL with a socket as standard input, at which
    bash reads ~/.bashrc: whatever that does, and takes, would be part of the test.
    """
    others = {k: v for k, v in os.environ.items() if not k.startswith("FLUX_")}
    return {**others, "SHELL": "/bin/sh"}


class FluxLead:
    """A running lead and what it has written."""

    def __init__(self, files: LeadFiles, plan: LeadPlan) -> None:
        self.files = files
        self.plan = plan
        self._log = files.config.with_name("lead.log").open("wb")
        self._processes = [
            subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=self._log,
                env=self.environment(),
                start_new_session=True,
            )
            for command in files.commands
        ]

    def environment(self) -> dict[str, str]:
        """Return that of a client of this lead."""
        return {**broker_environment(), "FLUX_URI": self.files.uri}

    def flux(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a flux command against this lead."""
        return subprocess.run(
            ["flux", *words],
            env=self.environment(),
            capture_output=True,
            text=True,
            timeout=HANG_S,
            check=False,
        )

    def run(self, *words: str) -> list[str]:
        """Run a job and return the words of its output. Fails if the job does."""
        done = self.flux("run", *words)
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    def log(self) -> str:
        """Return what the lead's broker has said."""
        return self.files.config.with_name("lead.log").read_text(errors="replace")

    def wait(self) -> None:
        """Return once the lead serves."""

        def runs() -> bool:
            ended = any(process.poll() is not None for process in self._processes)
            assert not ended, self.log()
            return " run " in self.flux("uptime").stdout

        wait_until(runs, self.log)

    def online(self) -> frozenset[str]:
        """Return the hosts that Flux would start jobs on, busy or not."""
        handle = flux_bindings().Flux(self.files.uri)
        status = handle.rpc("resource.status", {}).wait_for(HANG_S).get()
        hosts = parse_hostlist(",".join(status["R"]["execution"]["nodelist"]))
        drained = [parse_idset(ranks) for ranks in status["drain"]]
        up = parse_idset(status["online"]).difference(*drained)
        return frozenset(hosts[rank] for rank in up)

    def identity(self, owner: str = "owner-1") -> LeadIdentity:
        """Return what the orchestrator knows of this lead."""
        table = msgspec.toml.decode(self.files.config.read_bytes())["bootstrap"]
        certificate = table.pop("curve_cert")
        hosts = parse_hostlist(self.flux("getattr", "hostlist").stdout.strip())
        return LeadIdentity(
            kind="flux",
            version="0.88.0",
            uri=self.files.uri,
            owner=owner,
            hosts=hosts,
            shapes=(Shape(1),) * len(hosts),
            bootstrap=convert(Bootstrap, table, "bootstrap"),
            endpoint=f"tcp://{self.plan.address}:{self.plan.port}",
            certificate=certificate,
        )

    def stop(self) -> None:
        """End the brokers, and whatever of their sessions is left."""
        self._processes[0].terminate()
        try:
            self._processes[0].wait(HANG_S)
        finally:
            for process in self._processes:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            self._log.close()


@contextlib.contextmanager
def flux_lead(
    *slots: PlannedSlot,
    address: str = "127.0.0.1",
    gateways: bool = False,
    hosts: str = "lead-0",
) -> Iterator[FluxLead]:
    """Run a lead with these rank slots, `burst-0-[0-3]` by default.

    It has one own node, or as many as `hosts`, a hostlist, names.
    """
    with short_directory() as directory:
        plan = LeadPlan(
            hosts=hosts,
            shape=Shape(2),
            slots=slots or (PlannedSlot(hosts="burst-0-[0-3]", shape=Shape(2)),),
            address=address,
            port=free_port(),
            gateways=gateways,
        )
        files = write_lead(directory / "lead", plan)
        lead = FluxLead(files, plan)
        try:
            lead.wait()
            yield lead
        finally:
            lead.stop()
