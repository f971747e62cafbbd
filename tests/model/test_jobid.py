# SPDX-License-Identifier: MIT
import pytest
from hypothesis import given
from hypothesis import strategies as st

from burst.model.jobid import format_f58, parse_jobid


@pytest.mark.parametrize(
    ("text", "job"),
    [
        ("ƒ1", 0),
        ("f1", 0),
        ("ƒ3i2dgyDq", 5977856278528),
        (" 1234 ", 1234),
        ("0xfF", 255),
        ("0000.0004.ac00.0000", 0x4AC000000),
        ("job.0000.0004.ac00.0000", 0x4AC000000),
        ("1.0.0.2", (1 << 48) + 2),
        ("f.0.0.0", 15 << 48),
        ("0" * 30 + "7", 7),
    ],
)
def test_each_form_is_read(text, job):
    assert parse_jobid(text) == job


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ƒ",
        "ƒ0",
        "f1l",
        "-5",
        "1_0",
        "0b1",
        "0x",
        "1.2.3",
        "1.2.3.12345",
        "jobs",
        str(2**63),
    ],
)
def test_what_is_no_job_id_is_refused(text):
    with pytest.raises(ValueError, match="not a job id"):
        parse_jobid(text)


@given(st.integers(0, 2**63 - 1))
def test_f58_comes_back(job):
    assert parse_jobid(format_f58(job)) == job


def test_f58_has_the_florin_sign():
    assert format_f58(0) == "ƒ1"
    assert format_f58(58) == "ƒ21"


@pytest.mark.parametrize("digit", ["f2", "7", "0xf"])
def test_no_id_is_long(digit):
    # To calculate its number would take hours.
    text = digit + digit[-1] * 3_000_000
    with pytest.raises(ValueError, match="not a job id") as raised:
        parse_jobid(text)
    assert len(str(raised.value)) < 200
