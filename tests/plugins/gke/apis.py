# SPDX-License-Identifier: MIT
"""Resource Manager, IAM and Compute Engine on loopback, with answers of their shape."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from burst_gke.apis import Addresses

from tests.plugins.gke.gke import PROJECT, Gke
from tests.support.servers import served

ZONE = f"/compute/{PROJECT}/zones/us-central1-a"
COMPUTE = "/compute/"
REGION = f"/compute/{PROJECT}/regions/us-central1"


_SERVICES = ("projects", "accounts", "compute", "quotas")


@dataclass
class Google:
    """What the account may do, and what the region has."""

    granted: set[str] = field(default_factory=set)
    on_accounts: set[str] = field(default_factory=set)
    machine_types: Mapping[str, int] = field(default_factory=dict)
    """vCPUs by name."""
    quotas: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Limit and usage by metric."""
    of_project: Mapping[str, tuple[float, float]] | None = field(default_factory=dict)
    """Those of all regions; None where the account may not read them."""
    of_families: Mapping[str, int] = field(default_factory=dict)
    """Limits of vCPUs of families that no quota of the region names."""
    failing: Mapping[str, int] = field(default_factory=dict)
    """Status by a part of a path."""
    tokens: set[str] = field(default_factory=set)
    gke: Gke = field(default_factory=Gke)
    """Whose node pools have the instance groups."""
    page: int = 500
    """How many VMs are in one answer."""
    lost: list[str] = field(default_factory=list)
    """Parts of paths, each of a request whose answer is lost after all was done."""

    def answer(self, path: str, body: Any) -> tuple[int, Any]:
        """Return status and body."""
        for part, status in self.failing.items():
            if part in path:
                return _failure(status, f"no {part} for you")
        if path.endswith(":testIamPermissions"):
            mine = self.on_accounts if path.startswith("/accounts/") else self.granted
            both = [each for each in body["permissions"] if each in mine]
            return 200, {"permissions": both} if both else {}
        if path in self._quotas:
            return self._quotas[path]
        if "/instanceGroupManagers/" in path:
            return self._on_group(path.removeprefix(COMPUTE), body)
        name = path.removeprefix(f"{ZONE}/machineTypes/")
        if name in self.machine_types:
            kind = {"kind": "compute#machineType", "name": name, "memoryMb": 32768}
            return 200, {**kind, "guestCpus": self.machine_types[name]}
        return _failure(404, f"The resource '{path}' was not found")

    @property
    def _quotas(self) -> dict[str, tuple[int, Any]]:
        family = "CPUS-PER-VM-FAMILY-per-project-region"
        service = "locations/global/services/compute.googleapis.com"
        infos = f"/quotas/{PROJECT}/{service}/quotaInfos/{family}"
        return {
            REGION: _quotas(self.quotas),
            f"{COMPUTE}{PROJECT}": _quotas(self.of_project),
            infos: (200, _quota_info(self.of_families)),
        }

    def _on_group(self, path: str, body: Any) -> tuple[int, Any]:
        group, _, method = path.rpartition("/")
        method, _, token = method.partition("?pageToken=")
        with self.gke.lock:
            if group not in self.gke.vms:
                return _failure(404, f"The resource '{group}' was not found")
            if method == "deleteInstances":
                assert body["skipInstancesOnValidationError"] is True
                names = [url.rpartition("/")[2] for url in body["instances"]]
                self.gke.delete_vms(group, names)
                return 200, {"kind": "compute#operation", "status": "PENDING"}
            assert method == "listManagedInstances"
            vms = list(self.gke.vms[group].items())
        begin = int(token or 0)
        zone = f"https://www.googleapis.com/compute/v1/projects{ZONE[8:]}"
        found = [
            {
                "instance": f"{zone}/instances/{name}",
                "instanceStatus": "RUNNING" if looks is None else "STOPPING",
                "currentAction": "NONE" if looks is None else "DELETING",
            }
            for name, looks in vms[begin : begin + self.page]
        ]
        more = begin + self.page < len(vms)
        answer: dict[str, Any] = {"managedInstances": found} if found else {}
        if more:
            answer["nextPageToken"] = f"{begin + self.page}"
        return 200, answer


def _quotas(quotas: Mapping[str, tuple[float, float]] | None) -> tuple[int, Any]:
    """Return an answer about a region or a project."""
    if quotas is None:
        lacks = f"Required 'compute.projects.get' permission for '{PROJECT}'"
        return _failure(403, lacks, "forbidden")
    listed = [
        {"metric": metric, "limit": limit, "usage": usage, "owner": "x"}
        for metric, (limit, usage) in quotas.items()
    ]
    return 200, {"kind": "compute#x", "id": "1", "quotas": listed}


def _quota_info(families: Mapping[str, int]) -> dict[str, Any]:
    """Return an answer of the Cloud Quotas API."""
    infos = [
        {
            "dimensions": {"region": "us-central1", "vm_family": family},
            "details": {"value": str(limit)} if limit else {},
            "applicableLocations": ["us-central1"],
        }
        for family, limit in families.items()
    ]
    # What holds for all regions and families that are not named.
    infos.append({"details": {"value": "24"}, "applicableLocations": ["us-west1"]})
    kind = {"quotaId": "CPUS-PER-VM-FAMILY-per-project-region", "isPrecise": True}
    return {**kind, "dimensions": ["region", "vm_family"], "dimensionsInfos": infos}


def _failure(status: int, message: str, reason: str = "") -> tuple[int, Any]:
    known = [{"message": message, "domain": "global", "reason": reason}]
    errors = known if reason else []
    return status, {"error": {"code": status, "message": message, "errors": errors}}


class Services:
    """What a server answers for, which each test may change."""

    def __init__(self, google: Google) -> None:
        self.google = google


@contextmanager
def serve(services: Services) -> Iterator[Addresses]:
    """Yield where these services are."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(None)

        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            self._answer(json.loads(self.rfile.read(length)))

        def _answer(self, body: Any) -> None:
            google = services.google
            google.tokens.add(self.headers["Authorization"])
            status, found = google.answer(self.path, body)
            for part in google.lost:
                if part in self.path:
                    google.lost.remove(part)
                    self.connection.close()
                    return
            content = json.dumps(found).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json; charset=UTF-8")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *words: object) -> None:
            del words

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    at = f"http://127.0.0.1:{server.server_port}"
    with served(server):
        yield Addresses(*(f"{at}/{name}" for name in _SERVICES))
