# SPDX-License-Identifier: MIT
"""The two kinds of lead: how each is started, and what its users type."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, Protocol

import msgspec

from burst.demo.scene import JobSeen
from burst.embedded.calls import JobInfo
from burst.errors import BurstError
from burst.flux.bindings import import_core
from burst.kits.broker import embedded_follower_argv, flux_follower_argv
from burst.lead_setup.lead_files import LeadFiles
from burst.model.jobid import JobId
from burst.model.ranks import format_hostlist

Argv = tuple[str, ...]
_OWN_NODE = "lead-1"


class Kind(Protocol):
    """What differs between the leads. The story is the same."""

    name: str
    """`embedded` or `flux`."""
    mode: str
    """How jobs come in, as `[intake] mode` has it."""
    preparing: tuple[Argv, ...]
    """What its owner types once it is up, so that jobs can come in that way."""
    user: Argv
    """What a user's command begins with. `submit` and `cancel` are alike in both."""
    typed: str
    """The same, as he types it."""
    jobs: Argv
    attach: Argv
    show_host: Argv
    """The command that prints the name of the node that it runs on."""

    def check(self) -> None:
        """Raise BurstError if such a lead cannot run here."""
        ...

    def uri(self, lead: LeadFiles) -> str:
        """Return where clients reach the lead."""
        ...

    def brokers(self, lead: LeadFiles) -> Mapping[str, Argv]:
        """Return the commands of rank 0 and of the lead's other own node, by host."""
        ...

    def read_jobs(self, text: str) -> tuple[JobSeen, ...]:
        """Return the jobs that `jobs` printed."""
        ...


class Embedded:
    """The stand-in for Flux."""

    name = "embedded"
    mode = "hold"
    preparing: tuple[Argv, ...] = ()
    user: Argv = (sys.executable, "-m", "burst.embedded")
    typed = "burst embedded"
    jobs: Argv = ("jobs", "--json")
    attach: Argv = ("attach",)
    show_host: Argv = ("printenv", "BURST_HOSTNAME")

    def check(self) -> None:
        """Need nothing."""

    def uri(self, lead: LeadFiles) -> str:
        """Return embedded://PATH."""
        return f"embedded://{_beside(lead, 'run')}/control"

    def brokers(self, lead: LeadFiles) -> Mapping[str, Argv]:
        """Return `burst embedded lead` and `follower`."""
        return {
            "lead-0": (
                *(*self.user, "lead", "--hostname", "lead-0"),
                *("--config", str(lead.config)),
                *("--rundir", str(_beside(lead, "run"))),
                *("--statedir", str(_beside(lead, "state"))),
            ),
            _OWN_NODE: tuple(
                embedded_follower_argv(lead.config, _OWN_NODE, _beside(lead, _OWN_NODE))
            ),
        }

    def read_jobs(self, text: str) -> tuple[JobSeen, ...]:
        """Read what `burst embedded jobs --json` prints."""
        return tuple(map(_of_embedded, msgspec.json.decode(text, type=list[JobInfo])))


class Flux:
    """Real brokers."""

    name = "flux"
    mode = "hold"
    preparing: tuple[Argv, ...] = ()
    user: Argv = ("flux",)
    typed = "flux"
    jobs: Argv = ("jobs", "-a", "--json")
    attach: Argv = ("job", "attach", "--read-only")
    show_host: Argv = ("flux", "getattr", "hostname")

    def check(self) -> None:
        """Need the program, and what the daemon speaks with it by."""
        if shutil.which("flux") is None:
            raise BurstError(
                "there is no flux on PATH",
                "install flux-core 0.84 or later, or put its bin directory on PATH;"
                " without --flux the demo needs none",
            )
        import_core()

    def uri(self, lead: LeadFiles) -> str:
        """Return local://PATH."""
        return lead.uri

    def brokers(self, lead: LeadFiles) -> Mapping[str, Argv]:
        """Return what `burst lead init` prints, with a rundir for each on one host."""
        rundir = _beside(lead, _OWN_NODE)
        rundir.mkdir(mode=0o700, exist_ok=True)
        node = flux_follower_argv("flux", lead.config, _OWN_NODE, rundir)
        return {"lead-0": lead.commands[0], _OWN_NODE: tuple(node)}

    def read_jobs(self, text: str) -> tuple[JobSeen, ...]:
        """Read what `flux jobs -a --json` prints."""
        return tuple(map(_of_flux, msgspec.json.decode(text)["jobs"]))


class FluxScheduler(Flux):
    """Real brokers, and the scheduler that steps over jobs whose nodes are absent."""

    mode = "scheduler"
    preparing: tuple[Argv, ...] = (
        ("module", "remove", "sched-simple"),
        (
            "module",
            "load",
            str(files("burst") / "flux_setup" / "files" / "sched-burst.py"),
        ),
    )


def _beside(lead: LeadFiles, name: str) -> Path:
    return lead.config.parent / name


def _of_embedded(job: JobInfo) -> JobSeen:
    held = job.state.value == "sched" and not job.urgency
    memo = job.memo.get("burst", {})
    last = job.events[-1].timestamp if job.events else 0.0
    return JobSeen(
        id=job.id,
        nodes=job.nnodes,
        state="held" if held else job.result or job.state.value,
        hosts=format_hostlist(job.hosts),
        word=memo.get("state", ""),
        why=memo.get("why", ""),
        t_submit=job.t_submit,
        t_start=job.t_start,
        t_end=job.t_finish or (last if job.result else 0.0),
    )


def _of_flux(job: Mapping[str, Any]) -> JobSeen:
    state = str(job["status"]).lower()
    memo = job.get("annotations", {}).get("user", {}).get("burst", {})
    return JobSeen(
        id=JobId(job["id"]),
        nodes=job["nnodes"],
        state="held" if state == "sched" and not job["urgency"] else state,
        hosts=job.get("nodelist", ""),
        word=memo.get("state", ""),
        why=memo.get("why", ""),
        t_submit=job["t_submit"],
        t_start=job.get("t_run", 0.0),
        t_end=job.get("t_cleanup", 0.0),
    )
