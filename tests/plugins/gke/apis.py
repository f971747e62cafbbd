# SPDX-License-Identifier: MIT
"""Resource Manager, IAM and Compute Engine on loopback, with answers of their shape."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from burst_gke.apis import Addresses

from tests.plugins.gke.gke import PROJECT

ZONE = f"/compute/{PROJECT}/zones/us-central1-a"
REGION = f"/compute/{PROJECT}/regions/us-central1"


@dataclass
class Google:
    """What the account may do, and what the region has."""

    granted: set[str] = field(default_factory=set)
    on_accounts: set[str] = field(default_factory=set)
    machine_types: Mapping[str, int] = field(default_factory=dict)
    """vCPUs by name."""
    quotas: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Limit and usage by metric."""
    failing: Mapping[str, int] = field(default_factory=dict)
    """Status by a part of a path."""
    tokens: set[str] = field(default_factory=set)

    def answer(self, path: str, body: Any) -> tuple[int, Any]:
        """Return status and body."""
        for part, status in self.failing.items():
            if part in path:
                return _failure(status, f"no {part} for you")
        if path.endswith(":testIamPermissions"):
            mine = self.on_accounts if path.startswith("/accounts/") else self.granted
            both = [each for each in body["permissions"] if each in mine]
            return 200, {"permissions": both} if both else {}
        if path == REGION:
            quotas = [
                {"metric": metric, "limit": limit, "usage": usage, "owner": "x"}
                for metric, (limit, usage) in self.quotas.items()
            ]
            return 200, {"kind": "compute#region", "status": "UP", "quotas": quotas}
        name = path.removeprefix(f"{ZONE}/machineTypes/")
        if name in self.machine_types:
            kind = {"kind": "compute#machineType", "name": name, "memoryMb": 32768}
            return 200, {**kind, "guestCpus": self.machine_types[name]}
        return _failure(404, f"The resource '{path}' was not found")


def _failure(status: int, message: str) -> tuple[int, Any]:
    return status, {"error": {"code": status, "message": message, "errors": []}}


@contextmanager
def serve(google: Google) -> Iterator[Addresses]:
    """Yield where these services are."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(None)

        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            self._answer(json.loads(self.rfile.read(length)))

        def _answer(self, body: Any) -> None:
            google.tokens.add(self.headers["Authorization"])
            status, found = google.answer(self.path, body)
            content = json.dumps(found).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json; charset=UTF-8")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *words: object) -> None:
            del words

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    at = f"http://127.0.0.1:{server.server_port}"
    try:
        yield Addresses(f"{at}/projects", f"{at}/accounts", f"{at}/compute")
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
