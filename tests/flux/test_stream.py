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


class News:
    """A stream that is open, on a loop that does later what `again` holds."""

    def __init__(self) -> None:
        self.again: list[Callable[[], None]] = []
        self.asked: list[Any] = []
        self.taken: list[bytes] = []
        self._loop = SimpleNamespace(
            handle=FakeHandle({"news": self.asked.append}),
            on_response={},
            after=lambda _, call: self.again.append(call),
        )
        self.stream = Stream(
            cast("Loop", self._loop), "news", {}, self.taken.append, lambda _: True
        )
        self.stream.open()

    def arrive(self, errnum: int) -> None:
        ((tag, take),) = self._loop.on_response.items()
        take(ResponseMessage(tag, errnum, b"{}"))


def test_that_it_ended_is_said_once_until_it_flows_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    news = News()
    said: list[Any] = []
    with caplog.at_level("INFO", "burst"):
        for errnum in (errno.ENOSYS, errno.ENOSYS, 0, errno.ENOSYS):
            news.arrive(errnum)
            said.append(caplog.text.count("ended and is requested again"))
            if errnum:
                news.again.pop()()
    assert said == [1, 1, 1, 2]
    assert news.taken == [b"{}"]


def test_one_that_waits_to_be_requested_again_is_opened_once() -> None:
    news = News()
    news.arrive(errno.ENODATA)
    news.stream.close()
    news.stream.open()
    (retry,) = news.again
    retry()
    assert len(news.asked) == 2, "once at first, once after its end"
