# SPDX-License-Identifier: MIT
"""Reads the settings again while the daemon goes on: wholly, or not at all.

What is new is made on a thread of its own, where it may fail in any way, or hang. The
daemon turns meanwhile, and changes over between two ticks.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import msgspec

from burst import log
from burst.config import Settings
from burst.errors import BurstError, ConfigError
from burst.model.fsd import format_fsd
from burst.runtime.session import ProviderSetup, Session
from burst.wakeup import WakeUp

Row = dict[str, Any]


class _Making:
    """What a thread makes of new settings, and who waits for it."""

    def __init__(
        self,
        settings: Settings,
        make: Callable[[], ProviderSetup],
        wake: Callable[[], None],
        waiting: list[Future[Row]],
    ) -> None:
        self.settings = settings
        self.waiting = waiting
        self.ends = time.monotonic() + settings.deadlines.reload
        self._made: list[ProviderSetup | Exception] = []
        self._make, self._wake = make, wake
        # A daemon thread: what hangs must not keep the daemon from its end.
        threading.Thread(target=self._run, name="reload", daemon=True).start()

    def result(self) -> ProviderSetup | None:
        """Return what was made, None as long as it is not. Raises BurstError."""
        if self._made:
            found = self._made[0]
            if isinstance(found, Exception):
                raise found
            return found
        if time.monotonic() > self.ends:
            limit = format_fsd(self.settings.deadlines.reload)
            raise ConfigError(
                f"the providers were not made of the new settings within {limit}",
                "burst doctor looks at each; deadlines.reload sets the time they have",
            )
        return None

    def _run(self) -> None:
        try:
            self._made.append(self._make())
        except BurstError as error:
            self._made.append(error)
        except (Exception, SystemExit) as error:  # noqa: BLE001  whatever a plug-in does
            log.failure("the settings cannot be used", error=error)
            self._made.append(ConfigError(f"{type(error).__name__}: {error}"))
        self._wake()


class SettingsReloader:
    """Reads the settings again when asked. Call `tick`, `cancel` from one thread."""

    def __init__(
        self, read: Callable[[], Settings], path: Path | None, wakeup: WakeUp
    ) -> None:
        self._read = read
        self._path = path
        self._wakeup = wakeup
        self._signaled = False
        self._asked: queue.SimpleQueue[Future[Row]] = queue.SimpleQueue()
        self._making: _Making | None = None

    def ask(self) -> Future[Row]:
        """Have the settings read again; the future tells what came of it."""
        future: Future[Row] = Future()
        self._asked.put(future)
        self._wakeup.wake()
        return future

    def request_by_signal(self) -> None:
        """Have the settings read again. Takes no lock, so a signal handler may."""
        self._signaled = True
        self._wakeup.wake()

    def tick(self, session: Session) -> None:
        """Begin what is asked for, or end what is made by now."""
        if self._making is None:
            waiting = self._take()
            if waiting or self._signaled:
                self._signaled = False
                self._begin(session, waiting)
        else:
            self._end(session, self._making)

    def time_left(self) -> float | None:
        """Return for how long a reload under way may take, in seconds; None if none."""
        if self._making is None:
            return None
        return max(0.0, self._making.ends - time.monotonic())

    def cancel(self) -> None:
        """Give up what is under way, and tell who waits for it."""
        waiting = self._take()
        if self._making is not None:
            waiting += self._making.waiting
            self._making = None
        for future in waiting:
            what = "the daemon is stopping, or has lost its lead"
            future.set_exception(BurstError(what, "burst reload asks again"))

    def with_file(self, error: ConfigError) -> ConfigError:
        """Return the error with the file in it, where it names only the key."""
        if self._path is None or str(self._path) in error.what:
            return error
        return ConfigError(f"{self._path}: {error.what}", error.advice)

    def _take(self) -> list[Future[Row]]:
        taken = []
        while not self._asked.empty():
            taken.append(self._asked.get())
        return taken

    def _begin(self, session: Session, waiting: list[Future[Row]]) -> None:
        try:
            if self._path is None:
                raise ConfigError("no file was given that could be reloaded")
            settings = self._read()
            old = session.settings
            if (settings.lead.uri, settings.intake.attribute) != (
                old.lead.uri,
                old.intake.attribute,
            ):
                raise ConfigError("lead.uri and intake.attribute change by a restart")
            make = session.provider_maker(settings)
        except BurstError as error:
            self._refuse(error, waiting)
        else:
            self._making = _Making(settings, make, self._wakeup.wake, waiting)

    def _end(self, session: Session, making: _Making) -> None:
        old = session.settings
        try:
            made = making.result()
            if made is None:
                return
            late = session.replace(making.settings, made)
        except BurstError as error:
            self._making = None
            self._refuse(error, making.waiting)
            return
        self._making = None
        log.start(making.settings.daemon.log)
        changed = changed_keys(old, making.settings)
        log.say("reloaded %s; changed: %s", self._path, ", ".join(changed) or "nothing")
        for name in late:
            log.say(
                "provider %s has not answered its last call yet; it gets no other"
                " before it has",
                name,
                level=logging.WARNING,
            )
        for future in making.waiting:
            future.set_result({"changed": changed, "late": late})

    def _refuse(self, error: BurstError, waiting: list[Future[Row]]) -> None:
        told = self.with_file(error) if isinstance(error, ConfigError) else error
        log.say("the old settings stay: %s", told, level=logging.WARNING)
        for future in waiting:
            future.set_exception(told)


def changed_keys(before: Settings, after: Settings) -> list[str]:
    """Return the keys that differ, without their values: there may be secrets."""
    changed = []
    for table in msgspec.structs.fields(Settings):
        old, new = getattr(before, table.name), getattr(after, table.name)
        if table.name == "providers":
            names = sorted(old.keys() | new.keys())
            changed += [f"providers.{n}" for n in names if old.get(n) != new.get(n)]
            continue
        for key in msgspec.structs.fields(type(old)):
            if getattr(old, key.name) != getattr(new, key.name):
                changed.append(f"{table.name}.{key.name}")
    return changed
