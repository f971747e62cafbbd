# SPDX-License-Identifier: MIT
"""The daemon: connects, turns, reloads, stops. What it decides is in burst.core."""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import TypeVar

from burst import __version__, log
from burst.config import Settings, load
from burst.core.commands import bring_down, held_jobs
from burst.core.reconcile import Decisions
from burst.core.world import Books, World
from burst.errors import (
    BurstError,
    ConfigError,
    LeadError,
    LeadGone,
    StoreError,
)
from burst.lead import Lead
from burst.model.fsd import format_fsd
from burst.shell.address import check_address
from burst.shell.bell import Bell
from burst.shell.clock import Clock
from burst.shell.connect import connect
from burst.shell.runtime import Runtime

# Between two attempts to reach a lead that went away, in seconds.
_KNOCK_EVERY = 1.0
# After the store refused a write, in seconds: a full disk does not empty faster.
_STORE_PAUSE = 5.0

_T = TypeVar("_T")
Connector = Callable[[str, str], Lead]


class Daemon:
    """One process beside one lead. `run` in the main thread; signals do the rest."""

    def __init__(
        self, settings: Settings, path: Path | None, connector: Connector = connect
    ) -> None:
        self._settings = settings
        self._path = path
        self._connect = connector
        # Plain flags and a bell: signal handlers may touch nothing that has a lock.
        self._bell = Bell()
        self._stopping = False
        self._impatient = False
        self._reload_asked = False

    def run(self) -> None:
        """Serve the lead until told to stop, or until it stays away.

        Raises ServiceTaken, ConfigError, StoreError, LeadError: cannot even begin.
        """
        lead = self._find()
        while lead is not None:
            self._serve(lead)
            lead = None if self._stopping else self._find_again()

    def stop(self) -> None:
        """Have `run` come to its end. The second time, leave at once what it reaps."""
        self._impatient = self._stopping
        self._stopping = True
        self._bell.ring()

    def reload(self) -> None:
        """Have the settings read again before the next turn."""
        self._reload_asked = True
        self._bell.ring()

    def handle_signals(self) -> None:
        """Stop on SIGTERM and SIGINT, reload on SIGHUP. From the main thread."""

        def on_stop(_: int, __: FrameType | None) -> None:
            self.stop()

        def on_reload(_: int, __: FrameType | None) -> None:
            self.reload()

        signal.signal(signal.SIGTERM, on_stop)
        signal.signal(signal.SIGINT, on_stop)
        signal.signal(signal.SIGHUP, on_reload)

    @property
    def _attribute(self) -> str:
        return self._settings.intake.attribute

    def _serve(self, lead: Lead) -> None:
        """Turn until told to stop, or the lead is gone."""
        runtime = None
        try:
            if not self._await_address(lead):
                return
            runtime = Runtime(lead, self._settings, self._bell, self.reload)
            runtime.begin()
            identity = lead.identity()
            log.say(
                "burst %s serves %s %s as %s",
                __version__,
                identity.kind,
                identity.uri,
                identity.owner,
            )
            while not self._stopping:
                self._turn(runtime)
            self._stop(runtime)
        except LeadGone as error:
            log.say("%s", error, level=logging.WARNING)
        finally:
            if runtime:
                runtime.close()
            lead.close()

    def _turn(self, runtime: Runtime) -> None:
        if self._reload_asked:
            self._reload_asked = False
            self._reload_now(runtime)
        try:
            runtime.turn()
        except StoreError as error:
            log.say("nothing is done: %s", error, level=logging.ERROR)
            self._bell.wait(_STORE_PAUSE)

    def _reload_now(self, runtime: Runtime) -> None:
        if self._path is None:
            log.say("there is no file to reload", level=logging.WARNING)
            return
        try:
            settings = load(self._path)
            if settings.lead.uri != self._settings.lead.uri or (
                settings.intake.attribute != self._attribute
            ):
                raise ConfigError(
                    f"{self._path}: lead.uri and intake.attribute change by a restart"
                )
            runtime.replace(settings)
        except BurstError as error:
            text = "the old settings stay: %s"
            log.say(text, error, level=logging.WARNING)
            return
        self._settings = settings
        log.start(settings.daemon.log)
        log.say("reloaded %s", self._path)

    def _stop(self, runtime: Runtime) -> None:
        """End as `[daemon] on_stop` says. Held jobs stay held: see burst release."""
        if self._settings.daemon.on_stop == "reap":
            self._reap_all(runtime)
        books = runtime.engine.snapshot.books
        log.say(
            "stopped; live bursts: %d, held jobs: %d; all stay as they are",
            len(books.live),
            len(held_jobs(books)),
        )

    def _reap_all(self, runtime: Runtime) -> None:
        """Take everything down and wait until it is gone, or until told again."""
        limit = self._settings.deadlines.reap
        ends = runtime.clock() + limit
        log.say("taking all bursts down, for at most %s", format_fsd(limit))
        runtime.engine.post(take_all_down)
        runtime.turn(0)
        while runtime.engine.snapshot.books.live and not self._impatient:
            if runtime.clock() > ends:
                log.say("not all gone by the reap deadline", level=logging.WARNING)
                return
            runtime.turn(1.0)

    def _find(self) -> Lead | None:
        """Return the lead, None if told to stop meanwhile.

        Raises LeadError if it is not there by the deadline, at once if there is none.
        """
        limit = self._settings.deadlines.lead
        try:
            return self._until(limit, self._knock)
        except LeadError as error:
            if not limit:
                raise
            raise LeadError(
                f"the lead was not there within {format_fsd(limit)}: {error}",
                "deadlines.lead sets how long the daemon waits for it to start",
            ) from error

    def _find_again(self) -> Lead | None:
        """Return the lead once it is back, None if told to stop meanwhile.

        Raises LeadError if it stays away.
        """
        limit = self._settings.lead.reconnect
        log.say("looking for the lead again, for at most %s", format_fsd(limit))
        try:
            return self._until(limit, self._knock)
        except LeadError as error:
            raise LeadError(
                f"the lead did not come back within {format_fsd(limit)}: {error}",
                "start the daemon with the lead; lead.reconnect sets how long it waits",
            ) from error

    def _knock(self) -> Lead:
        return self._connect(self._settings.lead.uri, self._attribute)

    def _await_address(self, lead: Lead) -> bool:
        """Return True once followers could reach the lead at the address that is set.

        Nothing is spent on followers before. False if told to stop meanwhile. Raises
        LeadError past the deadline.
        """
        if not self._settings.lead.address:
            return True
        limit = self._settings.deadlines.address
        identity = lead.identity()
        try:
            return bool(
                self._until(limit, lambda: check_address(identity, self._settings))
            )
        except BurstError as error:
            raise LeadError(
                f"followers could not reach the lead within {format_fsd(limit)}:"
                f" {error}",
                "`burst doctor` looks again; deadlines.address sets how long the"
                " daemon waits",
            ) from error

    def _until(self, limit: float, attempt: Callable[[], _T]) -> _T | None:
        """Return what the attempt does once it succeeds, None if told to stop.

        It is made again and again; past the limit, what it raises is raised.
        """
        clock, said = Clock(), ""
        ends = clock() + limit
        while not self._stopping:
            try:
                return attempt()
            except BurstError as error:
                if clock() >= ends:
                    raise
                if str(error) != said:
                    said = str(error)
                    log.say("waiting, for at most %s: %s", format_fsd(limit), said)
            self._bell.wait(_KNOCK_EVERY)
        return None


def take_all_down(
    books: Books, _: World, __: Settings, now: float
) -> tuple[Decisions, None]:
    """Take every live burst down; a command for `Engine.post`."""
    decisions = Decisions(books=books, events=(), actions=(), verdicts={})
    for burst in books.live:
        made = bring_down(decisions.books, burst.id, "the daemon is stopping", now)
        decisions = Decisions(
            books=made.books,
            events=(*decisions.events, *made.events),
            actions=(*decisions.actions, *made.actions),
            verdicts={},
        )
    return decisions, None
