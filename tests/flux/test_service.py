# SPDX-License-Identifier: MIT
from __future__ import annotations

import errno
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from burst.errors import (
    BurstError,
    Denied,
    LeadGone,
    NoDaemon,
    ServiceTaken,
    Unreadable,
)
from burst.flux.handle import RequestMessage
from burst.flux.loop import Loop
from burst.flux.rpc import RequestFailed, RpcClient
from burst.flux.service import FluxService, call_service
from burst.lead import ServiceRequest
from tests.contract.serving import HOLDER, answer
from tests.flux.fake_handle import FakeHandle, Fault
from tests.support.waiting import HANG_S, wait_until

FOR_GUESTS = "internal error; the owner of the instance finds it in the daemon's log"
"""What a guest is told, since the error may name others' jobs."""


def request(topic: str, payload: bytes = b"{}", **more: Any) -> RequestMessage:
    own = {"userid": 5, "owner": True, "wants_response": True, "message": topic}
    return RequestMessage(topic, payload, **{**own, **more})


@pytest.fixture
def broker() -> FakeHandle:
    return FakeHandle({"service.add": lambda _: {}})


@pytest.fixture
def loop(broker: FakeHandle) -> Iterator[Loop]:
    loop = Loop(broker.as_handle(), "test")
    yield loop
    loop.close()


@pytest.fixture
def service(loop: Loop) -> Iterator[FluxService]:
    service = FluxService(loop, answer, HOLDER)
    service.register(RpcClient(FakeHandle({}).as_handle()))
    yield service
    service.close()


def answered(broker: FakeHandle, message: RequestMessage) -> tuple[int, Any]:
    """Return errnum, and payload or text, of the answer to a request."""
    broker.arrive(message)
    found: list[tuple[int, Any]] = []

    def came() -> bool:
        found[:] = [
            (errnum, said)
            for about, errnum, said in broker.answers
            if about == message.message
        ]
        return bool(found)

    wait_until(came, f"an answer to {message.topic}")
    return found[0]


@pytest.mark.parametrize(
    ("message", "errnum", "text"),
    [
        (request("burst.echo", b"[1]"), errno.EPROTO, "not an object"),
        (request("burst.echo", b"{"), errno.EPROTO, "not an object"),
        (
            request("burst.echo", b'{"x":' + b"[" * 1500 + b"]" * 1500 + b"}"),
            errno.EPROTO,
            "not an object",
        ),
    ],
)
def test_an_error_is_the_answer(broker, service, message, errnum, text):
    found, said = answered(broker, message)
    assert found == errnum
    assert text in said


def test_an_answer_that_is_no_json_is_an_error(broker: FakeHandle, loop: Loop) -> None:
    def odd(_: ServiceRequest) -> dict[str, Any]:
        return {"handler": odd}

    service = FluxService(loop, odd, HOLDER)
    service.register(RpcClient(FakeHandle({}).as_handle()))
    errnum, said = answered(broker, request("burst.x"))
    guest = request("burst.x", owner=False, userid=6, message="a guest's")
    told_guest = answered(broker, guest)
    service.close()
    assert errnum == errno.EINVAL
    assert "internal error: TypeError" in said
    assert told_guest == (errno.EINVAL, FOR_GUESTS)


def test_what_wants_no_response_gets_none(
    broker: FakeHandle, service: FluxService
) -> None:
    broker.arrive(request("burst.disconnect", b"", wants_response=False, message=0))
    answered(broker, request("burst.echo"))
    assert [about for about, _, _ in broker.answers] == ["burst.echo"]


