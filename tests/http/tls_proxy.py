# SPDX-License-Identifier: MIT
"""A proxy that ends TLS before a server, as a site would put one there."""

import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from tests.support.waiting import HANG_S


def make_certificate(place: Path, name: str) -> tuple[Path, Path]:
    """Write a certificate for localhost that signs itself; return it and its key."""
    made, key = place / f"{name}.crt", place / f"{name}.key"
    command = ["openssl", "req", "-x509", "-nodes", "-days", "1", "-newkey", "rsa:2048"]
    command += ["-subj", f"/CN={name}", "-addext", "subjectAltName=DNS:localhost"]
    command += ["-keyout", str(key), "-out", str(made)]
    subprocess.run(command, check=True, capture_output=True, timeout=HANG_S)
    return made, key


@contextmanager
def tls_proxy(
    backend: int, certificate: Path, key: Path
) -> Iterator[tuple[int, list[bytes]]]:
    """Yield the port where it listens, and what came through it, decrypted."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    seen: list[bytes] = []
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                with suppress(OSError), closing(client):
                    client.settimeout(HANG_S)
                    with context.wrap_socket(client, server_side=True) as inner:
                        _pass_on(inner, backend, seen)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1], seen
    finally:
        # `close` alone does not wake a thread that waits in `accept`.
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(HANG_S)


def _pass_on(client: ssl.SSLSocket, backend: int, seen: list[bytes]) -> None:
    """Pass one request on, and its answer back. HTTP/1.0: the answer ends the rest."""
    with socket.create_connection(("127.0.0.1", backend), HANG_S) as server:
        answered = threading.Thread(target=copy, args=(server, client), daemon=True)
        answered.start()
        with suppress(OSError):
            while chunk := client.recv(65536):
                seen.append(chunk)
                server.sendall(chunk)
        answered.join(HANG_S)


def copy(server: socket.socket, client: socket.socket) -> None:
    """Send on what comes until there is no more, then tell that."""
    with suppress(OSError):
        while chunk := server.recv(65536):
            client.sendall(chunk)
        client.shutdown(socket.SHUT_RDWR)
