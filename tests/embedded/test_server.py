# SPDX-License-Identifier: MIT
"""The lead's side of the protocol, driven in this process."""

from __future__ import annotations

import errno
import logging
import math
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zmq
from burst_embedded.boot import read_broker_config
from burst_embedded.jobqueue import JobQueue
from burst_embedded.lead_client import connect
from burst_embedded.methods import JOURNAL, LeadMethods
from burst_embedded.pool import ResourcePool
from burst_embedded.server import Server
from burst_embedded.wire import PROTOCOL, Message, calling_socket, decode

from burst.errors import ConfigError
from burst.model.lead import Bootstrap, LeadIdentity
from burst.model.shape import Shape
from tests.embedded.jobspecs import Wanted, build_jobspec
from tests.embedded.nodes import resources
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

    def undrain(self, targets: str) -> None:
        raise RuntimeError("a bug of ours")


class Lead:
    """A server with its methods, which answers when it is told to, and a client."""

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], path: Path) -> None:
        boot = read_broker_config(write_files(path, free_port()), "lead-0")
        self.queue = BrokenQueue(ResourcePool(resources((Shape(1), []))))
        self.server = Server(context, path / "control", boot)
        self.methods = LeadMethods(self.queue, IDENTITY, self.server)
        self.server.answer_by(self.methods.table(), self.methods.push)
        self.client = calling_socket(context)
        self.client.connect(f"ipc://{path}/control")

    def ask(self, tag: int, topic: str, **payload: Any) -> Message:
        self.say(tag, topic, **payload)
        answer = self.hear()
        assert answer is not None
        assert answer.tag == tag
        return answer

    def say(self, tag: int, topic: str, **payload: Any) -> None:
        self.client.send(Message(tag, topic, msgspec.json.encode(payload)).encode())
        self.receive()

    def receive(self) -> None:
        local = self.server.sockets[0]
        assert local.poll(int(HANG_S * 1000))
        self.server.receive()

    def hear(self, seconds: float = HANG_S) -> Message | None:
        if not self.client.poll(math.ceil(seconds * 1000)):
            return None
        return decode(self.client.recv())


@pytest.fixture
def directory() -> Iterator[Path]:
    with short_directory() as directory:
        yield directory


@pytest.fixture
def lead(directory: Path) -> Iterator[Lead]:
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    yield Lead(context, directory)
    context.destroy(linger=0)


def owner(lead: Lead, tag: int) -> str:
    found = msgspec.json.decode(lead.ask(tag, "embedded.identity").payload)
    return str(found["owner"])


def test_a_client_of_another_version_is_told_so(lead: Lead, directory: Path) -> None:
    """As a daemon that is newer than the lead, which runs on."""
    enough = threading.Event()

    def answer() -> None:
        while not enough.is_set():
            if lead.server.sockets[0].poll(20):
                lead.server.receive()

    thread = threading.Thread(target=answer)
    thread.start()
    try:
        told = rf"is of another version: 1.0.0, and not {PROTOCOL}; start it anew"
        with pytest.raises(ConfigError, match=told):
            connect(f"embedded://{directory}/control")
    finally:
        enough.set()
        thread.join()


def test_a_bug_in_one_call_is_told_and_logged_and_ends_nothing(
    lead: Lead, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "burst"):
        answer = lead.ask(1, "resource.undrain", targets="0")
    assert answer.errnum
    assert b"internal error: RuntimeError('a bug of ours')" in answer.payload
    assert "answering resource.undrain" in caplog.text
    assert owner(lead, 2) == "x"


def test_what_happened_is_told_before_the_answer_to_what_came_after(
    lead: Lead,
) -> None:
    first = lead.ask(1, JOURNAL, allow={"submit": 1})
    assert msgspec.json.decode(first.payload)["id"] == -1
    job = lead.queue.submit(build_jobspec(["true"], Wanted(), {}), 16)
    lead.say(2, "job-manager.ping")
    for name in ("submit", "", "", ""):
        told = lead.hear()
        assert told is not None
        entry = msgspec.json.decode(told.payload)
        assert entry["id"] == job.id
        assert [event["name"] for event in entry["events"]] == [name] * bool(name)
    assert lead.hear() == Message(2, payload=b"{}")


def test_a_stream_that_is_canceled_brings_nothing_more(lead: Lead) -> None:
    lead.ask(1, JOURNAL, allow={})
    lead.say(2, f"{JOURNAL}-cancel", matchtag=1)
    assert lead.hear() == Message(1, errnum=errno.ENODATA)
    lead.queue.submit(build_jobspec(["true"], Wanted(), {}), 16)
    lead.methods.push()
    assert lead.hear(0.05) is None


def test_a_request_without_a_tag_is_answered_if_it_fails(lead: Lead) -> None:
    lead.say(0, "resource.drain", targets="0", reason="why")
    assert lead.hear(0.05) is None
    answer = lead.ask(0, "resource.drain", targets="7", reason="why")
    assert answer.payload == b"no such rank: 7"
