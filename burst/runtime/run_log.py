# SPDX-License-Identifier: MIT
"""What forecasts learn of jobs: their run times, and how good forecasts were.

Both are bounded, and stored as one record each. As a store may keep every version of a
record (the KVS of a lead does), larger records are written less often.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping
from typing import TypeVar

import msgspec

from burst import log
from burst.core.forecast.forecast import kind_of
from burst.core.forecast.grades import ForecastGrades, GradeRecord
from burst.core.forecast.history import HistoryRecord, RunHistory
from burst.core.plan.estimate import StartEstimate
from burst.decode import from_json
from burst.model.active_job import ActiveJob, QueuePicture
from burst.model.jobid import JobId

HISTORY_KEY = "forecast/history"
GRADES_KEY = "forecast/grades"
MOST_BYTES = 200_000
"""The largest record of run times; it keeps the kinds of jobs that were seen last."""
_BYTES_PER_S = 350.0
"""The most that is written on average: 30 MB a day on a lead that is always busy."""
_LEAST_PAUSE_S = 10.0
_T = TypeVar("_T")


class RunLog:
    """Run times and grades. Use from one thread."""

    def __init__(
        self,
        texts: Mapping[str, str] | None = None,
        tell_error: Callable[[float], None] = lambda _: None,
    ) -> None:
        """`tell_error` is told by how many seconds each job started late."""
        self._tell_error = tell_error
        texts = texts or {}
        history = _read(texts.get(HISTORY_KEY), HistoryRecord)
        self.history = RunHistory(history)
        self.grades = ForecastGrades(_read(texts.get(GRADES_KEY), GradeRecord))
        self._written_at = 0.0
        self._written_size = 0
        self._changed = False

    def ended(self, job: ActiveJob, own: Container[int]) -> None:
        """Take in a job that ended; `own` are the ranks that no burst leases."""
        if not job.t_start or job.t_finish < job.t_start:
            self.grades.drop(job.id)
            return
        limit = job.duration or math.inf
        self.history.add(kind_of(job), job.t_finish - job.t_start, limit)
        self._grade(job, own)
        self._changed = True

    def forecast(
        self,
        picture: QueuePicture,
        starts: Mapping[JobId, StartEstimate],
        own: Container[int],
    ) -> None:
        """Note the first forecast of each job, and which of them have started."""
        waiting = self.grades.waiting
        for job in picture.running:
            if job.id in waiting:
                self._grade(job, own)
                self._changed = True
        for job in picture.pending:
            start = starts.get(job.id)
            if start is not None and job.id not in waiting:
                self.grades.open(job.id, kind_of(job), start)

    def texts_due(self, now: float) -> dict[str, str]:
        """Return the records by key, if they changed and it is time to store them."""
        pause = max(_LEAST_PAUSE_S, self._written_size / _BYTES_PER_S)
        if not self._changed or now - self._written_at < pause:
            return {}
        grades = msgspec.json.encode(self.grades.record()).decode()
        texts = {HISTORY_KEY: self._history_text(), GRADES_KEY: grades}
        self._written_at, self._changed = now, False
        self._written_size = sum(map(len, texts.values()))
        return texts

    def _history_text(self) -> str:
        """Return the record of run times, without the oldest if it is too large."""
        kinds = self.history.record().kinds
        while True:
            text = msgspec.json.encode(HistoryRecord(kinds=kinds)).decode()
            if len(text) <= MOST_BYTES:
                return text
            kinds = kinds[-(len(kinds) * MOST_BYTES // len(text)) :]

    def _grade(self, job: ActiveJob, own: Container[int]) -> None:
        if job.taken and all(rank in own for rank in job.taken):
            late = self.grades.started(job.id, job.t_start)
            if late is not None:
                self._tell_error(late)
        else:
            self.grades.drop(job.id)


def _read(text: str | None, kind: type[_T]) -> _T | None:
    """Return a record; None if there is none, or it cannot be read, which is logged."""
    if text is None:
        return None
    try:
        return from_json(text, kind)
    except (msgspec.MsgspecError, ValueError) as error:
        log.say(
            "cannot read what forecasts had learned, so they start afresh: %s", error
        )
        return None
