# SPDX-License-Identifier: MIT
"""Reads the settings again while the daemon runs: all of them, or none.

Providers are made on a thread of their own, where they may fail or hang. The daemon
ticks meanwhile, and changes to the new settings between two ticks.
"""

from __future__ import annotations

import queue
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from burst import log
from burst.config import Settings
from burst.errors import BurstError, ConfigError
from burst.runtime.engine_config import ConfigMaker
from burst.runtime.session import Session
from burst.wakeup import WakeUp

Row = dict[str, Any]
# What a daemon keeps as long as it runs.
_FIXED = ("lead.uri", "http.listen")


class _Reload(NamedTuple):
    """A reload under way, and who waits for it."""

    making: ConfigMaker
    waiting: list[Future[Row]]


class SettingsReloader:
    """Reads the settings again when asked. Call `tick`, `cancel` from one thread."""

    def __init__(
        self,
        read: Callable[[], Settings],
        path: Path | None,
        wakeup: WakeUp,
        prepare: Callable[[Settings], Callable[[], None]],
    ) -> None:
        """`prepare` prepares the changes outside the session, and returns a function
        that makes them. It raises BurstError.
        """
        self._prepare = prepare
        self._read = read
        self._path = path
        self._wakeup = wakeup
        self._signaled = False
        self._asked: queue.SimpleQueue[Future[Row]] = queue.SimpleQueue()
        self._reload: _Reload | None = None

    def ask(self) -> Future[Row]:
        """Have the settings read again; the future gets what changed, or the error."""
        future: Future[Row] = Future()
        self._asked.put(future)
        self._wakeup.wake()
        return future

    def request_by_signal(self) -> None:
        """Have the settings read again. Takes no lock, so a signal handler may."""
        self._signaled = True
        self._wakeup.wake()

    def tick(self, session: Session) -> None:
        """Finish the reload under way, then begin one that was requested meanwhile."""
        if self._reload is not None:
            self._end(session, self._reload)
        if self._reload is None:
            waiting = self._take()
            if waiting or self._signaled:
                self._signaled = False
                self._begin(session, waiting)

    def time_left(self) -> float | None:
        """Return the seconds left for the reload under way, None if there is none."""
        return None if self._reload is None else self._reload.making.time_left()

    def cancel(self) -> None:
        """Give up the reload under way; its callers get an error."""
        waiting = self._take()
        if self._reload is not None:
            waiting += self._reload.waiting
            self._reload = None
        for future in waiting:
            what = "not reloaded: the daemon is stopping, or lost its lead"
            future.set_exception(
                BurstError(what, "run burst reload again once it serves")
            )

    def with_file(self, error: ConfigError) -> ConfigError:
        """Return the error with the name of the file, where it has only the key."""
        if self._path is None or str(self._path) in error.what:
            return error
        return ConfigError(f"{self._path}: {error.what}", error.advice)

    def _take(self) -> list[Future[Row]]:
        taken = []
        while not self._asked.empty():
            future = self._asked.get()
            if future.set_running_or_notify_cancel():
                taken.append(future)
        return taken

    def _begin(self, session: Session, waiting: list[Future[Row]]) -> None:
        try:
            if self._path is None:
                raise ConfigError("there is no settings file to reload")
            settings = self._read()
            changed = changed_keys(session.settings, settings)
            fixed = [key for key in changed if key in _FIXED]
            if fixed:
                raise ConfigError(
                    f"a change of {', '.join(fixed)} needs a restart of the daemon"
                )
            making = session.make_config(settings)
        except BurstError as error:
            self._refuse(error, waiting)
        else:
            self._reload = _Reload(making, waiting)

    def _end(self, session: Session, reload: _Reload) -> None:
        if not reload.making.is_due():
            return
        old = session.settings
        try:
            config = reload.making.result()
            changed = changed_keys(old, config.settings)
            commit = self._prepare(config.settings)
            late = session.replace(config)
            commit()
        except BurstError as error:
            self._reload = None
            self._refuse(error, reload.waiting)
            return
        # Not earlier: after an error of ours, `cancel` answers the callers that wait.
        self._reload = None
        log.start(config.settings.daemon.log)
        log.say("reloaded %s; changed: %s", self._path, ", ".join(changed) or "nothing")
        for name in late:
            log.warn(
                "provider %s has not returned from a call yet; its new settings count"
                " once it has",
                name,
            )
        for future in reload.waiting:
            future.set_result({"changed": changed, "late": late})

    def _refuse(self, error: BurstError, waiting: list[Future[Row]]) -> None:
        told = self.with_file(error) if isinstance(error, ConfigError) else error
        log.warn("not reloaded, the old settings stay in use: %s", told)
        for future in waiting:
            future.set_exception(told)


def changed_keys(before: Settings, after: Settings) -> list[str]:
    """Return the keys that differ, without their values: there may be secrets."""
    tables = [field.name for field in msgspec.structs.fields(Settings)]
    pairs = {name: (getattr(before, name), getattr(after, name)) for name in tables}
    old, new = pairs.pop("packages")
    pairs |= {name: (old.get(name), new.get(name)) for name in sorted({*old, *new})}
    return [key for name, pair in pairs.items() for key in _changed_in(name, *pair)]


def _changed_in(table: str, old: Any, new: Any) -> list[str]:
    """Return the keys of a table that differ; the table's name if it has no keys."""
    if isinstance(old, msgspec.Struct) and isinstance(new, msgspec.Struct):
        keys = [field.name for field in msgspec.structs.fields(old)]
        return [f"{table}.{k}" for k in keys if getattr(old, k) != getattr(new, k)]
    if isinstance(old, Mapping):
        names = sorted(old.keys() | new.keys())
        return [f"{table}.{n}" for n in names if old.get(n) != new.get(n)]
    # Tables without names of their own, such as [[policy]], and of packages.
    return [] if old == new else [table]
