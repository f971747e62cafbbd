# SPDX-License-Identifier: MIT
"""How good forecasts were: the first forecast of each job, and when it then started.

Counts are kept by user and size of job. Once a group has MOST forecasts, its counts are
halved, so that old forecasts count less and less.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from burst.core.forecast.history import JobKind
from burst.core.plan.estimate import StartEstimate
from burst.model.jobid import JobId, format_f58

NEAR_S = 600.0
"""A forecast is good if the start is within so many seconds of what was expected."""
MOST = 1000
"""The most forecasts that a group counts."""
GROUPS_KEPT = 500
OPEN_KEPT = 2000
"""The most jobs whose first forecast waits for its outcome; others are not graded."""
_FEWEST = 20
"""A group with fewer forecasts says too little; the grade of a larger one is shown."""
ALL = "all"
_LATE_S = 5.0


class Grade(msgspec.Struct, frozen=True, array_like=True):
    """How good the forecasts of one group were."""

    forecasts: int = 0
    near: int = 0
    """How many of them had a start at most NEAR_S from what was expected."""
    inside: int = 0
    """How many of them had a start between the earliest and the latest, or up to 5 s
    later, as Flux takes a moment to end one job and start the next."""

    def after(self, *, near: bool, inside: bool) -> Grade:
        """Return the grade with one more forecast."""
        half = 2 if self.forecasts >= MOST else 1
        return Grade(
            self.forecasts // half + 1,
            self.near // half + near,
            self.inside // half + inside,
        )


class OpenForecast(msgspec.Struct, frozen=True, array_like=True):
    """The first forecast of a job that has not started yet."""

    userid: int
    size: int
    expected: float
    earliest: float
    latest: float | None
    """None if there is no latest time."""


class GradeRecord(msgspec.Struct, frozen=True):
    """What is stored: all groups, and the forecasts without outcome."""

    groups: Mapping[str, Grade] = {}
    open: Mapping[JobId, OpenForecast] = {}


class ForecastGrades:
    """Grades by group. The groups of a job: all, its user's, its size's, both."""

    def __init__(self, record: GradeRecord | None = None) -> None:
        record = record or GradeRecord()
        self._groups: OrderedDict[str, Grade] = OrderedDict(record.groups)
        self._open: dict[JobId, OpenForecast] = dict(record.open)

    def open(self, job: JobId, kind: JobKind, estimate: StartEstimate) -> None:
        """Note the first forecast of a job; later ones change nothing.

        A forecast that the job never starts is not graded.
        """
        if job in self._open or len(self._open) >= OPEN_KEPT:
            return
        if estimate.expected == math.inf:
            return
        self._open[job] = OpenForecast(
            kind.userid,
            kind.size,
            estimate.expected,
            estimate.earliest,
            None if estimate.latest == math.inf else estimate.latest,
        )

    def started(self, job: JobId, at: float) -> float | None:
        """Grade the forecast of a job that started on own nodes.

        Returns by how many seconds that was later than expected; None without forecast.
        """
        forecast = self._open.pop(job, None)
        if forecast is None:
            return None
        latest = forecast.latest if forecast.latest is not None else at
        near = abs(at - forecast.expected) <= NEAR_S
        inside = forecast.earliest <= at <= latest + _LATE_S
        for name in _groups(forecast.userid, forecast.size):
            grade = self._groups.get(name, Grade())
            self._groups[name] = grade.after(near=near, inside=inside)
            self._groups.move_to_end(name)
        while len(self._groups) > GROUPS_KEPT:
            self._groups.popitem(last=False)
        return at - forecast.expected

    def drop(self, job: JobId) -> None:
        """Forget the forecast of a job that ended, or started on a burst."""
        self._open.pop(job, None)

    @property
    def waiting(self) -> frozenset[JobId]:
        """Jobs whose first forecast waits for its outcome."""
        return frozenset(self._open)

    def grades(self) -> Mapping[str, Grade]:
        """Return the grades of all groups, by name."""
        return dict(self._groups)

    def record(self) -> GradeRecord:
        """Return what is to be stored."""
        return GradeRecord(groups=dict(self._groups), open=dict(self._open))


def grade_of(grades: Mapping[str, Grade], kind: JobKind) -> Grade | None:
    """Return the grade of a job's smallest group that says enough; None without any."""
    for name in _groups(kind.userid, kind.size):
        grade = grades.get(name)
        if grade is not None and grade.forecasts >= _FEWEST:
            return grade
    return None


def grade_text(grade: Grade) -> str:
    """Return a grade as it is told: `within 10 min for 71 % of 340 similar jobs`."""
    share = round(100 * grade.near / grade.forecasts)
    minutes = round(NEAR_S / 60)
    return f"within {minutes} min for {share} % of {grade.forecasts} similar jobs"


def _groups(userid: int, size: int) -> Iterable[str]:
    """Return a job's groups, the smallest first."""
    return f"user/{userid}/size/{size}", f"user/{userid}", f"size/{size}", ALL


def start_row(start: StartEstimate, grade: Grade | None, now: float) -> dict[str, Any]:
    """Return the start for JSON: times in seconds since the epoch, None for never."""
    after = start.after
    return {
        "text": start.text(now),
        "expected": _finite(start.expected),
        "earliest": _finite(start.earliest),
        "latest": _finite(start.latest),
        "after": None if after is None else format_f58(after),
        "grade": None if grade is None else grade_row(grade),
    }


def grade_row(grade: Grade) -> dict[str, Any]:
    """Return a grade for JSON."""
    return {
        "text": grade_text(grade),
        "forecasts": grade.forecasts,
        "near": round(grade.near / grade.forecasts, 3),
        "inside": round(grade.inside / grade.forecasts, 3),
    }


def _finite(seconds: float) -> float | None:
    return None if math.isinf(seconds) else round(seconds, 3)
