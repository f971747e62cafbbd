# SPDX-License-Identifier: MIT
"""The clients' side: connections, and what is said when one is gone."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import msgspec
import pytest
import zmq
from burst_embedded.handle import EmbeddedHandle, connect_handle
from burst_embedded.wire import Message

from burst.errors import ConfigError, LeadError, LeadGone
from burst.flux.handle import ResponseMessage
from burst.flux.rpc import RequestFailed, RpcClient, ServiceMissing
from tests.embedded_instance import EmbeddedInstance, embedded_instance, short_directory
from tests.support.waiting import HANG_S, wait_until


@pytest.fixture(scope="module")
def instance() -> Iterator[EmbeddedInstance]:
    """One lead for all tests that do not end it."""
    with embedded_instance() as instance:
        yield instance


@pytest.fixture
def handle(instance: EmbeddedInstance) -> Iterator[EmbeddedHandle]:
    with closing(connect_handle(instance.uri)) as handle:
        yield handle


@pytest.mark.parametrize(
    ("uri", "why"),
    [
        ("local:///run/flux", "embedded:// and the path"),
        ("embedded://", "embedded:// and the path"),
        ("embedded://relative/control", "embedded:// and the path"),
        (f"embedded:///{'x' * 100}/control", "at most 107"),
    ],
)
def test_what_is_no_uri_is_refused(uri: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        connect_handle(uri)


def test_what_a_lead_said_before_its_end_is_read() -> None:
    with short_directory() as directory:
        context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        lead = context.socket(zmq.ROUTER)
        lead.bind(f"ipc://{directory}/control")
        with closing(connect_handle(f"embedded://{directory}/control")) as handle:
            handle.send("job-list.list", {})
            identity, _ = lead.recv_multipart()
            lead.send_multipart([identity, Message(1, errnum=errno.ENODATA).encode()])
            lead.close()
            context.term()
            assert handle._monitor.poll(int(HANG_S * 1000))
            said = handle.receive()
            assert isinstance(said, ResponseMessage)
            assert said.errnum == errno.ENODATA
            with pytest.raises(LeadGone, match="closed the connection"):
                handle.receive()


def test_all_that_a_lead_said_is_there_for_a_client_that_reads_late() -> None:
    count = 1500
    with short_directory() as directory:
        context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        lead = context.socket(zmq.ROUTER)
        lead.setsockopt(zmq.SNDHWM, 0)
        lead.setsockopt(zmq.LINGER, int(HANG_S * 1000))
        lead.bind(f"ipc://{directory}/control")
        with closing(connect_handle(f"embedded://{directory}/control")) as handle:
            handle.send("job-list.list", {})
            identity, _ = lead.recv_multipart()
            part = Message(1, payload=b" " * 10_000 + b"{}").encode()
            for _ in range(count):
                lead.send_multipart([identity, part])
            lead.close()
            # Ends when the client has taken all of it.
            context.term()
            assert sum(handle.receive() is not None for _ in range(count)) == count


@pytest.mark.parametrize(
    ("topic", "payload", "kind", "why"),
    [
        ("job-list.list-id", {"id": 1}, RequestFailed, "unknown job"),
        ("job-ingest.submit", {"jobspec": {}, "urgency": 16}, RequestFailed, ""),
        ("job-ingest.submit", {"jobspec": {}}, RequestFailed, "urgency"),
        ("resource.drain", {"targets": 3, "reason": ""}, RequestFailed, "targets"),
        ("burst.status", {}, ServiceMissing, "no service provides it"),
        ("lead.steal", {}, ServiceMissing, "no service provides it"),
    ],
)
def test_what_the_lead_says_is_raised(
    handle: EmbeddedHandle,
    topic: str,
    payload: dict[str, Any],
    kind: type[LeadError],
    why: str,
) -> None:
    with pytest.raises(kind, match=f"{topic}: .*{why}"):
        RpcClient(handle).ask(topic, payload)


def test_nonsense_is_logged_and_harms_nobody(
    instance: EmbeddedInstance, handle: EmbeddedHandle
) -> None:
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    socket = context.socket(zmq.DEALER)
    said = "cannot be decoded"
    try:
        socket.connect(f"ipc://{instance.directory}/r/control")
        socket.send(b"nonsense")
        socket.send(msgspec.msgpack.encode({"type": "Call", "number": 1, "body": {}}))
        socket.send(b"\x81\xa1a" * 100_000)
        wait_until(lambda: instance.log("lead-0").count(said) == 3, said)
    finally:
        context.destroy(linger=0)
    assert RpcClient(handle).ask("embedded.ranks")["online"] == [0]
