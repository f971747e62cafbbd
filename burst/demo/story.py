# SPDX-License-Identifier: MIT
"""What happens in which order, each step by the command that a user has for it."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Callable
from functools import partial

import msgspec

from burst.demo.parts import HUGE, LARGE, LOCAL, PARTS, PASSING, SMALL, Part
from burst.demo.record import Act
from burst.demo.scene import IMPOSSIBLE, JobSeen, Row, Scene
from burst.demo.setup import Setup
from burst.errors import BurstError, LeadError, NoDaemon
from burst.lead import Lead
from burst.model.jobid import JobId, format_f58, parse_jobid
from burst.runtime.connect import connect

STORY_S = 45.0
"""The story takes ten seconds; a minute with what comes after it is too long."""
_LOOK_EVERY_S = 0.1
# The service answers in a millisecond; a listing is a process of Python.
_LIST_EVERY_S = 1.0
_PORT_ATTEMPTS = 3
_PORT_TAKEN = ("Address already in use", "cannot listen on")
_STATUS_S = 5.0
# Waits for its file for as long as a demo could take, and never for ever.
_WAIT_FOR_FILE = (
    'n=0; until [ -e {file} ]; do n=$((n+1)); [ "$n" -gt 300 ] && exit 1; sleep 0.2;'
    " done; {show_host}"
)


class Story:
    """Told once, by `tell`; what it has come to so far is kept here."""

    def __init__(self, setup: Setup, patience: float = STORY_S) -> None:
        self._kind = setup.kind
        self._place = setup.place
        self._processes = setup.processes
        self._view = setup.view
        self._stop = setup.stop
        self._patience = patience
        self._ends = time.monotonic() + patience
        self._lead: Lead | None = None
        self._serving = False
        self._listed = 0.0
        self._outputs: dict[JobId, str] = {}
        self._jobs: dict[Part, JobId] = {}
        self.scene = Scene()
        self.slots: list[Row] = []
        """As the daemon showed them last."""
        self.uri = ""
        self.owner = ""
        """Tag of all that is made for the lead; empty before it is up."""

    @property
    def acts(self) -> tuple[Act, ...]:
        """The jobs so far."""
        seen = {job.id: job for job in self.scene.jobs}
        return tuple(
            Act(part=part, job=seen[job], output=self._outputs.get(job, ""))
            for part, job in self._jobs.items()
            if job in seen
        )

    @property
    def unfinished(self) -> list[JobId]:
        """Jobs that were submitted and are not known to have ended."""
        ended = {job.id for job in self.scene.jobs if job.ended}
        return [job for job in self._jobs.values() if job not in ended]

    def tell(self) -> None:
        """Go through the story. Raises BurstError, Interrupted."""
        try:
            self._go_through()
        except BurstError:
            # Where the lead or the daemon has ended, its last words say more.
            self._stop.pause(_LOOK_EVERY_S)
            self._processes.check()
            raise

    def close(self) -> None:
        """Let go of the lead."""
        if self._lead:
            self._lead.close()
            self._lead = None

    def say(self, now: str) -> None:
        """Say what happens from now on."""
        self._show(now=now)

    def _go_through(self) -> None:
        self._start_lead()
        self._start_daemon()
        for part in PARTS:
            self._submit(part)
        self._wait("the bursts come and their jobs run", self._bursts_did_it)
        self._place.signal.touch()
        self._wait("the job on the lead's own nodes ends", lambda: self._ended(LOCAL))
        for part in (LOCAL, LARGE, SMALL):
            self._outputs[self._jobs[part]] = self._order(self._kind.attach, part)
        if self._kind.mode == "scheduler":
            self._show_passing()
        self._order(("cancel",), HUGE)
        self._wait("", lambda: self._ended(HUGE))
        self._wait("the bursts idle, drain and are reaped", self._all_gone)

    def _show_passing(self) -> None:
        """The second act: a job larger than what is up waits, and others pass it."""
        for part in PASSING:
            self._submit(part)
            self._wait("local jobs pass it", partial(self._ended, part))
            self._outputs[self._jobs[part]] = self._order(self._kind.attach, part)
        huge = self._seen(HUGE)
        if huge is None or huge.state != "sched":
            raise BurstError("the job larger than the instance did not wait for nodes")

    def _start_lead(self) -> None:
        """Start it with its other own node, on another port if one was just taken."""
        self.say(f"the {self._kind.name} lead starts, with two nodes of its own")
        attempts = 0
        while self._lead is None:
            attempts += 1
            files = self._place.write_lead()
            self.uri = self._kind.uri(files)
            for host, argv in self._kind.brokers(files).items():
                self._processes.start(host, argv)
            try:
                self._wait("", self._lead_is_up)
            except BurstError as error:
                taken = any(words in str(error) for words in _PORT_TAKEN)
                if not taken or attempts == _PORT_ATTEMPTS:
                    raise
                self._processes.end("lead-1", grace=2.0)
                self._processes.end("lead-0", grace=2.0)

    def _lead_is_up(self) -> bool:
        try:
            if self._lead is None:
                self._lead = connect(self.uri, "burstable")
                self._lead.listen(lambda: None)
                self.owner = self._lead.identity().owner
            return {0, 1} <= self._lead.observe().online
        except LeadError:
            # It is not there yet, or some part of it is not.
            self.close()
            return False

    def _start_daemon(self) -> None:
        for words in self._kind.preparing:
            self.say(f"{self._kind.typed} {shlex.join(words)}")
            self._processes.run((*self._kind.user, *words), self.uri)
        self.say(f"the daemon starts: burst daemon -c {self._place.settings}")
        self._place.write_settings(self.uri, self._kind.mode)
        argv = (sys.executable, "-m", "burst", "daemon")
        self._processes.start("daemon", (*argv, "-c", str(self._place.settings)))
        self._wait("", self._daemon_serves)

    def _daemon_serves(self) -> bool:
        assert self._lead is not None
        try:
            self._lead.call("ping", {}, timeout=_STATUS_S)
        except NoDaemon:
            return False
        self._serving = True
        return True

    def _submit(self, part: Part) -> None:
        words = self._kind.show_host
        typed = shlex.join(("submit", *part.options, *words))
        if part is LOCAL:
            file = shlex.quote(str(self._place.signal))
            wait = _WAIT_FOR_FILE.format(file=file, show_host=shlex.join(words))
            words = ("sh", "-c", wait)
            typed = shlex.join(("submit", *part.options, "sh", "-c", "..."))
        self.say(f"{self._kind.typed} {typed}")
        argv = (*self._kind.user, "submit", *part.options, *words)
        self._jobs[part] = parse_jobid(self._processes.run(argv, self.uri))
        self._look()

    def _bursts_did_it(self) -> bool:
        for part in (LARGE, SMALL):
            job = self._seen(part)
            if job and job.ended and job.state != "completed":
                raise BurstError(f"job {format_f58(job.id)} ended as {job.state}")
        huge = self._seen(HUGE)
        told = huge is not None and huge.word == IMPOSSIBLE
        return told and self._ended(LARGE) and self._ended(SMALL)

    def _all_gone(self) -> bool:
        return all(burst["state"] == "inactive" for burst in self.scene.bursts) and all(
            slot["state"] == "free" for slot in self.slots
        )

    def _order(self, words: tuple[str, ...], part: Part) -> str:
        """Type a command about a job, and return what it prints."""
        words = (*words, format_f58(self._jobs[part]))
        self.say(f"{self._kind.typed} {' '.join(words)}")
        return self._processes.run((*self._kind.user, *words), self.uri)

    def _wait(self, now: str, done: Callable[[], bool]) -> None:
        """Look again and again until it is done. Raises BurstError, Interrupted."""
        if now:
            self.say(now)
        while not done():
            self._stop.pause(_LOOK_EVERY_S)
            self._processes.check()
            self._look()
            if time.monotonic() > self._ends:
                raise BurstError(f"{self.scene.now}: not within {self._patience:g} s")

    def _look(self) -> None:
        """Look at bursts and jobs. Raises BurstError if a burst has failed."""
        if not self._serving:
            return
        assert self._lead is not None
        status = self._lead.call("status", {}, timeout=_STATUS_S)
        self.slots = status["slots"]
        jobs = self.scene.jobs
        if self._jobs and time.monotonic() - self._listed > _LIST_EVERY_S:
            jobs = self._list()
            self._listed = time.monotonic()
        self._show(jobs=jobs, bursts=tuple(status["bursts"]))
        for burst in self.scene.bursts:
            if burst["result"] not in {None, "completed"}:
                raise BurstError(f"{burst['id']} {burst['result']}: {burst['note']}")

    def _list(self) -> tuple[JobSeen, ...]:
        argv = (*self._kind.user, *self._kind.jobs)
        text = self._processes.run(argv, self.uri)
        return tuple(sorted(self._kind.read_jobs(text), key=lambda job: job.id))

    def _show(self, **changes: object) -> None:
        self.scene = msgspec.structs.replace(self.scene, **changes)
        self._view.show(self.scene)

    def _seen(self, part: Part) -> JobSeen | None:
        wanted = self._jobs[part]
        return next((job for job in self.scene.jobs if job.id == wanted), None)

    def _ended(self, part: Part) -> bool:
        job = self._seen(part)
        return job is not None and job.ended
