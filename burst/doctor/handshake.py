# SPDX-License-Identifier: MIT
"""Connects to a lead as a follower would, up to the CURVE handshake.

A follower with a wrong certificate logs no error and waits for ever, and the lead logs
none either. The handshake shows the mistake: it succeeds only with the lead's
certificate. No message follows it, and a lead does not react to it.

Source: zmq_curve(7), zmq_socket_monitor(3).
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import zmq
from zmq.utils.monitor import recv_monitor_message

from burst.doctor.facts import HandshakeResult
from burst.kits.certificate import Certificate

_ENDED = (
    zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
    | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
    | zmq.EVENT_HANDSHAKE_FAILED_AUTH
    | zmq.EVENT_DISCONNECTED
)


def try_handshake(
    endpoint: str, certificate: Certificate | None, timeout_s: float
) -> tuple[HandshakeResult, str]:
    """Return how far a connection to `tcp://ADDRESS:PORT` gets, and a detail.

    The detail is the system's message, or how long an answer was waited for. Without a
    certificate, only a TCP connection is tried. Raises ValueError for an endpoint of
    another form.
    """
    parts = urlsplit(endpoint)
    if parts.scheme != "tcp" or not parts.hostname or not parts.port:
        raise ValueError(f"{endpoint} is not of the form tcp://ADDRESS:PORT")
    ends = time.monotonic() + timeout_s
    try:
        address = (parts.hostname, parts.port)
        socket.create_connection(address, timeout_s).close()
    except ConnectionRefusedError as error:
        return HandshakeResult.REFUSED, str(error.strerror)
    except TimeoutError:
        return HandshakeResult.TIMEOUT, f"no answer within {timeout_s:g}s"
    except socket.gaierror as error:
        return HandshakeResult.UNRESOLVED, str(error.strerror)
    except OSError as error:
        return HandshakeResult.FAILED, str(error.strerror)
    if certificate is None:
        return HandshakeResult.UNVERIFIED, ""
    found = _shake_hands(endpoint, certificate, ends)
    detail = f"within {timeout_s:g}s" if found is HandshakeResult.NO_ANSWER else ""
    return found, detail


def _shake_hands(
    endpoint: str, certificate: Certificate, ends: float
) -> HandshakeResult:
    """Return whether the listener there has the certificate and accepts it."""
    with _dealer(certificate) as dealer:
        monitor = dealer.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED | _ENDED)
        try:
            dealer.connect(endpoint)
            left_ms = int((ends - time.monotonic()) * 1000)
            if left_ms <= 0 or not monitor.poll(left_ms):
                return HandshakeResult.NO_ANSWER
            event: int = recv_monitor_message(monitor)["event"]
            accepted = event == zmq.EVENT_HANDSHAKE_SUCCEEDED
            return HandshakeResult.ACCEPTED if accepted else HandshakeResult.REJECTED
        finally:
            dealer.disable_monitor()


@contextmanager
def _dealer(certificate: Certificate) -> Iterator[zmq.Socket[bytes]]:
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    dealer = context.socket(zmq.DEALER)
    dealer.setsockopt(zmq.LINGER, 0)
    dealer.setsockopt(zmq.IPV6, 1)
    # One attempt only: its result is the answer.
    dealer.setsockopt(zmq.RECONNECT_IVL, -1)
    dealer.curve_publickey = certificate.public
    dealer.curve_secretkey = certificate.secret
    dealer.curve_serverkey = certificate.public
    try:
        yield dealer
    finally:
        context.destroy(linger=0)
