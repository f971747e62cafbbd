# SPDX-License-Identifier: MIT
import threading

import pytest

from burst.doctor.calls import BackgroundCall, try_call
from burst.doctor.facts import ReadFailure
from burst.errors import ConfigError, Refused
from tests.support.waiting import HANG_S


def fail(error: BaseException) -> int:
    raise error


def test_what_works_is_returned() -> None:
    assert try_call(lambda: 7) == 7


@pytest.mark.parametrize(
    ("error", "trouble"),
    [
        (ConfigError("x: no", "set it"), ReadFailure("x: no", "set it")),
        (Refused("401"), ReadFailure("401", "")),
        (
            ValueError("odd"),
            ReadFailure(
                "ValueError: odd",
                "this is a bug in burst or in a plug-in; please report it",
            ),
        ),
        (
            SystemExit(3),
            ReadFailure(
                "SystemExit: 3",
                "this is a bug in burst or in a plug-in; please report it",
            ),
        ),
    ],
)
def test_what_fails_is_a_trouble(error: BaseException, trouble: ReadFailure) -> None:
    assert try_call(lambda: fail(error)) == trouble


def test_what_works_on_its_own_thread_is_returned() -> None:
    assert BackgroundCall(lambda: 7, HANG_S).result() == 7


def test_what_hangs_is_a_trouble_and_holds_up_nobody() -> None:
    forever = threading.Event()
    try:
        late = BackgroundCall(forever.wait, 0.1).result()
        assert late == ReadFailure("there was no answer within 100ms")
    finally:
        forever.set()
