# SPDX-License-Identifier: MIT
from __future__ import annotations

import threading
import time

import pytest

from burst.doctor.attempt import Attempt, attempt
from burst.doctor.facts import Trouble
from burst.errors import ConfigError, Refused


def fail(error: Exception) -> int:
    raise error


def test_what_works_is_returned() -> None:
    assert attempt(lambda: 7) == 7


@pytest.mark.parametrize(
    ("error", "trouble"),
    [
        (ConfigError("x: no", "set it"), Trouble("x: no", "set it")),
        (Refused("401"), Trouble("401", "")),
        (
            ValueError("odd"),
            Trouble("ValueError: odd", "nobody expected that: report it"),
        ),
    ],
)
def test_what_fails_is_a_trouble(error: Exception, trouble: Trouble) -> None:
    assert attempt(lambda: fail(error)) == trouble


def test_what_works_on_its_own_thread_is_returned() -> None:
    assert Attempt(lambda: 7).result(time.monotonic() + 20) == 7


def test_what_hangs_is_a_trouble_and_holds_up_nobody() -> None:
    forever = threading.Event()
    try:
        late = Attempt(forever.wait).result(time.monotonic())
        assert late == Trouble("there was no answer in time")
    finally:
        forever.set()
