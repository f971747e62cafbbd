# SPDX-License-Identifier: MIT
"""TLS to an API server: what counts as the wrong server, and what may pass."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from burst.errors import Refused, Transient
from burst.kits.kube import Cluster, Endpoint, Kubeconfig
from burst.kits.kube.kinds import POD
from tests.http.tls_proxy import make_certificate, tls_proxy
from tests.kits.kubeserver import kubeconfig
from tests.support.waiting import HANG_S

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
