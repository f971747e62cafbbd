# SPDX-License-Identifier: MIT
"""Stands between a provider and the API server, and misbehaves on purpose."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import socket
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

from tests.kubernetes.api import Api


@dataclass
class Fault:
    """What happens to requests of this method whose path matches."""

    method: str
    path: str
    status: int = 0
    """Answer with it instead of passing on; 0 for the other ways."""
    body: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    drop: bool = False
    """Close the connection without an answer."""
    after: bool = False
    """Pass it on all the same, and lose only the answer."""
    silent: bool = False
    """Do not answer until the proxy is closed."""
    times: int = 1_000_000
    passed: int = 0
    """So many go through first."""

    def hits(self, method: str, path: str) -> bool:
        """Tell whether it strikes now, and count."""
        if method != self.method or not re.search(self.path, path):
            return False
        if self.passed:
            self.passed -= 1
            return False
        self.times -= 1
        return self.times >= 0


class Proxy:
    """A proxy on loopback, speaking HTTP on its near side; a context manager."""

    def __init__(self, api: Api, directory: Path) -> None:
        self.api = api
        self.faults: list[Fault] = []
        self.stale = ""
        """Lists whose path matches are answered as they were when first asked."""
        self.seen: list[tuple[str, str]] = []
        self.memory: dict[str, tuple[int, dict[str, str], bytes]] = {}
        self.closed = threading.Event()
        self.relays: set[socket.socket] = set()
        """Connections, of both sides, of watches that are passed on as they come."""
        self._server = _Server(("127.0.0.1", 0), _Relay)
        self._server.proxy = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=[0.05])
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self.kubeconfig = directory / "proxy.kubeconfig"
        self.kubeconfig.write_text(_kubeconfig(self._server.server_port))

    def __enter__(self) -> Proxy:
        self._thread.start()
        return self

    def cut_watches(self) -> None:
        """Close the connections of all watches, as if the way were lost."""
        for relay in list(self.relays):
            with contextlib.suppress(OSError):
                relay.shutdown(socket.SHUT_RDWR)

    def __exit__(self, *_: object) -> None:
        self.closed.set()
        self.cut_watches()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    proxy: Proxy


class _Relay(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60
    wbufsize = -1  # one segment an answer: the second would wait for the first's ACK

    def relay(self) -> None:
        proxy = cast(_Server, self.server).proxy
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length) if length else None
        proxy.seen.append((self.command, self.path))
        fault = next((f for f in proxy.faults if f.hits(self.command, self.path)), None)
        if fault and not fault.after:
            self._fail(proxy, fault)
            return
        if "watch=true" in self.path and not fault:
            self._pass_events_on(proxy)
            return
        answer = self._pass_on(proxy, body)
        if fault:
            self.close_connection = True
        else:
            self._answer(*answer)

    do_GET = do_POST = do_PATCH = do_DELETE = relay  # noqa: N815

    def finish(self) -> None:
        """As ever, also where the client has closed the connection of a watch."""
        with contextlib.suppress(OSError):
            super().finish()

    def _pass_events_on(self, proxy: Proxy) -> None:
        accept = self.headers.get("Accept", "")
        with proxy.api.stream(self.path, accept) as (answer, way):
            near = self.connection
            self.close_connection = True
            self.send_response(answer.status)
            self.send_header("Connection", "close")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.flush()
            proxy.relays |= {near, way}
            try:
                while line := answer.readline():
                    self.wfile.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")
                    self.wfile.flush()
                self.wfile.write(b"0\r\n\r\n")
            except (OSError, http.client.HTTPException, ValueError):
                return  # one side is gone
            finally:
                proxy.relays -= {near, way}

    def _pass_on(
        self, proxy: Proxy, body: bytes | None
    ) -> tuple[int, dict[str, str], bytes]:
        if proxy.stale and self.command == "GET" and re.search(proxy.stale, self.path):
            if self.path not in proxy.memory:
                proxy.memory[self.path] = self._ask(proxy, body)
            return proxy.memory[self.path]
        return self._ask(proxy, body)

    def _ask(
        self, proxy: Proxy, body: bytes | None
    ) -> tuple[int, dict[str, str], bytes]:
        names = ("Content-Type", "Accept")
        headers = {name: self.headers[name] for name in names if name in self.headers}
        return proxy.api.send(self.command, self.path, body, headers)

    def _fail(self, proxy: Proxy, fault: Fault) -> None:
        if fault.silent:
            proxy.closed.wait()
        if fault.silent or fault.drop:
            self.close_connection = True
            return
        self._answer(fault.status, fault.headers, json.dumps(fault.body).encode())

    def _answer(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        self.send_response(status)
        for name in ("Content-Type", "Retry-After"):
            if name in headers:
                self.send_header(name, headers[name])
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Say nothing: tests look at `seen`."""


def _kubeconfig(port: int) -> str:
    cluster = {"server": f"http://127.0.0.1:{port}"}
    context = {"cluster": "proxy", "user": "nobody"}
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "proxy",
            "clusters": [{"name": "proxy", "cluster": cluster}],
            "users": [{"name": "nobody", "user": {}}],
            "contexts": [{"name": "proxy", "context": context}],
        }
    )
