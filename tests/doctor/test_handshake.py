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


@pytest.mark.parametrize(
    ("ours", "found"),
    [
        (OURS, HandshakeResult.ACCEPTED),
        (THEIRS, HandshakeResult.REJECTED),
        (None, HandshakeResult.UNVERIFIED),
    ],
)
def test_the_leads_own_certificate_alone_is_accepted(
    ours: certificate.Certificate | None, found: HandshakeResult
) -> None:
    with curve_server() as endpoint:
        assert try_handshake(endpoint, ours, HANG_S) == (found, "")


def test_a_program_that_says_nothing_may_be_a_busy_lead() -> None:
    with listener() as (_, endpoint):
        assert try_handshake(endpoint, OURS, SHORT_S) == (
            HandshakeResult.NO_ANSWER,
            "within 0.2s",
        )
    # Who does not answer is given up.
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
    # Other failures are told in the systems words.
    # Nobody connects to the broadcast address by TCP.
    found, detail = try_handshake("tcp://255.255.255.255:8050", OURS, HANG_S)
    assert found is HandshakeResult.FAILED
    assert detail
    # Where nobody listens the connection is refused.
    found, detail = try_handshake(f"tcp://127.0.0.1:{free_port()}", OURS, HANG_S)
    assert (found, detail) == (HandshakeResult.REFUSED, "Connection refused")


@pytest.mark.parametrize(
    "endpoint", ["ipc:///x", "tcp://x", "tcp://:8050", "tcp://x:0", "", "tcp://x:99999"]
)
def test_what_is_no_tcp_endpoint_is_refused(endpoint: str) -> None:
    with pytest.raises(ValueError, match=r"tcp://|range"):
        try_handshake(endpoint, OURS, HANG_S)
