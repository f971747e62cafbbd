# SPDX-License-Identifier: MIT
"""A thread that owns a Flux handle and handles its messages, in order.

Only this thread may use the handle. Other threads give it work with `post`, which wakes
it by a pipe.
"""

from __future__ import annotations

import errno
import heapq
import itertools
import os
import queue
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, TypeVar

from burst import log
from burst.errors import BurstError, LeadGone, Unreadable
from burst.flux.connection import Connection
from burst.flux.handle import RequestMessage, ResponseMessage
from burst.flux.rpc import decode_response

CLOSE_DEADLINE_S = 60.0
"""How long the thread may take to end: only one that hangs takes as long."""

# How many messages are handled before posted work is, so that they do not delay it.
_BATCH = 100
_IDLE_S = 60.0


_T = TypeVar("_T")


def internal_error(error: Exception, request: RequestMessage) -> str:
    """Return what the caller is told of an error that nobody expected."""
    if request.owner:
        return f"internal error: {error!r}; see the daemon's log"
    # It may name others' jobs, and the provider's account.
    return "internal error; the owner of the instance finds it in the daemon's log"


class Loop:
    """Runs the work given to `post` on its thread; `handle` is the Flux handle."""

    def __init__(
        self, handle: Connection, name: str, close_deadline_s: float = CLOSE_DEADLINE_S
    ) -> None:
        """Start the thread. From now on the handle is its own."""
        self.handle = handle
        self._close_deadline_s = close_deadline_s
        self.on_response: dict[int, Callable[[ResponseMessage], None]] = {}
        """Handlers by matchtag; that of a stream stays until the stream is removed."""
        self.on_request: Callable[[RequestMessage], None] | None = None
        self.on_lost: Callable[[], None] | None = None
        """Called once, when the broker is gone or the thread failed."""
        self._lost: LeadGone | None = None
        """Set once the thread handles nothing any more, whatever ended it."""
        self._waiting: set[Future[Any]] = set()
        self._posted: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._ending = False
        self._pipe = threading.Lock()
        self._closed = False
        self._readable, self._writable = os.pipe()
        os.set_blocking(self._readable, False)
        os.set_blocking(self._writable, False)
        self.handle.watch(self._readable)
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def post(self, work: Callable[[], None]) -> None:
        """Have the thread call `work` soon. From any thread.

        It is not called once the lead is gone or the loop is closed.
        """
        self._posted.put(work)
        self._wake()

    def wait_for(
        self, begin: Callable[[Future[_T]], None], deadline_s: float, what: str
    ) -> _T:
        """Have the thread call `begin`, and return the result that is set.

        Raises the exception that is set, LeadGone once the broker is gone or the loop
        is closed, and Unreadable at the deadline. From any other thread.
        """
        future: Future[_T] = Future()
        self._waiting.add(future)
        try:
            self.check()
            self.post(lambda: begin(future))
            return future.result(deadline_s)
        except TimeoutError:
            raise Unreadable(f"{what}: not done within {deadline_s:g}s") from None
        finally:
            self._waiting.discard(future)

    def ask(
        self,
        topic: str,
        payload: Mapping[str, Any],
        then: Callable[[dict[str, Any] | BurstError], None],
    ) -> None:
        """Send a request; `then` gets the answer or error. From the loop's thread."""
        tag = self.handle.send(topic, payload)

        def answer(response: ResponseMessage) -> None:
            del self.on_response[tag]
            then(decode_response(topic, response))

        self.on_response[tag] = answer

    def check(self) -> None:
        """Raise LeadGone if the broker is gone, or the thread has failed or ended."""
        if self._lost is not None:
            raise LeadGone(self._lost.what, self._lost.advice)

    def after(self, delay_s: float, work: Callable[[], None]) -> None:
        """Call `work` after `delay_s` seconds. From the loop's thread."""
        due = time.monotonic() + delay_s
        heapq.heappush(self._timers, (due, next(self._order), work))

    def close(self) -> None:
        """End the thread and disconnect. From any other thread.

        Work that was posted before is done. Calls that still wait then get LeadGone.
        """
        self.post(self._end)
        self._thread.join(self._close_deadline_s)
        if self._thread.is_alive():
            # Not freed while the thread may use it; the process ends soon.
            log.say("thread %s does not end, and is left running", self._thread.name)
            return
        self.handle.close()
        with self._pipe:
            self._closed = True
            os.close(self._readable)
            os.close(self._writable)

    def _wake(self) -> None:
        with self._pipe:
            if self._closed:
                return  # and the descriptor may be somebody else's by now
            try:
                os.write(self._writable, b"!")
            except BlockingIOError:
                return  # full of wake-ups, and one is enough

    def _end(self) -> None:
        self._ending = True

    def _run(self) -> None:
        try:
            while not self._ending:
                self._turn()
            self._fail_waiting(LeadGone("the connection to the lead is closed"))
        except LeadGone as error:
            self._lose(error)
        except Exception as error:  # noqa: BLE001 - callers that wait get it
            log.failure("thread %s failed", self._thread.name)
            self._lose(LeadGone(f"internal error: {error!r}", "see the daemon's log"))

    def _lose(self, error: LeadGone) -> None:
        self._fail_waiting(error)
        if self.on_lost is not None:
            self.on_lost()

    def _fail_waiting(self, error: LeadGone) -> None:
        # Set before waiting calls get the error, so that later calls see it.
        self._lost = error
        for future in list(self._waiting):
            if not future.done():
                future.set_exception(LeadGone(error.what, error.advice))

    def _turn(self) -> None:
        busy = self._receive()
        busy |= self._do_posted()
        while self._timers and self._timers[0][0] <= time.monotonic():
            heapq.heappop(self._timers)[2]()
        if not busy:
            due = self._timers[0][0] - time.monotonic() if self._timers else _IDLE_S
            self.handle.wait(due)
            self._drain_pipe()

    def _receive(self) -> bool:
        for _ in range(_BATCH):
            message = self.handle.receive()
            if message is None:
                return False
            if isinstance(message, ResponseMessage):
                found = self.on_response.get(message.matchtag)
                if found is not None:
                    found(message)
            elif self.on_request is not None:
                self._request(message, self.on_request)
        return True

    def _request(
        self, request: RequestMessage, handler: Callable[[RequestMessage], None]
    ) -> None:
        try:
            handler(request)
        except LeadGone:
            raise
        # Any user may send a request: none may end the thread.
        except Exception as error:  # noqa: BLE001 - it may be a request of any kind
            log.failure("answering %s", request.topic)
            if request.wants_response:
                what = internal_error(error, request)
                self.handle.refuse(request, errno.EINVAL, what)

    def _do_posted(self) -> bool:
        busy = False
        while not self._posted.empty():
            self._posted.get_nowait()()
            busy = True
        return busy

    def _drain_pipe(self) -> None:
        try:
            while os.read(self._readable, 4096):
                pass
        except BlockingIOError:
            return
