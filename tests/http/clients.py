# SPDX-License-Identifier: MIT
"""Clients of a server under test: well-behaved ones, and sockets that send anything."""

import http.client
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from email.message import Message
from types import MappingProxyType
from typing import NamedTuple

from burst.config import parse_listen
from burst.http.routes import Route, Routes
from burst.http.server import LONGEST_S, HttpServer
from tests.support.waiting import HANG_S


class Answer(NamedTuple):
    """What came back."""

    status: int
    body: str
    headers: Message


@contextmanager
def serving(
    *routes: Route,
    listen: str = "127.0.0.1:0",
    token: bytes | None = None,
    longest_s: float = LONGEST_S,
) -> Iterator[HttpServer]:
    """Yield a server with these routes."""
    server = HttpServer(parse_listen(listen), Routes(routes), token, longest_s)
    server.start()
    try:
        yield server
    finally:
        server.close()


def ask(
    port: int,
    path: str,
    method: str = "GET",
    body: bytes | None = None,
    headers: Mapping[str, str] = MappingProxyType({}),
) -> Answer:
    """Ask as Python's own client does."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=HANG_S)
    try:
        connection.request(method, path, body, dict(headers))
        answer = connection.getresponse()
        text = answer.read().decode()
        return Answer(answer.status, text, answer.headers)
    finally:
        connection.close()


def bearer(token: str) -> dict[str, str]:
    """Return the header of a token."""
    return {"Authorization": f"Bearer {token}"}


def ask_socket(path: str, url: str) -> bytes:
    """Ask over a Unix socket; return all that comes."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(HANG_S)
        client.connect(path)
        client.sendall(f"GET {url} HTTP/1.0\r\n\r\n".encode())
        return read_all(client)


def send_raw(port: int, *parts: bytes) -> bytes:
    """Send bytes, and return all that comes back until the server closes."""
    with socket.create_connection(("127.0.0.1", port), HANG_S) as client:
        for part in parts:
            try:
                client.sendall(part)
            except (BrokenPipeError, ConnectionResetError):
                break
        return read_all(client)


def read_all(client: socket.socket) -> bytes:
    """Read until the other side closes or resets."""
    found = b""
    while True:
        try:
            part = client.recv(65536)
        except ConnectionResetError:
            return found
        if not part:
            return found
        found += part
