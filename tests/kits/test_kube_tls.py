# SPDX-License-Identifier: MIT
"""TLS to an API server: what counts as the wrong server, and what may pass."""

from __future__ import annotations

import base64
import json
import socket
import ssl
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from burst.errors import Refused, Transient
from burst.kits.kube import Cluster, Endpoint, Kubeconfig
from burst.kits.kube.kinds import POD, Selection
from tests.http.tls_proxy import copy, make_certificate, tls_proxy
from tests.kits.kubeserver import kubeconfig
from tests.support.servers import served
from tests.support.waiting import HANG_S, wait_until

# A record of the type alert (21), fatal (2), with internal_error (80).
ALERT = bytes([21, 3, 3, 0, 2, 2, 80])


@contextmanager
def breaking_off(*, reads: bool, answer: bytes) -> Iterator[str]:
    """Yield the URL of a server that gives up each connection in its handshake."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                with suppress(OSError), client:
                    client.settimeout(HANG_S)
                    if reads:
                        client.recv(65536)
                    client.sendall(answer)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"https://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(HANG_S)


@pytest.mark.parametrize(
    ("reads", "answer", "words"),
    [
        (True, b"", "EOF occurred in violation of protocol"),
        (False, b"", "cannot be reached"),
        (True, ALERT, "alert internal error"),
    ],
    ids=["closes after the hello", "closes at once", "alert"],
)
def test_a_handshake_that_breaks_off_may_pass(
    reads: bool, answer: bytes, words: str
) -> None:
    """As while an API server starts again behind a balancer of connections."""
    with breaking_off(reads=reads, answer=answer) as url:
        cluster = Cluster(Endpoint(url, "", lambda: "t"), timeout=HANG_S)
        with pytest.raises(Transient, match=words) as caught:
            cluster.find(POD, "default")
    assert f"the API server at {url} cannot be reached" in caught.value.what


def test_a_server_with_a_certificate_of_another_authority_is_the_wrong_one(
    tmp_path: Path,
) -> None:
    certificate, key = make_certificate(tmp_path, "one")
    other, _ = make_certificate(tmp_path, "other")
    with tls_proxy(1, certificate, key) as (port, _):
        access = Endpoint(f"https://localhost:{port}", other.read_text(), lambda: "t")
        with pytest.raises(Refused, match="certificate verify failed"):
            Cluster(access, timeout=HANG_S).version()


def test_a_client_key_of_another_certificate_is_refused(tmp_path: Path) -> None:
    """No connection is tried with it, so it does not pass by itself."""
    certificate, _ = make_certificate(tmp_path, "one")
    _, key = make_certificate(tmp_path, "other")
    user = {"client-certificate": str(certificate), "client-key": str(key)}
    with breaking_off(reads=True, answer=b"") as url:
        path = kubeconfig(tmp_path / "config", url, user)
        with pytest.raises(Refused, match="key values mismatch"):
            Cluster(Kubeconfig(path)).version()


class _Version(BaseHTTPRequestHandler):
    """An API server that ends each connection after its answer, by HTTP/1.0."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"gitVersion": "v1"}\n')

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Say nothing."""


@contextmanager
def tls_server(certificate: Path, key: Path) -> Iterator[str]:
    """Yield the URL of an API server that has this certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server = HTTPServer(("localhost", 0), _Version)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    with served(server):
        yield f"https://localhost:{server.server_port}"


def trusting(
    path: Path, url: str, authority: Path, user: tuple[Path, Path] | None = None
) -> str:
    """Write a kubeconfig that has this authority in it; return its path."""
    told = {"token": "t"}
    if user:
        certificate, key = map(_encoded, user)
        told = {"client-certificate-data": certificate, "client-key-data": key}
    kubeconfig(path, url, told)
    found = json.loads(path.read_text())
    found["clusters"][0]["cluster"]["certificate-authority-data"] = _encoded(authority)
    path.write_text(json.dumps(found))
    return str(path)


def _encoded(file: Path) -> str:
    return base64.b64encode(file.read_bytes()).decode()


def test_a_new_authority_of_the_file_is_read_without_a_restart(
    tmp_path: Path,
) -> None:
    """The address stays, and the API server gets a certificate of another authority."""
    certificate, key = make_certificate(tmp_path, "new")
    old, _ = make_certificate(tmp_path, "old")
    with tls_server(certificate, key) as url:
        path = trusting(tmp_path / "config", url, old)
        cluster = Cluster(Kubeconfig(path), timeout=HANG_S)
        with pytest.raises(Refused, match="certificate verify failed"):
            cluster.version()
        trusting(tmp_path / "config", url, certificate)
        assert cluster.version() == "v1"


@pytest.mark.parametrize("kept", ["authority", "both", "certificate"])
def test_removed_temporary_files_of_the_client_are_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: str
) -> None:
    """As systemd-tmpfiles removes what nobody read for days.

    `kept` is what of the kubeconfig the client keeps there.
    """
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    pair = make_certificate(tmp_path, "one")
    with tls_server(*pair) as url:
        user = None if kept == "authority" else pair
        path = trusting(tmp_path / "config", url, pair[0], user)
        if kept == "certificate":
            found = json.loads(Path(path).read_text())
            server = {"server": url, "certificate-authority": str(pair[0])}
            found["clusters"][0]["cluster"] = server
            Path(path).write_text(json.dumps(found))
        cluster = Cluster(Kubeconfig(path), timeout=HANG_S)
        assert cluster.version() == "v1"
        removed = list(temporary.iterdir())
        assert removed
        for file in removed:
            file.unlink()
        with pytest.raises(Transient, match=r"cannot be reached: .*No such file"):
            cluster.version()
        assert cluster.version() == "v1"


@contextmanager
def tunnels(certificate: Path, key: Path) -> Iterator[str]:
    """Yield the URL of a proxy with TLS of its own, which carries one connection."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with suppress(OSError):
            client, _ = listener.accept()
            with context.wrap_socket(client, server_side=True) as inner:
                inner.settimeout(HANG_S)
                asked = inner.recv(65536).split()[1].decode()  # CONNECT HOST:PORT
                host, _, port = asked.rpartition(":")
                inner.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                with socket.create_connection((host, int(port)), HANG_S) as server:
                    back = threading.Thread(target=copy, args=(server, inner))
                    back.start()
                    copy(inner, server)
                    back.join(HANG_S)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"https://localhost:{listener.getsockname()[1]}"
    finally:
        listener.close()
        thread.join(HANG_S)


def test_a_watch_through_a_proxy_with_tls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The TLS of the API server is inside that of the proxy."""
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    pair = make_certificate(tmp_path, "one")
    with tls_server(*pair) as url, tunnels(*pair) as proxy:
        path = trusting(tmp_path / "config", url, pair[0])
        found = json.loads(Path(path).read_text())
        found["clusters"][0]["cluster"]["proxy-url"] = proxy
        Path(path).write_text(json.dumps(found))
        cluster = Cluster(Kubeconfig(path), timeout=HANG_S)
        stream = cluster.watch(Selection(POD, "jobs", {}), "7", 30)
        lines: list[bytes] = []

        def ended() -> bool:
            lines.extend(stream.lines())
            return stream.ended

        wait_until(ended, "the end of the watch")
        assert lines == [b'{"gitVersion": "v1"}']
