# SPDX-License-Identifier: MIT
from __future__ import annotations

import errno
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import msgspec
import pytest

from burst.errors import LeadGone, Unreadable
from burst.flux.handle import RequestMessage, ResponseMessage
from burst.flux.loop import Loop
from tests.flux.fake_handle import FakeHandle
from tests.support.waiting import HANG_S, wait_until


@pytest.fixture
def broker() -> FakeHandle:
    return FakeHandle({})


@pytest.fixture
def loop(broker: FakeHandle) -> Iterator[Loop]:
    loop = Loop(broker.as_handle(), "loop-of-test")
    yield loop
    loop.close()


def finish(done: Future[None]) -> None:
    done.set_result(None)


def assert_set(event: threading.Event) -> None:
    assert event.wait(HANG_S)


def request(topic: str) -> RequestMessage:
    return RequestMessage(
        topic, b"{}", 0, owner=True, wants_response=True, message=topic
    )


def test_thousands_of_works_are_done_in_their_order(loop: Loop) -> None:
    done: list[int] = []
    for number in range(5000):
        loop.post(lambda number=number: done.append(number))  # type: ignore[misc]
    loop.wait_for(finish, HANG_S, "the last")
    assert done == list(range(5000))


def test_what_arrives_is_handled_in_its_order(broker: FakeHandle, loop: Loop) -> None:
    seen: list[str] = []
    last = threading.Event()

    def response(message: ResponseMessage) -> None:
        seen.append(message.payload.decode())
        if message.payload == b"end":
            last.set()

    def attach(done: Future[None]) -> None:
        loop.on_response[5] = response
        loop.on_request = lambda message: seen.append(message.topic)
        done.set_result(None)

    loop.wait_for(attach, HANG_S, "attaching")
    for number in range(300):
        broker.arrive(ResponseMessage(5, 0, str(number).encode()))
        broker.arrive(request(f"r{number}"))
        broker.arrive(ResponseMessage(6, 0, b"nobody's"))
    broker.arrive(ResponseMessage(5, 0, b"end"))
    assert last.wait(HANG_S)
    expected = [text for number in range(300) for text in (str(number), f"r{number}")]
    assert seen == [*expected, "end"]


def test_a_request_that_fails_is_refused_and_ends_nothing(
    broker: FakeHandle, loop: Loop, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(message: RequestMessage) -> None:
        raise RuntimeError(f"odd: {message.topic}")

    loop.on_request = fail
    silent = msgspec.structs.replace(request("silent"), wants_response=False)
    with caplog.at_level("INFO", "burst"):
        guests = msgspec.structs.replace(request("second"), owner=False)
        for message in (silent, request("first"), guests):
            broker.arrive(message)
        wait_until(lambda: len(broker.answers) == 2, "two answers")
    loop.wait_for(finish, HANG_S, "later")
    told = [(about, errnum) for about, errnum, _ in broker.answers]
    assert told == [("first", errno.EINVAL), ("second", errno.EINVAL)]
    assert ["odd: " in text for _, _, text in broker.answers] == [True, False]
    assert "odd: silent" in caplog.text


def test_later_is_later_and_in_order_of_the_time(loop: Loop) -> None:
    seen: list[str] = []

    def begin(done: Future[None]) -> None:
        loop.after(0.3, lambda: finish(done))
        loop.after(0.2, lambda: seen.append("second"))
        loop.after(0.1, lambda: seen.append("first"))
        seen.append("now")

    loop.wait_for(begin, HANG_S, "timers")
    assert seen == ["now", "first", "second"]


def test_what_is_not_done_in_time_is_unreadable(loop: Loop) -> None:
    with pytest.raises(Unreadable, match=r"waiting: not done within 0\.01s"):
        loop.wait_for(lambda done: None, 0.01, "waiting")


def test_a_result_that_came_before_the_loss_is_kept(
    broker: FakeHandle, loop: Loop
) -> None:
    lost = threading.Event()
    loop.on_lost = lost.set

    def finish_and_lose(done: Future[str]) -> None:
        broker.lose()
        done.set_result("kept")

    assert loop.wait_for(finish_and_lose, HANG_S, "x") == "kept"
    assert lost.wait(HANG_S)


def test_a_lost_broker_is_told_to_all(broker: FakeHandle, loop: Loop) -> None:
    told = threading.Event()
    loop.on_lost = told.set
    failed: list[BaseException] = []

    def wait() -> None:
        try:
            loop.wait_for(lambda done: broker.lose(), HANG_S, "x")
        except LeadGone as error:
            failed.append(error)

    waiter = threading.Thread(target=wait)
    waiter.start()
    waiter.join(HANG_S)
    assert failed
    assert told.wait(HANG_S)
    with pytest.raises(LeadGone):
        loop.wait_for(finish, HANG_S, "later")


def test_who_waits_as_it_is_closed_or_later_is_told(broker: FakeHandle) -> None:
    loop = Loop(broker.as_handle(), "to-be-closed")
    lost, begun = threading.Event(), threading.Event()
    loop.on_lost = lost.set
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(loop.wait_for, lambda done: begun.set(), HANG_S, "x")
        assert begun.wait(HANG_S)
        loop.close()
        with pytest.raises(LeadGone, match="is closed"):
            waiting.result()
    with pytest.raises(LeadGone, match="is closed"):
        loop.wait_for(finish, HANG_S, "later")
    assert not lost.is_set()


def test_close_does_not_hang_on_a_thread_that_does_not_end(
    broker: FakeHandle, caplog: pytest.LogCaptureFixture
) -> None:
    loop = Loop(broker.as_handle(), "stuck", close_deadline_s=0.05)
    begun, go_on = threading.Event(), threading.Event()

    def get_stuck() -> None:
        begun.set()
        assert_set(go_on)

    loop.post(get_stuck)
    assert begun.wait(HANG_S)
    with caplog.at_level("INFO", "burst"):
        loop.close()
    assert "stuck does not end" in caplog.text
    assert not broker.closed
    (stuck,) = (each for each in threading.enumerate() if each.name == "stuck")
    go_on.set()
    stuck.join(HANG_S)
    loop.close()
    assert broker.closed
