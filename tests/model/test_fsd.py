# SPDX-License-Identifier: MIT
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from burst.model.fsd import format_fsd, parse_fsd, rounded_span


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0.0),
        ("90", 90.0),
        ("90s", 90.0),
        ("1.5h", 5400.0),
        (".5m", 30.0),
        ("2.d", 172800.0),
        ("500ms", 0.5),
        ("1e3s", 1000.0),
        ("inf", math.inf),
        ("Infinity", math.inf),
    ],
)
def test_a_duration_is_read(text, seconds):
    assert parse_fsd(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text", ["", "s", "-1s", "1 s", "1y", "nan", "1e999", "infs", "1.2.3", "٣s"]
)
def test_what_is_no_duration_is_refused(text):
    with pytest.raises(ValueError, match="not a duration"):
        parse_fsd(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (0.0123, "12.3ms"),
        (0.9994, "999ms"),
        (0.9999, "1s"),
        (59.4, "59.4s"),
        (60, "1m"),
        (5400, "1.5h"),
        (86400, "1d"),
        (86400 * 12345, "12345d"),
        (-90, "-1.5m"),
        (math.inf, "inf"),
        (-math.inf, "-inf"),
    ],
)
def test_a_duration_is_written_short(seconds, text):
    assert format_fsd(seconds) == text


@given(st.floats(0, 1e9))
def test_what_is_written_is_read_to_three_digits(seconds):
    assert parse_fsd(format_fsd(seconds)) == pytest.approx(seconds, rel=6e-3)


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (-1, "0.0s"),
        (9.94, "9.9s"),
        (10, "10s"),
        (61, "1m01s"),
        (7200, "2h00m"),
        (200_000, "2d07h"),
    ],
)
def test_a_duration_is_rounded_for_people(seconds, told):
    assert rounded_span(seconds) == told
