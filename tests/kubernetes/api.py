# SPDX-License-Identifier: MIT
"""The API server as tests see it: plain requests as admin, past all code of ours."""

from __future__ import annotations

import contextlib
import http.client
import json
import select
import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from tests.kubelab.cluster import BUSY, Cluster
from tests.support.waiting import HANG_S, wait_until


class Api:
    """Requests to kubelab's API server with admin's token, on connections that stay."""

    def __init__(self, cluster: Cluster) -> None:
        self._where = urlsplit(cluster.url)
        self._token = cluster.tokens["admin"]
        self._context = ssl.create_default_context(cafile=str(cluster.pki["ca.crt"]))
        self._idle: list[http.client.HTTPSConnection] = []

    def close(self) -> None:
        """Close all connections."""
        while self._idle:
            self._idle.pop().close()

    def send(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, dict[str, str], bytes]:
        """Return status, headers and body of the answer.

        What a busy server did not answer in time is sent again, as kubectl's is.
        """
        for _ in range(10):
            found = self._send(method, path, body, headers)
            if found[0] < 500 or not BUSY.search(found[2].decode(errors="replace")):
                break
            time.sleep(1)
        return found

    def _send(
        self,
        method: str,
        path: str,
        body: bytes | None,
        headers: Mapping[str, str] | None,
    ) -> tuple[int, dict[str, str], bytes]:
        authorized = {"Authorization": f"Bearer {self._token}", **(headers or {})}
        connection = self._take()
        try:
            connection.request(method, path, body=body, headers=authorized)
            answer = connection.getresponse()
            found = answer.status, dict(answer.getheaders()), answer.read()
        except BaseException:
            connection.close()
            raise
        if connection.sock:  # or the server has said that it closes it
            self._idle.append(connection)
        return found

    @contextlib.contextmanager
    def stream(
        self, path: str, accept: str = ""
    ) -> Iterator[tuple[http.client.HTTPResponse, socket.socket]]:
        """Give an answer that is read as it comes, and its connection."""
        connection = self._connection(60)
        headers = {"Authorization": f"Bearer {self._token}"}
        headers |= {"Accept": accept} if accept else {}
        try:
            connection.request("GET", path, headers=headers)
            way = connection.sock
            yield connection.getresponse(), way
        finally:
            connection.close()

    def _take(self) -> http.client.HTTPSConnection:
        """Return one that is idle and open, or a new one."""
        while self._idle:
            connection = self._idle.pop()
            # What can be read from one that is idle is its end, at the server.
            if not select.select([connection.sock], [], [], 0)[0]:
                return connection
            connection.close()
        return self._connection(HANG_S)

    def _connection(self, timeout: float) -> http.client.HTTPSConnection:
        host, port = self._where.hostname or "", self._where.port
        return http.client.HTTPSConnection(
            host, port, context=self._context, timeout=timeout
        )

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
        status, body = self._post(path, manifest)
        assert status in (200, 201, 409), body
        return json.loads(body)

    def refusal(self, path: str, manifest: Mapping[str, Any]) -> str:
        """Return why an object would not be created; empty if it would."""
        status, body = self._post(f"{path}?dryRun=All", manifest)
        return "" if status in (200, 201) else str(json.loads(body)["message"])

    def _post(self, path: str, manifest: Mapping[str, Any]) -> tuple[int, bytes]:
        headers = {"Content-Type": "application/json"}
        body = json.dumps(manifest).encode()
        status, _, answer = self.send("POST", path, body, headers)
        return status, answer

    def make_quota(self, namespace: str, name: str, hard: Mapping[str, str]) -> None:
        """Make a ResourceQuota; return once it holds."""
        quotas = f"/api/v1/namespaces/{namespace}/resourcequotas"
        spec = {"hard": {**hard, "resourcequotas": "1"}}
        self.create(quotas, {"metadata": {"name": name}, "spec": spec})
        # Admission learns later than others what is used; one more would be too many.
        another = {"metadata": {"name": "another"}}
        wait_until(
            lambda: "exceeded quota" in self.refusal(quotas, another), "the quota"
        )

    def patch(
        self, path: str, change: Mapping[str, Any], kind: str = "merge-patch"
    ) -> Any:
        """Change an object by a patch of this kind."""
        headers = {"Content-Type": f"application/{kind}+json"}
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
