# SPDX-License-Identifier: MIT
"""An API server on loopback that says what a test tells it to."""

import json
import queue
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

from burst.kits.kube import Cluster, Endpoint
from tests.support.servers import served
from tests.support.waiting import HANG_S

ABSENT: tuple[int, Any]
ABSENT = 404, {"kind": "Status", "details": {"name": "x", "kind": "x"}}
"""The answer where there is no such object."""


def as_line(kind: str, found: Any) -> bytes:
    """Return an event as it is sent."""
    return json.dumps({"type": kind, "object": found}).encode() + b"\n"


class Watch:
    """One watch that was begun, as a test plays the API server's side of it."""

    def __init__(self, query: str) -> None:
        self.query = query
        self.lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self.cut = False
        self.lost = threading.Event()
        """Set once something could not be sent, as the client is gone."""

    def say(self, kind: str, found: Any) -> None:
        """Send an event."""
        self.lines.put(as_line(kind, found))

    def end(self, *, cut: bool = False) -> None:
        """End the answer, or `cut` the connection in the midst of it."""
        self.cut = cut
        self.lines.put(None)


class Said:
    """What it answers, and what it was asked."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.answers: dict[tuple[str, str], list[tuple[int, Any]]] = {}
        self.asked: list[tuple[str, str, str]] = []
        """Method, path with query, and the Authorization header."""
        self.watches: dict[str, list[Watch]] = {}
        """By path, where watches are served. Other paths answer as ever."""
        self.bodies: list[Any] = []
        """What was sent with it; None if nothing was."""
        self.warnings: list[str] = []
        """Texts, each sent with every answer in a Warning header of its own."""
        self.ahead = 0.0
        """Seconds by which its clock is ahead of this host's."""

    def answer(self, method: str, path: str, *answers: tuple[int, Any]) -> None:
        """Answer so, one after the other, the last again and again."""
        self.answers[method, path] = list(answers)

    def serve(self, path: str, *items: Any) -> None:
        """Answer a list of these; only one with a version can be watched."""
        version = {"resourceVersion": "7"} if path in self.watches else {}
        self.answer("GET", path, (200, {"metadata": version, "items": items}))

    def serve_nothing(self, namespace: str = "jobs") -> None:
        """Answer that a namespace has nothing of what bursts are made of."""
        self.serve(f"/apis/batch/v1/namespaces/{namespace}/jobs")
        for kind in ("pods", "configmaps", "secrets", "services", "events"):
            self.serve(f"/api/v1/namespaces/{namespace}/{kind}")


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    said: Said


class _Answering(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # one segment an answer: the second would wait for the first's ACK

    def reply(self) -> None:
        said = cast(_Server, self.server).said
        sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        said.bodies.append(json.loads(sent) if sent else None)
        authorization = self.headers.get("Authorization", "")
        said.asked.append((self.command, self.path, authorization))
        path, _, query = self.path.partition("?")
        if "watch=true" in query and path in said.watches:
            watch = Watch(query)
            said.watches[path].append(watch)
            self._stream(watch)
            return
        answers = said.answers.get((self.command, path), [(404, {})])
        status, body = answers[0] if len(answers) == 1 else answers.pop(0)
        encoded = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self.send_response(status)
        for text in said.warnings:
            quoted = text.replace("\\", "\\\\").replace('"', '\\"')
            self.send_header("Warning", f'299 - "{quoted}"')
        self.send_header("Content-Length", str(len(encoded)))
        self.end_headers()
        self.wfile.write(encoded)

    def _stream(self, watch: Watch) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.flush()
        while (line := watch.lines.get()) is not None:
            try:
                self.wfile.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")
                self.wfile.flush()
            except OSError:
                self.close_connection = True
                watch.lost.set()
                return
        self.close_connection = watch.cut
        if not watch.cut:
            self.wfile.write(b"0\r\n\r\n")

    do_GET = do_POST = do_PATCH = do_DELETE = reply  # noqa: N815

    def date_time_string(self, timestamp: float | None = None) -> str:
        """Return its time for the Date header."""
        ahead = cast(_Server, self.server).said.ahead
        return super().date_time_string(timestamp or time.time() + ahead)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Say nothing."""


@contextmanager
def api_server() -> Iterator[Said]:
    """Run one for the time of a test."""
    server = _Server(("127.0.0.1", 0), _Answering)
    server.said = Said(f"http://127.0.0.1:{server.server_port}")
    with served(server):
        yield server.said


def cluster_of(server: Said) -> Cluster:
    """Return the cluster whose API server it plays."""
    return Cluster(Endpoint(server.url, "", lambda: "t"), timeout=HANG_S)


def kubeconfig(path: Path, server: str, user: dict[str, Any]) -> str:
    """Write a kubeconfig with one user; return its path."""
    context = {"cluster": "c", "user": "u"}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "here", "context": context}],
    }
    path.write_text(json.dumps(config))
    return str(path)