def test_as_it_closes_all_that_is_not_answered_and_all_that_comes_is_refused(
    broker: FakeHandle, loop: Loop
) -> None:
    begun, go_on = threading.Semaphore(0), threading.Event()

    def slow(_: ServiceRequest) -> dict[str, Any]:
        begun.release()
        assert go_on.wait(HANG_S)
        return {}

    service = FluxService(loop, slow, HOLDER, name="closing")
    service.register(RpcClient(FakeHandle({}).as_handle()))
    asked = [f"closing.{number}" for number in range(6)]
    for topic in asked:
        broker.arrive(request(topic))
    for _ in range(4):  # the others wait for a thread
        assert begun.acquire(timeout=HANG_S)
    service.close()
    assert answered(broker, request("closing.late"))[0] == errno.ENOSYS
    go_on.set()
    threads = "closing-service-owner"
    wait_until(
        lambda: not [t for t in threading.enumerate() if t.name.startswith(threads)],
        "the end of what was being answered",
    )
    posted = threading.Event()
    loop.post(posted.set)
    assert posted.wait(HANG_S)
    told = sorted((about, errnum) for about, errnum, _ in broker.answers)
    assert told == [(topic, errno.ENOSYS) for topic in (*asked, "closing.late")]


class TestTheNameIsTaken:
    @pytest.fixture
    def broker(self) -> FakeHandle:
        return FakeHandle({"service.add": lambda _: Fault(errno.EEXIST, "taken")})

    @staticmethod
    def register(loop: Loop, holder: Any, **more: float) -> None:
        other = FakeHandle({"burst.holder": holder})
        service = FluxService(loop, answer, HOLDER)
        try:
            service.register(RpcClient(other.as_handle()), **more)
        finally:
            service.close()

    def test_by_one_that_says_who_it_is(self, loop: Loop) -> None:
        with pytest.raises(ServiceTaken, match=r"pid 4711 on lead-0, since 20\d\d-"):
            self.register(loop, lambda _: HOLDER)

    def test_by_one_that_says_nothing(self, loop: Loop) -> None:
        with pytest.raises(ServiceTaken, match="another daemon serves this lead"):
            self.register(loop, lambda _: Fault(errno.EPROTO, "what?"))

    def test_by_one_that_has_just_ended(self, broker: FakeHandle, loop: Loop) -> None:
        def gone(_: Any) -> Fault:
            broker.services["service.add"] = lambda _: {}
            return Fault(errno.ENOSYS)

        self.register(loop, gone)

    def test_by_one_that_is_never_there_when_asked(self, loop: Loop) -> None:
        with pytest.raises(ServiceTaken, match="cannot be registered"):
            self.register(loop, lambda _: Fault(errno.ENOSYS), deadline_s=1.0)

    def test_and_the_broker_may_take_its_time_to_say_so(
        self, broker: FakeHandle, loop: Loop
    ) -> None:
        def slow(_: Any) -> dict[str, Any]:
            time.sleep(0.1)
            return {}

        broker.services["service.add"] = slow
        self.register(loop, lambda _: HOLDER, deadline_s=0.0)

    def test_and_the_lead_is_gone(self, loop: Loop) -> None:
        other = FakeHandle({})
        other.lose()
        service = FluxService(loop, answer, HOLDER)
        with pytest.raises(LeadGone):
            service.register(RpcClient(other.as_handle()))
        service.close()

    def test_or_cannot_be_had_for_another_reason(
        self, broker: FakeHandle, loop: Loop
    ) -> None:
        broker.services["service.add"] = lambda _: Fault(errno.EINVAL, "odd")
        with pytest.raises(RequestFailed, match="odd"):
            self.register(loop, lambda _: HOLDER)


@pytest.mark.parametrize(
    ("fault", "error", "text"),
    [
        (Fault(errno.ENOSYS), NoDaemon, "burst daemon"),
        (Fault(errno.EPERM, "not yours"), Denied, "^not yours$"),
        (Fault(errno.EINVAL, "no such burst; x"), BurstError, "^no such burst; x$"),
        (
            None,
            Unreadable,
            r"no answer within .*; .*systemctl restart burst.*burst status",
        ),
    ],
)
def test_a_call_raises_what_the_daemon_said(fault, error, text):
    client = RpcClient(FakeHandle({"burst.x": lambda _: fault}).as_handle())
    with pytest.raises(error, match=text):
        call_service(client, "x", {}, 0.05)
