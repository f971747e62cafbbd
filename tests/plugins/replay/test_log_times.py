# SPDX-License-Identifier: MIT
"""Times and durations as batch systems write them."""

from __future__ import annotations

import datetime
import math
import time
from collections.abc import Iterator

import pytest
from burst_replay.log_times import (
    NoTime,
    is_known,
    parse_duration,
    parse_limit,
    parse_moment,
)
from hypothesis import given
from hypothesis import strategies as st


@pytest.fixture
def denver(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "America/Denver")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("denver")
@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("2023-01-15T06:30:10", "2023-01-15T13:30:10"),
        ("2023-07-15 06:30:10", "2023-07-15T12:30:10"),
        ("2023-01-15T06:30:10Z", "2023-01-15T06:30:10"),
        ("2023-01-15T06:30:10+0100", "2023-01-15T05:30:10"),
        ("2023-01-15T06:30:10.25-07:00", "2023-01-15T13:30:10.25"),
        ("1673764210", "2023-01-15T06:30:10"),
        ("1673764210.5", "2023-01-15T06:30:10.5"),
        ("1673764210500", "2023-01-15T06:30:10.5"),
        ("1673764210500000", "2023-01-15T06:30:10.5"),
    ],
)
def test_a_time_without_a_zone_is_local(text: str, utc: str) -> None:
    expected = datetime.datetime.fromisoformat(f"{utc}+00:00").timestamp()
    assert parse_moment(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "Unknown",
            "12:30:05",
            "Ystday 12:30",
            "27 Mar 17:04",
            "nan",
            "-5",
            "inf",
        ),
        *("2023-13-15T06:30:10", "2023-01-15T06:61:10", "2023-01-15Tab:30:10"),
        *("2023-01-15T06:-1:10", "0001-01-01T00:00:00", "99999999999999999999999999"),
        *("1900-01-01T00:00:00+00:00", -1.0, math.nan, math.inf, 1e30),
    ],
)
def test_what_is_no_time(text: str | float) -> None:
    with pytest.raises(NoTime):
        parse_moment(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("00:00:00", 0),
        ("10:00", 600),
        ("01:02:03", 3723),
        ("37-14:00:00", 37 * 86400 + 14 * 3600),
        ("2-12", 2 * 86400 + 12 * 3600),
        ("2-12:30", 2 * 86400 + 12.5 * 3600),
        ("1:02:03:04", 86400 + 7200 + 184),
        ("200:00:00", 720000),
        ("00:05.250", 5.25),
        ("90", 90),
    ],
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text",
    ["", "soon", "1-", "-5", "1:-5", "1:2:3:4:5", "1-1:2:3:4", "nan", "1e30", "a-1:00"],
)
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(NoTime, match=r"duration|impossible"):
        parse_duration(text)


@pytest.mark.parametrize(
    "text",
    [
        *("UNLIMITED", "Partition_Limit", "INVALID", "", "None", "NOT_SET", "-1", "0"),
        *("4294967294", "4294967295", "9" * 400),
    ],
)
def test_limits_that_are_none(text: str) -> None:
    assert parse_limit(text, 60.0) == 0


def test_limits() -> None:
    assert (parse_limit("1-00:00:00"), parse_limit("30", 60.0)) == (86400, 1800)
    assert (parse_limit(0.0), parse_limit(90.5)) == (0, 90.5)
    assert not is_known("(null)")
    assert is_known("COMPLETED")


@given(st.text(max_size=30))
def test_any_text_is_a_time_or_none(text: str) -> None:
    for parse in (parse_moment, parse_duration, parse_limit):
        try:
            seconds = parse(text)
        except NoTime:
            continue
        assert 0 <= seconds < 1e12


@given(
    st.datetimes(
        min_value=datetime.datetime(1971, 1, 1),
        max_value=datetime.datetime(2100, 1, 1),
    )
)
def test_the_quick_way_finds_what_python_does(when: datetime.datetime) -> None:
    when = when.replace(microsecond=0)
    # An hour in which clocks are set is taken as it began.
    assert parse_moment(when.isoformat()) == pytest.approx(when.timestamp(), abs=3600)
