# SPDX-License-Identifier: MIT
"""The lead's side of the clients' socket, driven in this process."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
import zmq
from burst_embedded.calls import (
    Body,
    ClientRequest,
    ClientResponse,
    Identify,
    ServiceReply,
    UndrainCall,
    WatchInstance,
)
from burst_embedded.client import ClientSocket
from burst_embedded.control import Control
from burst_embedded.jobqueue import JobQueue
from burst_embedded.node import NodeResources
from burst_embedded.pool import ResourcePool
from burst_embedded.stream import ClientStream
from burst_embedded.wire import Heartbeat

from burst.model.lead import Bootstrap, LeadIdentity
from tests.embedded_instance import short_directory
from tests.support.waiting import HANG_S

IDENTITY = LeadIdentity(
    kind="embedded",
    version="1.0.0",
    uri="",
    owner="x",
    hosts=("n0",),
    shapes=(),
    bootstrap=Bootstrap(hosts=()),
    endpoint="",
    certificate="",
)


class BrokenQueue(JobQueue):
    """A queue with a bug."""

    def undrain(self, ranks: object) -> None:
        raise RuntimeError("a bug of ours")


@pytest.fixture
def queue() -> JobQueue:
    return BrokenQueue(
        ResourcePool([NodeResources(rank=0, host="n0", cores=frozenset({0}))])
    )


@pytest.fixture
def directory() -> Iterator[Path]:
    with short_directory() as directory:
        yield directory


@pytest.fixture
def control(queue: JobQueue, directory: Path) -> Iterator[Control]:
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    yield Control(context, directory / "control", queue, IDENTITY)
    context.destroy(linger=0)


@pytest.fixture
def client(control: Control, directory: Path) -> Iterator[ClientSocket]:
    with closing(ClientSocket(f"embedded://{directory}/control")) as client:
        yield client


def ask(
    control: Control, client: ClientSocket, number: int, body: Body
) -> ClientResponse:
    client.send(ClientRequest(number, body))
    assert control.socket.poll(int(HANG_S * 1000))
    control.receive()
    answer = client.receive(HANG_S)
    assert isinstance(answer, ClientResponse)
    assert answer.number == number
    return answer


def test_a_bug_in_one_call_is_told_and_logged_and_ends_nothing(
    control: Control, client: ClientSocket, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "burst"):
        answer = ask(control, client, 1, UndrainCall(frozenset({0})))
    assert answer.fault is not None
    assert "internal error: RuntimeError('a bug of ours')" in answer.fault.what
    assert "answering Undrain" in caplog.text
    assert ask(control, client, 2, Identify()).payload["owner"] == "x"


def test_nothing_is_pushed_unless_something_changed(
    control: Control, client: ClientSocket, queue: JobQueue
) -> None:
    first = ask(control, client, 1, WatchInstance("burstable"))
    assert (first.last, first.payload["number"]) == (False, 0)
    control.push()
    assert client.receive(0.05) is None
    queue.drain({0}, "why")
    control.push()
    control.push()
    second = client.receive(HANG_S)
    assert isinstance(second, ClientResponse)
    assert second.payload["number"] == 1
    assert second.payload["view"]["drained"] == {0: "why"}
    assert client.receive(0.05) is None


def test_who_watches_hears_that_the_lead_lives(
    control: Control, client: ClientSocket
) -> None:
    control.beat()
    assert client.receive(0.05) is None
    ask(control, client, 1, WatchInstance("burstable"))
    control.beat()
    assert client.receive(HANG_S) == Heartbeat()


def test_a_lead_that_is_connected_and_says_nothing_is_gone(
    control: Control, directory: Path
) -> None:
    """As when its loop hangs: ZeroMQ's own threads still answer probes."""
    with ThreadPoolExecutor(1) as pool:
        opening = pool.submit(
            ClientStream, f"embedded://{directory}/control", WatchInstance("burstable")
        )
        assert control.socket.poll(int(HANG_S * 1000))
        control.receive()
        line = opening.result()
    over = threading.Event()
    line.start(lambda said: None, over.set)
    assert over.wait(HANG_S)
    assert "silent" in str(line.gone)
    line.close()


def test_an_answer_that_nobody_asked_for_is_dropped(
    control: Control, client: ClientSocket
) -> None:
    client.send(ServiceReply(7, "x"))
    assert control.socket.poll(int(HANG_S * 1000))
    control.receive()
    assert ask(control, client, 1, Identify()).payload["owner"] == "x"
