# SPDX-License-Identifier: MIT
"""A request for many responses that is made again when it ended."""

from __future__ import annotations

import errno
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from burst.flux.handle import ResponseMessage
from burst.flux.loop import Loop
from burst.flux.stream import Stream
from tests.flux.fake_handle import FakeHandle


def test_that_it_ended_is_said_once_until_it_flows_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    again: list[Callable[[], None]] = []
    loop = SimpleNamespace(
        handle=FakeHandle({}), on_response={}, after=lambda _, call: again.append(call)
    )
    taken: list[bytes] = []
    stream = Stream(cast("Loop", loop), "news", {}, taken.append, lambda _: True)
    stream.open()

    def arrive(errnum: int) -> None:
        ((tag, take),) = loop.on_response.items()
        take(ResponseMessage(tag, errnum, b"{}"))

    said: list[Any] = []
    with caplog.at_level("INFO", "burst"):
        for errnum in (errno.ENOSYS, errno.ENOSYS, 0, errno.ENOSYS):
            arrive(errnum)
            said.append(caplog.text.count("it is requested again"))
            if errnum:
                again.pop()()
    assert said == [1, 1, 1, 2]
    assert taken == [b"{}"]
