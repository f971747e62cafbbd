# SPDX-License-Identifier: MIT
from __future__ import annotations

import errno
from typing import Any

import pytest

from burst.errors import Denied, LeadGone, Unreadable
from burst.flux.handle import ResponseMessage
from burst.flux.rpc import RequestFailed, RpcClient, ServiceMissing
from tests.flux.fake_handle import FakeHandle, Fault


@pytest.fixture
def broker() -> FakeHandle:
    return FakeHandle({"echo": dict})


@pytest.fixture
def client(broker: FakeHandle) -> RpcClient:
    return RpcClient(broker.as_handle())


def test_an_answer_is_an_object(client: RpcClient) -> None:
    assert client.ask("echo", {"a": [1, None]}) == {"a": [1, None]}
    assert client.ask("echo") == {}


def test_an_empty_answer_is_an_empty_object(
    broker: FakeHandle, client: RpcClient
) -> None:
    def nothing(_: Any) -> None:
        broker.arrive(ResponseMessage(1, 0, b""))

    broker.services["nothing"] = nothing
    assert client.ask("nothing") == {}


def test_no_more_than_a_thousand_wait_for_an_answer_at_a_time() -> None:
    waiting: list[int] = []

    class Counting(FakeHandle):
        def receive(self) -> Any:
            waiting.append(self._sent - len(waiting))
            return super().receive()

    client = RpcClient(Counting({"echo": dict}).as_handle())
    assert len(client.ask_all(("echo", {}) for _ in range(2500))) == 2500
    assert max(waiting) == 1000


def test_answers_may_come_in_any_order(broker: FakeHandle, client: RpcClient) -> None:
    def late(_: Any) -> None:
        """Answer once the second request is there."""

    def both(_: Any) -> dict[str, Any]:
        broker.arrive(ResponseMessage(2, 0, b'{"n":2}'))
        broker.arrive(ResponseMessage(1, 0, b'{"n":1}'))
        return {"n": 3}

    broker.services.update(late=late, both=both)
    queries: list[Any] = [("late", {}), ("late", {}), ("both", {})]
    assert client.ask_all(queries) == [{"n": 1}, {"n": 2}, {"n": 3}]


@pytest.mark.parametrize(
    ("fault", "error", "text"),
    [
        (Fault(errno.EPERM, "not yours"), Denied, "echo: not yours"),
        (Fault(errno.EPERM), Denied, "only the instance owner"),
        (Fault(errno.ENOSYS), ServiceMissing, "echo: no module serves it"),
        (Fault(errno.ENOSYS, "no x"), ServiceMissing, "echo: no x"),
        (Fault(errno.EINVAL, "bad ƒ"), RequestFailed, "echo: bad ƒ"),
        (Fault(errno.EINVAL), RequestFailed, "echo: Invalid argument"),
    ],
)
def test_an_error_is_what_it_says(broker, client, fault, error, text):
    broker.services["echo"] = lambda _: fault
    with pytest.raises(error, match=text):
        client.ask("echo")


def test_failures_of_some_are_values(broker: FakeHandle, client: RpcClient) -> None:
    broker.services["bad"] = lambda _: Fault(errno.ENOENT, "gone")
    one, two = client.ask_all([("bad", {}), ("echo", {"a": 1})])
    assert isinstance(one, RequestFailed)
    assert one.errnum == errno.ENOENT
    assert two == {"a": 1}


def test_no_answer_in_time_is_unreadable(broker: FakeHandle, client: RpcClient) -> None:
    broker.services["slow"] = lambda _: None
    with pytest.raises(Unreadable, match=r"slow: no answer within 0\.02s"):
        client.ask("slow", {}, 0.02)


def test_an_answer_that_comes_too_late_is_no_other_requests(
    broker: FakeHandle, client: RpcClient
) -> None:
    broker.services["slow"] = lambda _: None
    with pytest.raises(Unreadable):
        client.ask("slow", {}, 0.01)
    broker.arrive(ResponseMessage(1, 0, b'{"late":true}'))
    assert client.ask("echo", {"a": 1}) == {"a": 1}


def test_a_lost_broker_is_said(broker: FakeHandle, client: RpcClient) -> None:
    broker.services["die"] = lambda _: broker.lose()
    with pytest.raises(LeadGone):
        client.ask("die")
    with pytest.raises(LeadGone):
        client.ask("echo")
