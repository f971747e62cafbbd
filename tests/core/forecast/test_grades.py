# SPDX-License-Identifier: MIT
import math

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from burst.core.forecast.grades import (
    ALL,
    GROUPS_KEPT,
    MOST,
    NEAR_S,
    OPEN_KEPT,
    ForecastGrades,
    Grade,
    GradeRecord,
    grade_of,
    grade_text,
)
from burst.core.forecast.history import JobKind
from burst.core.plan.estimate import StartEstimate
from burst.model.jobid import JobId

KIND = JobKind(7, "app", 4)
JOB = JobId(1)


def expected(at: float, early: float = 0.0, late: float = math.inf) -> StartEstimate:
    return StartEstimate(expected=at, earliest=early, latest=late)


def graded(*starts: float, at: float = 1000.0, late: float = math.inf):
    """Forecasts for `at`, of jobs that started then."""
    grades = ForecastGrades()
    for number, start in enumerate(starts):
        grades.open(JobId(number), KIND, expected(at, at - 100.0, late))
        grades.started(JobId(number), start)
    return grades


def test_a_start_is_near_or_not_and_inside_or_not() -> None:
    near = graded(1000.0 + NEAR_S).grades()[ALL]
    assert near == Grade(1, 1, 1)
    assert graded(1000.0 + NEAR_S + 1).grades()[ALL] == Grade(1, 0, 1)
    assert graded(1000.0 - 101).grades()[ALL] == Grade(1, 1, 0)
    assert graded(1011.0, late=1005.0).grades()[ALL] == Grade(1, 1, 0)
    assert graded(1006.0, late=1005.0).grades()[ALL] == Grade(1, 1, 1)


def test_each_forecast_counts_for_user_size_both_and_all() -> None:
    groups = {"user/7/size/3", "user/7", "size/3", ALL}
    assert set(graded(1000.0).grades()) == groups


def test_only_the_first_forecast_of_a_job_counts() -> None:
    grades = ForecastGrades()
    grades.open(JOB, KIND, expected(0.0))
    grades.open(JOB, KIND, expected(5000.0))
    assert grades.waiting == {JOB}
    grades.started(JOB, 5000.0)
    grades.started(JOB, 5000.0)
    assert grades.grades()[ALL] == Grade(1, 0, 1)
    assert not grades.waiting


def test_what_never_starts_or_ended_before_is_not_graded() -> None:
    grades = ForecastGrades()
    grades.open(JOB, KIND, expected(math.inf))
    assert not grades.waiting
    grades.open(JOB, KIND, expected(5.0))
    grades.drop(JOB)
    grades.started(JOB, 5.0)
    assert grades.grades() == {}


def test_a_full_group_counts_what_is_old_for_less() -> None:
    full = Grade(MOST, MOST, MOST)
    assert full.after(near=False, inside=True) == Grade(501, 500, 501)


def test_forecasts_and_groups_are_bounded() -> None:
    grades = ForecastGrades()
    for number in range(OPEN_KEPT + 5):
        kind = JobKind(number, "", 1)
        grades.open(JobId(number), kind, expected(0.0))
    assert len(grades.waiting) == OPEN_KEPT
    for number in range(OPEN_KEPT):
        grades.started(JobId(number), 1.0)
    assert len(grades.grades()) == GROUPS_KEPT
    assert grades.grades()[ALL].forecasts


def test_the_smallest_group_that_says_enough_is_told() -> None:
    few, many = Grade(19, 19, 19), Grade(340, 241, 300)
    groups = {"user/7/size/3": few, "user/7": many, ALL: Grade(900, 0, 0)}
    assert grade_of(groups, KIND) is many
    assert grade_of({ALL: few}, KIND) is None
    assert grade_text(many) == "within 10 min for 71 % of 340 similar jobs"


def test_the_record_is_read_back() -> None:
    grades = graded(1000.0, 5000.0)
    grades.open(JobId(50), KIND, expected(7.0, 1.0))
    grades.open(JobId(51), KIND, expected(7.0, 1.0, 9.0))
    text = msgspec.json.encode(grades.record())
    record = msgspec.json.decode(text, type=GradeRecord)
    assert ForecastGrades(record).record() == grades.record()


@given(st.lists(st.floats(0, 1e6), max_size=50))
def test_no_group_has_more_good_forecasts_than_forecasts(starts: list[float]) -> None:
    for grade in graded(*starts).grades().values():
        assert 0 <= grade.near <= grade.forecasts == len(starts)
        assert 0 <= grade.inside <= grade.forecasts
