# SPDX-License-Identifier: MIT
"""The API server as tests see it: plain requests as admin, past all code of ours."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import ssl
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from tests.kubelab.cluster import Cluster


class Api:
    """Requests to kubelab's API server with admin's token. Each has a connection."""

    def __init__(self, cluster: Cluster) -> None:
        self._where = urlsplit(cluster.url)
        self._token = cluster.tokens["admin"]
        self._context = ssl.create_default_context(cafile=str(cluster.pki["ca.crt"]))

    def send(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, dict[str, str], bytes]:
        """Return status, headers and body of the answer."""
        connection = http.client.HTTPSConnection(
            self._where.hostname or "",
            self._where.port,
            context=self._context,
            timeout=30,
        )
        authorized = {"Authorization": f"Bearer {self._token}", **(headers or {})}
        try:
            connection.request(method, path, body=body, headers=authorized)
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()

    @contextlib.contextmanager
    def stream(
        self, path: str, accept: str = ""
    ) -> Iterator[tuple[http.client.HTTPResponse, socket.socket]]:
        """Give an answer that is read as it comes, and its connection."""
        connection = http.client.HTTPSConnection(
            self._where.hostname or "",
            self._where.port,
            context=self._context,
            timeout=60,
        )
        headers = {"Authorization": f"Bearer {self._token}"}
        headers |= {"Accept": accept} if accept else {}
        try:
            connection.request("GET", path, headers=headers)
            way = connection.sock
            yield connection.getresponse(), way
        finally:
            connection.close()

    def get(self, path: str) -> Any:
        """Return what is there; None if nothing is."""
        status, _, body = self.send("GET", path)
        if status == 404:
            return None
        assert status == 200, body
        return json.loads(body)

    def items(self, path: str) -> list[Any]:
        """Return a list's items."""
        return list(self.get(path)["items"])

    def create(self, path: str, manifest: Mapping[str, Any]) -> Any:
        """Create an object; one of that name that is there already is fine."""
        headers = {"Content-Type": "application/json"}
        status, _, body = self.send(
            "POST", path, json.dumps(manifest).encode(), headers
        )
        assert status in (200, 201, 409), body
        return json.loads(body)

    def patch(self, path: str, change: Mapping[str, Any]) -> Any:
        """Change an object by a merge patch."""
        headers = {"Content-Type": "application/merge-patch+json"}
        status, _, body = self.send("PATCH", path, json.dumps(change).encode(), headers)
        assert status == 200, body
        return json.loads(body)

    def delete(self, path: str, **options: Any) -> None:
        """Delete an object; fine if it is not there."""
        headers = {"Content-Type": "application/json"}
        status, _, body = self.send(
            "DELETE", path, json.dumps(options).encode(), headers
        )
        assert status in (200, 202, 404), body
