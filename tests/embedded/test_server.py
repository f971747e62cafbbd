# SPDX-License-Identifier: MIT
"""The lead's side of the protocol, driven in this process."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zmq
from burst_embedded.boot import read_broker_config
from burst_embedded.connection import Connection
from burst_embedded.job import Update
from burst_embedded.jobqueue import JobQueue
from burst_embedded.methods import LeadMethods
from burst_embedded.pool import NodeResources, ResourcePool
from burst_embedded.server import Server
from burst_embedded.wire import (
    Response,
    calling_socket,
    decode_response,
    encode_request,
)

from burst.model.lead import Bootstrap, LeadIdentity
from tests.embedded_instance import short_directory, write_files
from tests.support.ports import free_port
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

    def undrain(self, ranks: frozenset[int]) -> None:  # type: ignore[override]
        raise RuntimeError("a bug of ours")


class Lead:
    """A server with its methods, which answers when it is told to, and a client."""

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], path: Path) -> None:
        node = NodeResources(rank=0, host="n0", cores=frozenset({0}))
        boot = read_broker_config(write_files(path, free_port()), "lead-0")
        self.queue = BrokenQueue(ResourcePool([node]))
        self.methods = LeadMethods(self.queue, IDENTITY)
        functions = self.methods.all()
        self.server = Server(context, path / "control", boot, functions)
        self.methods.server = self.server
        self.client = calling_socket(context)
        self.client.connect(f"ipc://{path}/control")

    def ask(self, number: int, method: str, *args: Any) -> Response:
        self.client.send(encode_request(number, method, args))
        self.receive()
        answer = self.hear()
        assert answer is not None
        assert answer.number == number
        return answer

    def receive(self) -> None:
        local = self.server.sockets[0]
        assert local.poll(int(HANG_S * 1000))
        self.server.receive()

    def hear(self, seconds: float = HANG_S) -> Response | None:
        if not self.client.poll(math.ceil(seconds * 1000)):
            return None
        return decode_response(self.client.recv())


@pytest.fixture
def directory() -> Iterator[Path]:
    with short_directory() as directory:
        yield directory


@pytest.fixture
def lead(directory: Path) -> Iterator[Lead]:
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    yield Lead(context, directory)
    context.destroy(linger=0)


def test_a_bug_in_one_call_is_told_and_logged_and_ends_nothing(
    lead: Lead, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "burst"):
        answer = lead.ask(1, "undrain", {0})
    assert answer.fault is not None
    assert "internal error: RuntimeError('a bug of ours')" in answer.fault.what
    assert "answering undrain" in caplog.text
    assert lead.ask(2, "identity").read(LeadIdentity).owner == "x"


def test_nothing_is_pushed_unless_something_changed(lead: Lead) -> None:
    first = lead.ask(1, "watch")
    assert (first.last, first.read(Update).number) == (False, 0)
    lead.methods.push()
    assert lead.hear(0.05) is None
    lead.queue.drain({0}, "why")
    lead.methods.push()
    lead.methods.push()
    second = lead.hear()
    assert second is not None
    update = second.read(Update)
    assert (update.number, update.drained) == (1, {0: "why"})
    assert lead.hear(0.05) is None


def test_who_watches_again_gets_each_change_once(lead: Lead) -> None:
    lead.ask(1, "watch")
    lead.ask(2, "watch")
    lead.queue.drain({0}, "why")
    lead.methods.push()
    told = lead.hear()
    assert told is not None
    assert told.number == 2
    assert lead.hear(0.05) is None


def test_all_hear_that_the_lead_lives(lead: Lead) -> None:
    lead.server.beat()
    assert lead.hear(0.05) is None
    lead.ask(1, "sync")
    lead.server.beat()
    assert lead.hear() == Response(0, last=False)


def test_a_lead_that_is_connected_and_says_nothing_is_gone(
    lead: Lead, directory: Path
) -> None:
    """As when its loop hangs: ZeroMQ's own threads still answer probes."""
    connection = Connection(f"embedded://{directory}/control")
    connection.open(lambda said: None, "sync")
    lead.receive()
    deadline = time.monotonic() + HANG_S
    while not connection.gone:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert "silent" in str(connection.gone)
    connection.close()


def test_a_request_without_a_number_is_answered_if_it_fails(lead: Lead) -> None:
    lead.client.send(encode_request(0, "drain", ({0}, "why")))
    lead.receive()
    assert lead.hear(0.05) is None
    answer = lead.ask(0, "drain", {7}, "why")
    assert answer.fault is not None
    assert answer.fault.what == "no such rank: 7"


def test_an_answer_that_nobody_asked_for_is_dropped(lead: Lead) -> None:
    assert lead.ask(1, "answer", 7, "x", None).fault is None
    assert lead.ask(2, "identity").read(LeadIdentity).owner == "x"
