# SPDX-License-Identifier: MIT
"""EC2 by moto's server over the wire, and how it can misbehave."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from wsgiref.types import StartResponse, WSGIEnvironment

from burst_vm.machines import BURST, HOST, OWNER
from moto.ec2.models import ec2_backends

from tests.plugins.vm.imitation import Imitation
from tests.support.moto_server import MotoServer

ACCOUNT, REGION = "123456789012", "us-east-1"
FULL = """<Response><Errors><Error><Code>InsufficientInstanceCapacity</Code>
<Message>There is no c7i.large now.</Message></Error></Errors></Response>"""
NAMESPACE = b"http://ec2.amazonaws.com/doc/2016-11-15/"
THEIRS = NAMESPACE.rstrip(b"/")
"""Moto leaves out a slash that AWS has, by which Libcloud finds what is said."""
CREDENTIALS = 'key = "AKIDEXAMPLE"\nsecret = "swordfish"\n'


class MotoCloud(Imitation):
    """One account. `close` ends the server."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, CREDENTIALS)
        self._server = MotoServer()
        self._server.answer = self._answer
        self.backend = ec2_backends[ACCOUNT][REGION]
        self.image = next(iter(self.backend.amis))
        self.when_made: Callable[[], object] | None = None
        """Called once the next VM is made, before that is answered."""

    def close(self) -> None:
        self._server.close()
        for vm in self.vms():
            vm.terminate()

    def _answer(self, given: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        if self.down:
            start("503 Service Unavailable", [])
            return [b"down"]
        is_new = b"Action=RunInstances" in given.get("QUERY_STRING", "").encode()
        if is_new and self.full:
            start("500 Internal Server Error", [("Content-Type", "text/xml")])
            return [FULL.encode()]
        cut, self.cut = (self.cut, "") if is_new else ("", self.cut)
        if cut == "before":
            start("503 Service Unavailable", [])
            return [b"cut"]
        said: list[tuple[str, list[tuple[str, str]]]] = []

        def begin(status: str, headers: list[tuple[str, str]], *_: object) -> Any:
            said.append((status, headers))

        text = b"".join(self._server.app(given, begin)).replace(THEIRS, NAMESPACE)
        if is_new and (call := self.when_made):
            self.when_made = None
            call()
        if cut:
            start("503 Service Unavailable", [])
            return [b"cut"]
        [(status, headers)] = said
        start(status, [each for each in headers if each[0] != "Content-Length"])
        return [text]

    def vms(self, **tags: str) -> list[Any]:
        """Return moto's VMs that are not terminated, by tags."""
        wanted = {"owner": OWNER, "burst": BURST, "host": HOST}
        return [
            vm
            for reservation in list(self.backend.reservations.values())
            for vm in reservation.instances
            if vm.state not in ("terminated", "shutting-down")
            and all(
                tags_of(vm).get(wanted[key]) == value for key, value in tags.items()
            )
        ]

    def powered_off(self, vm: Any) -> None:
        """Have a VM that has powered itself off: EC2 deletes it, as it was told."""
        vm.terminate()

    def table(self, **changes: Any) -> dict[str, Any]:
        size = {"size": "c7i.large", "cores": 4, "max_nodes": 4, "price": 0.1}
        return {
            "driver": "ec2",
            "region": REGION,
            "endpoint": self._server.url,
            "credentials": str(self.credentials),
            "image": self.image,
            "dir": str(self.path / "notes"),
            "bind": "127.0.0.1",
            "offers": {"nodes": size},
            **changes,
        }


def tags_of(vm: Any) -> dict[str, str]:
    """Return the tags of one of moto's VMs."""
    return {tag["key"]: tag["value"] for tag in vm.get_tags()}
