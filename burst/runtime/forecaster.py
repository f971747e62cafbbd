# SPDX-License-Identifier: MIT
"""Estimates when pending jobs start on own nodes, on a thread of its own.

It listens to all jobs of the lead; each tick gives it the newest state of all else.
After a change it estimates anew, at most once per `[daemon] forecast`, and with at most
a twentieth of one core's time. If the estimates have changed, it wakes the daemon; the
next tick has them in its world.

An estimate that depends on the end of a running job is dropped once that job ends.

Ticks judge jobs by the estimates made after a job was submitted or has ended, or own
nodes came or went. Estimates made for other reasons, such as a job that runs longer
than expected, are told to users, but ticks judge by them only once an hour has passed
and a job is late (`judged_again_at`).
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping
from queue import SimpleQueue

import msgspec

from burst import log
from burst.config import Settings
from burst.core.forecast.forecast import forecast, own_nodes_queue
from burst.core.records import Records
from burst.core.tick import TickResult
from burst.core.world import World
from burst.errors import LeadError
from burst.lead import WholeQueue
from burst.model.active_job import ActiveJob
from burst.model.jobid import JobId
from burst.runtime.forecast_pass import (
    Forecasts,
    Judged,
    Line,
    PassInputs,
    bursts_assumed,
    differ,
    judgeable,
    next_late,
    without,
)
from burst.runtime.run_log import RunLog

_SHARE = 20
"""The pause after a pass is at least so many times as long as the pass took."""
_PAUSE_S = 2.0
"""Seconds between passes if `[daemon] forecast` is off and a rule needs forecasts."""


class Forecaster:
    """Runs the thread. The lead calls it as a `QueueListener`, the engine the rest."""

    def __init__(
        self,
        lead: WholeQueue,
        wake: Callable[[], None],
        clock: Callable[[], float],
        tell_error: Callable[[float], None] = lambda _: None,
    ) -> None:
        """`tell_error` is that of RunLog, called on the forecaster's thread."""
        self._lead = lead
        self._wake = wake
        self._clock = clock
        self._pause = _PAUSE_S
        self._tell_error = tell_error
        self._runs = RunLog(tell_error=tell_error)
        self._ended: SimpleQueue[ActiveJob] = SimpleQueue()
        self._news = threading.Condition()
        # All below are read and written with `_news` held.
        self._closing = False
        self._dirty = False
        self._owed_since: float | None = None
        """Time of the first change that no forecast includes yet; None: no change."""
        self._inputs: PassInputs | None = None
        self._settings = Settings()
        self._found: Forecasts | None = None
        self._over: set[JobId] = set()
        """Jobs that ended since the pass that is under way began."""
        self._awaited: dict[JobId, list[JobId]] = {}
        """By running job: the jobs of `_found` that start once it has ended."""
        self._texts: dict[str, str] = {}
        """Records to be stored."""
        self._thread: threading.Thread | None = None

    # For the engine's thread.

    def restore(self, texts: Mapping[str, str]) -> None:
        """Load what an earlier daemon stored. Call it before `start`."""
        self._runs = RunLog(texts, self._tell_error)

    def start(self, settings: Settings) -> None:
        """Start the thread, or go on with other settings."""
        self.use(settings)
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._run, name="forecaster", daemon=True
            )
            self._thread.start()

    def use(self, settings: Settings) -> None:
        """Use these settings from now on."""
        pause = settings.daemon.forecast
        with self._news:
            self._settings = settings
            self._pause = _PAUSE_S if math.isinf(pause) else pause
            self._closing = False

    def observe(self, records: Records, world: World, decided: TickResult) -> None:
        """Take what the tick saw. If it could not read the lead, drop all estimates."""
        with self._news:
            if world.lead is None:
                self._inputs = None
                self._forget()
                return
            before = self._inputs
            self._inputs = PassInputs.of(records, world, decided.decisions)
            if before is None or differ(before, self._inputs):
                self._mark()

    def current(self) -> Forecasts | None:
        """Return the last forecasts; None if there are none. From any thread."""
        with self._news:
            return self._found

    def owed_since(self) -> float | None:
        """Return since when a forecast is owed; None if nothing has changed."""
        with self._news:
            return self._owed_since

    def take_texts(self) -> dict[str, str]:
        """Return records to be stored now, if there are any, by key."""
        with self._news:
            texts, self._texts = self._texts, {}
            return texts

    def close(self) -> None:
        """End the thread once its pass is over. It may be started again."""
        with self._news:
            self._closing = True
            self._forget()
            self._news.notify_all()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    # For the lead's thread: `burst.lead.QueueListener`.

    def changed(self) -> None:
        """See `burst.lead.QueueListener`."""
        if not self._dirty:
            with self._news:
                self._mark()

    def ended(self, job: ActiveJob) -> None:
        """See `burst.lead.QueueListener`."""
        self._ended.put(job)
        with self._news:
            self._over.add(job.id)
            dropped = self._drop({job.id})
            self._mark()
        if dropped:
            self._wake()

    def lost(self) -> None:
        """See `burst.lead.QueueListener`."""
        with self._news:
            self._forget()
            self._mark()

    # On its own thread.

    def _run(self) -> None:
        pause = 0.0
        while self._wait(pause):
            began = time.monotonic()
            self.make_pass()
            pause = max(self._pause, _SHARE * (time.monotonic() - began))

    def make_pass(self) -> None:
        """Estimate once: on its own thread, or on the engine's if that never ran."""
        with self._news:
            self._dirty = False
            self._over.clear()
        try:
            found = self._estimate()
        except LeadError:
            # The engine reads the lead, too, and logs the error.
            found = None
        except Exception as error:  # noqa: BLE001 - the thread must go on
            log.failure("estimating when jobs start", error=error)
            found = None
        self._publish(found)

    def _wait(self, pause: float) -> bool:
        """Wait `pause` seconds, then until there is work; return False to end."""
        with self._news:
            self._news.wait_for(lambda: self._closing, pause)
            while not self._closing and not (self._dirty and self._inputs):
                if not self._news.wait(self.time_left()) and self._inputs:
                    break
            return not self._closing

    def time_left(self) -> float | None:
        """Return the seconds until a job is late, or jobs are judged anew.

        None if that is not known.
        """
        if self._found is None or self._inputs is None:
            return None
        found = self._found
        due = min(next_late(found.starts, found.at), found.judged.until)
        return None if math.isinf(due) else max(0.0, due - self._clock())

    def _estimate(self) -> Forecasts | None:
        with self._news:
            inputs, settings, before = self._inputs, self._settings, self._found
        if inputs is None:
            return None
        picture = self._lead.queue_picture()
        now = self._clock()
        records, world = inputs.records, inputs.world
        own = own_nodes_queue(records, world)
        while not self._ended.empty():
            self._runs.ended(self._ended.get(), own.ranks)
        line = Line.of(picture, own, settings)
        judged = before.judged if before is not None else None
        if judged is not None and not judged.stands(line, inputs.unjudged, now):
            judged = None
        if judged is None:
            leaves = bursts_assumed(inputs, settings, now)
            own = msgspec.structs.replace(own, leaves=leaves)
        made = forecast(picture, own, self._runs.history, now)
        self._runs.forecast(picture, made.starts, own.ranks)
        texts = self._runs.texts_due(now)
        with self._news:
            self._texts |= texts
        return Forecasts(
            at=now,
            starts=made.starts,
            judged=judged or Judged(judgeable(made.starts, inputs, own), now, line),
            run_times=made.run_times,
            pending=picture.pending,
            grades=self._runs.grades.grades(),
        )

    def _publish(self, found: Forecasts | None) -> None:
        with self._news:
            before = self._found
            self._forget()
            if found is not None and not self._closing and self._inputs is not None:
                self._found = found
                self._owed_since = self._clock() if self._dirty else None
                for job, start in (*found.starts.items(), *found.judged.starts.items()):
                    if start.after is not None:
                        self._awaited.setdefault(start.after, []).append(job)
                self._drop(self._over)
            changed = _estimates(before) != _estimates(self._found)
        if changed:
            self._wake()

    # With `_news` held.

    def _mark(self) -> None:
        self._dirty = True
        if self._owed_since is None:
            self._owed_since = self._clock()
        self._news.notify_all()

    def _forget(self) -> None:
        self._found = None
        self._awaited = {}

    def _drop(self, over: set[JobId]) -> bool:
        """Drop the estimates of jobs that ended, and those that depend on their end.

        Return whether any was dropped.
        """
        if self._found is None:
            return False
        found = self._found
        stale = {job for each in over for job in self._awaited.pop(each, ())}
        judged = found.judged
        stale |= over & (found.starts.keys() | judged.starts.keys())
        if stale:
            self._found = msgspec.structs.replace(
                found,
                starts=without(found.starts, stale),
                judged=msgspec.structs.replace(
                    judged, starts=without(judged.starts, stale)
                ),
            )
        return bool(stale)


def _estimates(found: Forecasts | None) -> object:
    return found and (found.starts, found.judged.starts)
