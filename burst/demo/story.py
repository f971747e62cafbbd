# SPDX-License-Identifier: MIT
"""The commands of the demo in their order, and what it waits for between them."""

from __future__ import annotations

import json
import shlex
import sys
import time
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import tomli_w

from burst.core.burst_story import STAGES
from burst.demo.jobs import HUGE, JOBS, OWN, PASSING, SLOTS, DemoJob
from burst.demo.processes import MARK, Processes
from burst.errors import BurstError
from burst.extensions import StandIn
from burst.lead_setup.own_host import free_port
from burst.lead_setup.start_files import SITE
from burst.model.ranks import parse_hostlist
from burst.provider_type import usual_type
from burst.unread_output import write_while_read

STORY_S = 600.0
"""Seconds for all commands. They take about fifteen, and many times that on a busy
machine. All limits here are reached only if something hangs."""
_LOOK_EVERY_S = 0.3
_DAEMON_S = 120.0
_BROKER_S = 60.0
_GONE_S = 10.0

Row = Mapping[str, Any]


class Story:
    """The demo's steps. Call `tell` once, then `take_down` in any case."""

    def __init__(
        self,
        directory: Path,
        mode: str,
        stand_in: StandIn | None,
        limit_s: float = STORY_S,
    ) -> None:
        self.processes = Processes(directory)
        self.jobs: list[dict[str, Any]] = []
        """Id, nodes, state and output of each job, in the order of submission."""
        self.bursts: list[Row] = []
        """The bursts as rows of `burst status --json`."""
        self.timelines = ""
        """What `burst explain` prints about each burst."""
        self.directory = directory
        self.mode = mode
        self.lead = stand_in.name if stand_in else "flux"
        self._stand_in = stand_in
        self._user = stand_in.user if stand_in else ("flux",)
        self._ends = time.monotonic() + limit_s
        self._limit_s = limit_s
        self._slots: list[Row] = []
        self._said: dict[str, str] = {}
        self._lead_is_up = False

    def tell(self) -> None:
        """Run all commands. Raises BurstError."""
        try:
            self._start()
            for job in JOBS:
                self._submit(job)
            self._wait("the bursts run their jobs", _have_finished)
            for row in self.jobs[:-1]:
                self._attach(row)
            self._explain_huge()
            if self.mode == "scheduler":
                self._pass_huge()
            self._cancel(self.jobs[len(JOBS) - 1])
            self._wait("the bursts become idle, are drained and reaped", _are_gone)
            for burst in self.bursts:
                explain = ["burst", "explain", str(burst["id"])]
                text = self.processes.run(explain).stdout
                self.timelines += f"$ {shlex.join(explain)}\n{text}\n"
        except BurstError:
            # If a broker or the daemon has ended, its log says more.
            time.sleep(_LOOK_EVERY_S)
            self.processes.check()
            raise

    def take_down(self) -> tuple[int, int]:
        """End jobs, daemon and brokers in order.

        Returns how many processes and how many leased rank slots were left.
        """
        say("everything is taken down")
        slots = 0
        if self._lead_is_up:
            for row in self.jobs:
                # The daemon reaps no burst on which a job runs.
                if row["state"] not in {"completed", "failed", "canceled"}:
                    self.processes.run([*self._user, "cancel", row["id"]])
            self.processes.end("daemon", _DAEMON_S)
            found = self._status()
            slots = _leased(found["slots"] if found else self._slots)
        self.processes.end("lead-1", _BROKER_S)
        self.processes.end("lead-0", _BROKER_S)
        return self.processes.await_end(_GONE_S), slots

    def _start(self) -> None:
        """Write a lead's files and start its brokers and the daemon."""
        kind = "a stand-in for Flux" if self._stand_in else "Flux"
        say(f"a lead of two nodes, {kind}, is started")
        words = ["--hosts", OWN, "--cores", "1", "--gpus", "0"]
        for hosts in SLOTS:
            words += ["--slot", hosts]
        words += ["--address", "127.0.0.1", "--port", str(free_port())]
        if self.mode != "hold":
            words += ["--mode", self.mode]
        text = self._type("burst", "lead", "init", str(self.directory), *words)
        if self._stand_in:
            brokers = self._stand_in.brokers(self.directory, parse_hostlist(OWN))
            uri = self._stand_in.uri(self.directory)
        else:
            if self.mode != "hold":
                scripts = (self.directory / name for name in ("start", "env"))
                text = "".join(path.read_text() for path in scripts)
            brokers, uri = read_instructions(text)
        self._set_up()
        self.processes.environment["FLUX_URI"] = uri
        for number, argv in enumerate(brokers):
            self.processes.start(f"lead-{number}", argv)
        self._wait("", lambda _: True)
        self._lead_is_up = True
        command = ["burst", "daemon", "-c", str(self._settings)]
        say(f"$ {shlex.join(command)} &")
        self.processes.start("daemon", command)
        self._wait("", lambda status: status["daemon"] is not None)

    @property
    def _settings(self) -> Path:
        return self.directory / "burst.toml"

    def _set_up(self) -> None:
        """Set a short idle time and a private directory in burst.toml."""
        tables = tomllib.loads(self._settings.read_text())
        # For the case that the demo fails before the bursts are reaped.
        tables["daemon"] = {"on_stop": "reap"}
        limits = {"join": "5m", "idle": "2s", "reap": "1m"}
        tables["deadlines"] = limits
        tables["providers"][usual_type()] |= {
            "dir": str(self.directory / "f"),
            "provision": "5m",
            # Else no offer could ever serve HUGE, and it would fail in mode scheduler.
            "max_nodes": HUGE.nodes,
            "environment": {MARK: str(self.directory)},
        }
        self._settings.write_text(tomli_w.dumps(tables))

    def _submit(self, job: DemoJob) -> dict[str, Any]:
        stand_in = self._stand_in
        show = stand_in.tell_host if stand_in else ("flux", "getattr", "hostname")
        text = self._type(*self._user, "submit", *job.options(), *show)
        row = {"id": text.strip(), "nodes": job.nodes, "state": "sched", "output": ""}
        self.jobs.append(row)
        return row

    def _attach(self, row: dict[str, Any]) -> None:
        """Wait for a job's end; note its output and whether it succeeded."""
        attach = ["attach"] if self._stand_in else ["job", "attach", "--read-only"]
        command = [*self._user, *attach, row["id"]]
        say(f"$ {shlex.join(command)}")
        done = self.processes.run(command)
        _say_lines(done.stdout + done.stderr)
        row["output"] = done.stdout
        row["state"] = "failed" if done.returncode else "completed"

    def _explain_huge(self) -> None:
        """Check that burst says why the job waits that no burst can ever serve."""
        row = self.jobs[len(JOBS) - 1]
        text = self._type("burst", "explain", row["id"])
        if f"it needs {HUGE.nodes} nodes" not in text:
            raise BurstError(f"nothing says why job {row['id']} waits: {text}")

    def _pass_huge(self) -> None:
        """Submit jobs for own nodes, which the scheduler has to start before HUGE."""
        for job in PASSING:
            self._attach(self._submit(job))

    def _cancel(self, row: dict[str, Any]) -> None:
        self._type(*self._user, "cancel", row["id"])
        self._attach(row)
        if row["state"] == "failed":
            row["state"] = "canceled"

    def _type(self, *words: str) -> str:
        """Run a command; show and return what it prints. Raises BurstError."""
        say(f"$ {shlex.join(words)}")
        done = self.processes.run(words)
        if done.returncode:
            error = done.stderr.strip() or done.stdout.strip()
            raise BurstError(f"{shlex.join(words)}: status {done.returncode}: {error}")
        if words[1] != "lead":  # its instructions are followed, not shown
            _say_lines(done.stdout)
        return done.stdout

    def _wait(self, what: str, is_done: Callable[[Row], bool]) -> None:
        """Run `burst status` repeatedly until `is_done` is true of its answer.

        Raises BurstError once the time is over, whatever the next answer would be.
        """
        if what:
            say(what)
        while True:
            self.processes.check()
            if time.monotonic() > self._ends:
                what = what or "the lead and its daemon start"
                raise BurstError(f"{what}: not within {self._limit_s:g} s")
            found = self._status()
            if found:
                self._show(found)
                if is_done(found):
                    return
            time.sleep(_LOOK_EVERY_S)

    def _status(self) -> dict[str, Any] | None:
        """Return what `burst status` shows; None if it fails, as without a lead."""
        words = ["burst", "status", "-a", "--json", "-c", str(self._settings)]
        done = self.processes.run(words)
        return None if done.returncode else dict(json.loads(done.stdout))

    def _show(self, found: Row) -> None:
        """Print the state of each burst. Raises BurstError if one has failed."""
        self.bursts, self._slots = found["bursts"], found["slots"]
        for burst in self.bursts:
            online = f"{burst['online']} of {burst['nodes']} nodes online"
            state = burst["state"]
            line = f"{burst['id']}: {burst['result'] or f'{state}, {online}'}"
            if state == "inactive":
                line = f"{burst['id']}: it is gone"
            if self._said.get(burst["id"]) != line:
                say(line)
                self._said[burst["id"]] = line
            if burst["result"] not in {None, "completed"}:
                raise BurstError(f"{burst['id']} {burst['result']}: {burst['note']}")


