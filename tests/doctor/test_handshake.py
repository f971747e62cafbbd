# SPDX-License-Identifier: MIT
"""How far a follower would get, against real sockets."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager

import pytest
import zmq

from burst.doctor.facts import HandshakeResult
from burst.doctor.handshake import try_handshake
from burst.kits import certificate
from tests.support.ports import free_port
from tests.support.waiting import HANG_S

OURS = certificate.create("ours")
THEIRS = certificate.create("theirs")
SHORT_S = 0.2


@contextmanager
def curve_server() -> Iterator[str]:
    """Listen as a lead with the certificate OURS does."""
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    server = context.socket(zmq.ROUTER)
    server.curve_server = True
    server.curve_secretkey = OURS.secret
    server.curve_publickey = OURS.public
    try:
        yield f"tcp://127.0.0.1:{server.bind_to_random_port('tcp://127.0.0.1')}"
    finally:
        context.destroy(linger=0)


@contextmanager
def listener(backlog: int = 8) -> Iterator[tuple[socket.socket, str]]:
    with closing(socket.create_server(("127.0.0.1", 0), backlog=backlog)) as server:
        yield server, f"tcp://127.0.0.1:{server.getsockname()[1]}"


def test_the_leads_own_certificate_is_accepted() -> None:
    with curve_server() as endpoint:
        assert try_handshake(endpoint, OURS, HANG_S) == (HandshakeResult.ACCEPTED, "")


def test_another_certificate_is_not() -> None:
    with curve_server() as endpoint:
        assert try_handshake(endpoint, THEIRS, HANG_S) == (HandshakeResult.REJECTED, "")


def test_without_a_certificate_it_is_only_open() -> None:
    with curve_server() as endpoint:
        assert try_handshake(endpoint, None, HANG_S) == (HandshakeResult.UNVERIFIED, "")


def test_a_program_that_says_nothing_may_be_a_busy_lead() -> None:
    with listener() as (_, endpoint):
        assert try_handshake(endpoint, OURS, SHORT_S) == (
            HandshakeResult.NO_ANSWER,
            "within 0.2s",
        )


def test_where_nobody_listens_the_connection_is_refused() -> None:
    found, detail = try_handshake(f"tcp://127.0.0.1:{free_port()}", OURS, HANG_S)
    assert (found, detail) == (HandshakeResult.REFUSED, "Connection refused")


def test_who_does_not_answer_is_given_up() -> None:
    with listener(backlog=0) as (server, endpoint), ExitStack() as stack:
        # Fill the queue of connections: what comes then is dropped, as by a firewall.
        for _ in range(8):
            waiting = stack.enter_context(closing(socket.socket()))
            waiting.setblocking(False)
            waiting.connect_ex(server.getsockname())
        found, detail = try_handshake(endpoint, OURS, SHORT_S)
    assert (found, detail) == (HandshakeResult.TIMEOUT, "no answer within 0.2s")


def test_a_name_that_does_not_exist_is_told() -> None:
    found, detail = try_handshake("tcp://no-such-host.invalid:8050", OURS, HANG_S)
    assert found is HandshakeResult.UNRESOLVED
    assert detail


def test_other_failures_are_told_in_the_systems_words() -> None:
    # Nobody connects to the broadcast address by TCP.
    found, detail = try_handshake("tcp://255.255.255.255:8050", OURS, HANG_S)
    assert found is HandshakeResult.FAILED
    assert detail


@pytest.mark.parametrize(
    "endpoint", ["ipc:///x", "tcp://x", "tcp://:8050", "tcp://x:0", "", "tcp://x:99999"]
)
def test_what_is_no_tcp_endpoint_is_refused(endpoint: str) -> None:
    with pytest.raises(ValueError, match=r"tcp://|range"):
        try_handshake(endpoint, OURS, HANG_S)
