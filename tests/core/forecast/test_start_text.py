# SPDX-License-Identifier: MIT
import math
import time

import pytest

from burst.core.forecast.grades import Grade, start_row
from burst.core.plan.estimate import StartEstimate
from burst.model.jobid import JobId, parse_jobid

NOW = time.mktime((2026, 3, 1, 13, 30, 0, 0, 0, -1))
F3X = JobId(parse_jobid("f3x"))


def at(hour: int, minute: int, day: int = 1) -> float:
    return time.mktime((2026, 3, day, hour, minute, 0, 0, 0, -1))


def estimate(early: float, expected: float, late: float, after: JobId | None = F3X):
    return StartEstimate(expected=expected, earliest=early, latest=late, after=after)


@pytest.mark.parametrize(
    ("start", "text"),
    [
        (
            estimate(at(13, 40), at(14, 3), at(15, 10)),
            "on own nodes about 14:03 (13:40 to 15:10, when ƒ3x ends)",
        ),
        (
            estimate(at(13, 31), at(13, 32), at(15, 10), None),
            "on own nodes about 13:32:00 (13:31:00 to 15:10)",
        ),
        (estimate(NOW, NOW, NOW, None), "on own nodes now"),
        (
            estimate(NOW - 5, NOW - 5, at(14, 0)),
            "on own nodes now (now to 14:00, when ƒ3x ends)",
        ),
        (
            estimate(at(14, 0), at(15, 0), math.inf, None),
            "on own nodes about 15:00 (14:00 or later)",
        ),
        (
            estimate(at(14, 0), at(9, 0, day=3), math.inf, None),
            "on own nodes about 2026-03-03 09:00 (14:00 or later)",
        ),
        (
            estimate(at(14, 0), math.inf, math.inf),
            "its start on own nodes cannot be predicted",
        ),
        (
            estimate(math.inf, math.inf, math.inf, None),
            "own nodes that are up cannot hold it",
        ),
    ],
)
def test_a_start_is_told(start: StartEstimate, text: str) -> None:
    assert start.text(NOW) == text


def test_the_row_has_numbers_and_nothing_that_json_lacks() -> None:
    row = start_row(estimate(NOW, NOW + 0.12345, math.inf), Grade(40, 30, 36), NOW)
    assert row["expected"] == NOW + 0.123
    assert row["latest"] is None
    assert row["after"] == "ƒ3x"
    assert row["grade"] == {
        "text": "within 10 min for 75 % of 40 similar jobs",
        "forecasts": 40,
        "near": 0.75,
        "inside": 0.9,
    }
    row = start_row(estimate(NOW, NOW, NOW, None), None, NOW)
    assert (row["after"], row["grade"]) == (None, None)