def read_instructions(text: str) -> tuple[list[list[str]], str]:
    """Return the brokers' commands and FLUX_URI from the text of `burst lead init`.

    It prints them or, with a mode, writes them to scripts.
    """
    starts = [
        shlex.split(li.strip().removeprefix("exec "), comments=True)
        for li in text.splitlines()
        if "# on" in li or li.strip().startswith("exec ")
    ]
    uri = next(li for li in text.splitlines() if "export FLUX_URI=" in li)
    # The demo starts the daemon itself, to end it before the lead, and has none of the
    # site's variables of Flux.
    return [
        [w.replace(SITE, "") for w in argv if not w.startswith("FLUX_RC_EXTRA=")]
        for argv in starts
    ], shlex.split(uri.partition("=")[2])[0]


def burst_faults(bursts: list[Row], mode: str) -> list[str]:
    """Return what is wrong with the ends of the bursts."""
    # A scheduler that steps over jobs does not need them held.
    stages = [s for s in STAGES if mode == "hold" or s not in {"hold", "released"}]
    found = []
    if sorted(burst["nodes"] for burst in bursts) != [2, 4]:
        sizes = ", ".join(str(burst["nodes"]) for burst in bursts) or "none"
        found.append(f"bursts of 4 and of 2 nodes were expected, not: {sizes}")
    for burst in bursts:
        missing = [stage for stage in stages if stage not in burst["timeline"]]
        if missing:
            found.append(f"burst {burst['id']} was never {', '.join(missing)}")
        if burst["result"] != "completed":
            found.append(f"burst {burst['id']} ended as {burst['result']}")
    return found


def say(line: str) -> None:
    """Print a line of progress."""
    # If nobody reads any more, the demo still takes everything down.
    write_while_read(sys.stderr, f"{line}\n")


def _say_lines(text: str) -> None:
    for line in text.splitlines():
        say(f"    {line}")


def _have_finished(found: Row) -> bool:
    done = [row for row in found["bursts"] if "finished" in row["timeline"]]
    return len(done) == len(SLOTS)


def _are_gone(found: Row) -> bool:
    live = [row for row in found["bursts"] if row["state"] != "inactive"]
    return not live and not _leased(found["slots"])


def _leased(slots: list[Row]) -> int:
    return sum(slot["state"] == "leased" for slot in slots)
