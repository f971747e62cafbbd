# SPDX-License-Identifier: MIT
"""Nobody who asks keeps others from an answer, nor the daemon from stopping."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from burst.errors import BurstError
from burst.request_threads import (
    MAX_ALL_GUESTS_REQUESTS,
    MAX_GUEST_REQUESTS,
    MAX_OWNER_REQUESTS,
    MAX_PAYLOAD_BYTES,
    RequestThreads,
    read_payload,
)
from tests.support.waiting import HANG_S

OWNER, GUEST, OTHER = 0, 100, 101


class Asked:
    """Requests that are answered when the test says so."""

    def __init__(self) -> None:
        self.answerers = RequestThreads("test", each=2)
        self.go_on = threading.Event()
        self.begun = threading.Semaphore(0)

    def slow(self, userid: int, method: str = "status") -> None:
        def work() -> None:
            self.begun.release()
            assert self.go_on.wait(HANG_S)

        self.answerers.submit(method, userid, userid == OWNER, work)

    def answered(self, method: str, userid: int) -> bool:
        """Whether a request is answered while others are not."""
        done = threading.Event()
        self.answerers.submit(method, userid, userid == OWNER, done.set)
        return done.wait(HANG_S)


@pytest.fixture
def asked() -> Iterator[Asked]:
    asked = Asked()
    yield asked
    asked.go_on.set()
    asked.answerers.close()


def test_how_jobs_come_in_is_answered_whoever_asks_what_else(asked: Asked) -> None:
    for userid in (OWNER, GUEST, OTHER):
        for _ in range(MAX_GUEST_REQUESTS):
            asked.slow(userid)
    assert asked.answered("intake", OTHER + 1)
    assert asked.answered("ping", OWNER)


@pytest.mark.parametrize(
    ("userid", "most"), [(GUEST, MAX_GUEST_REQUESTS), (OWNER, MAX_OWNER_REQUESTS)]
)
def test_a_caller_has_so_many_requests_at_a_time(
    asked: Asked, userid: int, most: int
) -> None:
    for _ in range(most):
        asked.slow(userid)
    with pytest.raises(BurstError, match=f"you have {most} requests that wait"):
        asked.slow(userid)
    asked.slow(OTHER)
    asked.go_on.set()
    ends = time.monotonic() + HANG_S
    while True:
        try:
            return asked.slow(userid)
        except BurstError:
            assert time.monotonic() < ends
            time.sleep(0.01)


def test_a_request_right_after_a_long_one_has_a_thread_of_its_own() -> None:
    for _ in range(20):
        asked = Asked()
        assert asked.answered("status", OWNER)
        time.sleep(0.01)  # mostly, that thread is idle then
        asked.slow(OWNER)
        assert asked.answered("status", OWNER)
        asked.go_on.set()
        asked.answerers.close()


def test_after_the_close_nothing_is_begun(asked: Asked) -> None:
    for _ in range(5):
        asked.slow(OWNER)
    assert asked.begun.acquire(timeout=HANG_S)
    assert asked.begun.acquire(timeout=HANG_S)
    asked.answerers.close()
    asked.answerers.submit("status", GUEST, False, asked.begun.release)
    asked.go_on.set()
    assert not asked.begun.acquire(timeout=0.2)


_STOPS = """
import threading
from burst.request_threads import RequestThreads
answerers, begun = RequestThreads("test"), threading.Event()
answerers.submit("status", 0, True, lambda: (begun.set(), threading.Event().wait()))
begun.wait()
answerers.close()
"""


def test_a_process_ends_whatever_is_being_answered() -> None:
    subprocess.run([sys.executable, "-c", _STOPS], check=True, timeout=HANG_S)


def test_a_payload_is_an_object_of_a_bounded_length() -> None:
    assert read_payload(b"") == {}
    assert read_payload(b'{"id":"f1"}') == {"id": "f1"}
    for bad in (b"[]", b"{", b"[" * 5000):
        with pytest.raises(BurstError, match="not an object"):
            read_payload(bad)
    longest = b'{"x":"' + b"y" * (MAX_PAYLOAD_BYTES - 8) + b'"}'
    assert len(read_payload(longest)["x"]) == MAX_PAYLOAD_BYTES - 8
    with pytest.raises(BurstError, match=f"the daemon reads {MAX_PAYLOAD_BYTES}"):
        read_payload(longest + b" ")


def test_one_guest_leaves_the_others_their_turn(asked: Asked) -> None:
    for _ in range(MAX_GUEST_REQUESTS):
        asked.slow(GUEST)
    assert asked.answered("status", OTHER)


def test_who_reads_does_not_wait_for_those_who_command(asked: Asked) -> None:
    for userid in range(GUEST, GUEST + 20):
        for _ in range(MAX_GUEST_REQUESTS):
            asked.slow(userid, "release")
    assert asked.answered("status", OTHER + 20)
    assert asked.answered("release", OWNER)


def test_guests_take_turns_whoever_asked_most() -> None:
    threads, order, done = RequestThreads("test", each=1), [], threading.Semaphore(0)
    first = threading.Event()

    def note(userid: int) -> None:
        assert first.wait(HANG_S)
        order.append(userid)
        done.release()

    for _ in range(MAX_GUEST_REQUESTS):
        threads.submit("status", GUEST, False, lambda: note(GUEST))
    threads.submit("status", OTHER, False, lambda: note(OTHER))
    threads.submit("status", OTHER + 1, False, lambda: note(OTHER + 1))
    first.set()
    for _ in range(MAX_GUEST_REQUESTS + 2):
        assert done.acquire(timeout=HANG_S)
    threads.close()
    assert {OTHER, OTHER + 1} <= set(order[:4])


def test_all_guests_together_have_so_many_requests_at_a_time(asked: Asked) -> None:
    each = MAX_GUEST_REQUESTS
    for userid in range(GUEST, GUEST + MAX_ALL_GUESTS_REQUESTS // each):
        for _ in range(each):
            asked.slow(userid)
    with pytest.raises(BurstError, match="too many requests from users; try again"):
        asked.slow(1)
    assert asked.answered("status", OWNER)
