# SPDX-License-Identifier: MIT
"""A fake of Azure Resource Manager over the wire, and how it can misbehave.

It answers what the driver asks for, in the words of Azure's REST API 2024-07-01: VMs of
one resource group, with an interface and a disk each, which are there until they are
deleted, or are to be deleted with their VM.
"""

from __future__ import annotations

import base64
import json
import threading
import uuid
from collections.abc import Callable
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from burst_vm.azure import AzureDriver
from burst_vm.cloud import VmCloud
from burst_vm.machines import BURST, HOST, OWNER
from burst_vm.settings import VmSettings
from libcloud.common.azure_arm import AzureResourceManagementConnection
from libcloud.http import LibcloudConnection

from tests.plugins.vm.imitation import Imitation
from tests.support.servers import served

_SUBSCRIPTION = "/subscriptions/sub-1"
GROUP = f"{_SUBSCRIPTION}/resourceGroups/hpc"
_VMS = f"{GROUP}/providers/Microsoft.Compute/virtualMachines"
PLACE = f"{_SUBSCRIPTION}/providers/Microsoft.Compute/locations/westeurope"
IMAGE = f"{GROUP}/providers/Microsoft.Compute/galleries/g/images/flux"
CREDENTIALS = 'key = "app-1"\nsecret = "swordfish"\n'
SIZE = {
    "name": "Standard_D8s_v5",
    "numberOfCores": 8,
    **dict.fromkeys(("memoryInMB", "resourceDiskSizeInMB", "osDiskSizeInMB"), 32768),
    "maxDataDiskCount": 16,
}
_PAGES = f"{_VMS}Next/"
_PAGE = 2
"""So many VMs are listed at a time."""
_LOOKS = 2
"""So often a VM is listed that was deleted."""
FULL = (409, "AllocationFailed", "We do not have sufficient capacity for the size.")
CUT = (503, "ServerTimeout", "The request was cut off.")
Error = tuple[int, str, str]
"""HTTP status, code and message."""


class AzureVm:
    """One VM, with the methods of moto's that tests call."""

    def __init__(self, cloud: FakeAzure, path: str, body: dict[str, Any]) -> None:
        self._cloud = cloud
        self.path, self.body = path, body
        self.name = path.rpartition("/")[2]
        self.id = f"{self.name}.{uuid.uuid4().hex[:8]}"
        """Another one for the next VM of that name."""
        self.power, self.provisioning, self.message = "running", "succeeded", ""
        self.looks = 0
        """So often it is still listed, 0 if that has no end."""
        properties = body["properties"]
        self.user_data = base64.b64decode(properties["osProfile"]["customData"])
        [nic] = properties["networkProfile"]["networkInterfaceConfigurations"]
        self.parts = {
            f"{self.name}_OsDisk_1": properties["storageProfile"]["osDisk"],
            f"{nic['name']}-1": nic["properties"],
        }
        """What was made with it, by name."""

    def get_tags(self) -> list[dict[str, str]]:
        return [{"key": k, "value": v} for k, v in self.body["tags"].items()]

    def terminate(self) -> None:
        """Be deleted at once, as by somebody else."""
        self._cloud.remove(self)

    def listed(self) -> dict[str, Any]:
        given = self.body["properties"]
        shown = {key: given[key] for key in ("hardwareProfile", "storageProfile")}
        state = self.provisioning.partition("/")[0].capitalize()
        return {
            "id": self.path,
            "name": self.name,
            "location": self.body["location"],
            "tags": self.body["tags"],
            "properties": {**shown, "provisioningState": state},
        }

    def view(self) -> dict[str, Any]:
        made = {"code": f"ProvisioningState/{self.provisioning}"}
        statuses = [{**made, "message": self.message} if self.message else made]
        if self.power:
            statuses.append({"code": f"PowerState/{self.power}"})
        return {"statuses": statuses}


class FakeAzure(Imitation):
    """One resource group. `close` ends the server."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, CREDENTIALS)
        self.refuses = False
        self._lock = threading.RLock()
        self._vms: dict[str, AzureVm] = {}
        self._listed: list[dict[str, Any]] = []
        self.parts: dict[str, dict[str, Any]] = {}
        """Disks and interfaces that there are, whatever became of their VMs."""
        self.usages: list[dict[str, Any]] = []
        self.errors: dict[str, Error] = {}
        """Answers to the next request whose method and path begin so."""
        self.asked: list[str] = []
        server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._port = server.server_port
        self._until_closed = ExitStack()
        self._until_closed.enter_context(served(server))

    def close(self) -> None:
        self._until_closed.close()

    def answer(
        self, method: str, path: str, body: dict[str, Any], new: bool
    ) -> tuple[int, Any]:
        """Return status and content. `new`: it must make what it names."""
        with self._lock:
            self.asked.append(f"{method} {path}")
            if self.down:
                return _error(CUT)
            for wanted in list(self.errors):
                if f"{method} {path}".startswith(wanted):
                    return _error(self.errors.pop(wanted))
            if method == "POST":
                return self._login(path)
            if method == "PUT":
                return self._put(path, body, new)
            if method == "DELETE":
                return self._delete(path)
            return self._get(path)

    def _login(self, path: str) -> tuple[int, Any]:
        assert path == "/tenant-1/oauth2/token"
        if self.refuses:
            said = "AADSTS7000222: The provided client secret keys are expired; invalid"
            return 401, {"error": "invalid_client", "error_description": said}
        return 200, {"access_token": "token-1", "expires_on": "99999999999"}

    def _put(self, path: str, body: dict[str, Any], new: bool) -> tuple[int, Any]:
        cut, self.cut = self.cut, ""
        if self.full:
            return _error(FULL)
        if cut == "before":
            return _error(CUT)
        if path in self._vms:
            code = "PreconditionFailed" if new else "PropertyChangeNotAllowed"
            return _error((412 if new else 409, code, f"There is {path}."))
        vm = self._vms[path] = AzureVm(self, path, body)
        self.parts |= vm.parts
        return _error(CUT) if cut else (201, vm.listed())

    def _delete(self, path: str) -> tuple[int, Any]:
        if path not in self._vms:
            return 204, None
        vm = self._vms[path]
        vm.provisioning, vm.looks = "deleting", vm.looks or _LOOKS
        return 202, None

    def _get(self, path: str) -> tuple[int, Any]:
        if path == _VMS:
            self._listed = [vm.listed() for vm in self._look()]
            return 200, self._page(0)
        if path.startswith(_PAGES):
            return 200, self._page(int(path.removeprefix(_PAGES)))
        found = self._facts().get(path)
        if found is None:
            return _error((404, "ResourceNotFound", f"There is no {path}."))
        return 200, found

    def _page(self, begins: int) -> dict[str, Any]:
        """Return some VMs, and where the next are, as Azure does with hundreds."""
        ends = begins + _PAGE
        page: dict[str, Any] = {"value": self._listed[begins:ends]}
        if ends < len(self._listed):
            page["nextLink"] = f"https://management.test{_PAGES}{ends}?api-version=1"
        return page

    def _facts(self) -> dict[str, Any]:
        """Return what there is to be read but for the list of VMs, by path."""
        publishers = f"{PLACE}/publishers/Canonical/artifacttypes/vmimage/offers"
        return {
            IMAGE: {"id": IMAGE},
            f"{PLACE}/vmSizes": {"value": [SIZE]},
            f"{PLACE}/usages": {"value": self.usages},
            f"{publishers}/ubuntu/skus/22_04-lts/versions": [{"name": "22.04.1"}],
            **{
                f"{path}/instanceView": vm.view()
                for path, vm in self._vms.items()
                if vm.provisioning != "deleting"
            },
        }

    def _look(self) -> list[AzureVm]:
        """Return what is listed; of what is deleted some is for the last time."""
        found = list(self._vms.values())
        for vm in found:
            if vm.looks == 1:
                self.remove(vm)
            vm.looks = max(0, vm.looks - 1)
        return found

    def remove(self, vm: AzureVm) -> None:
        """Have a VM no more, and what is to be deleted with it."""
        with self._lock:
            self._vms.pop(vm.path, None)
            for name, part in vm.parts.items():
                if part.get("deleteOption") == "Delete":
                    self.parts.pop(name, None)

    def powered_off(self, vm: AzureVm) -> None:
        """Have a VM that has powered itself off: Azure keeps it, and bills it."""
        vm.power = "stopped"

    def vms(self, **tags: str) -> list[AzureVm]:
        """Return the VMs that are not being deleted, by tags."""
        wanted = {"owner": OWNER, "burst": BURST, "host": HOST}
        return [
            vm
            for vm in list(self._vms.values())
            if vm.provisioning != "deleting"
            and all(vm.body["tags"][wanted[key]] == tags[key] for key in tags)
        ]

    def orphans(self) -> list[str]:
        """Return disks and interfaces whose VM is gone."""
        of_vms = {name for vm in self._vms.values() for name in vm.parts}
        return sorted(self.parts.keys() - of_vms)

    def table(self, **changes: Any) -> dict[str, Any]:
        size = {"size": "Standard_D8s_v5", "cores": 4, "max_nodes": 4, "price": 0.1}
        return {
            "driver": "azure_arm",
            "region": "westeurope",
            "credentials": str(self.credentials),
            "driver_options": {
                "tenant_id": "tenant-1",
                "subscription_id": "sub-1",
                "resource_group": "hpc",
            },
            "image": IMAGE,
            "subnet": "net/nodes",
            "dir": str(self.path / "notes"),
            "bind": "127.0.0.1",
            "offers": {"nodes": size},
            **changes,
        }

    def cloud(self, settings: VmSettings) -> VmCloud:
        return VmCloud(settings, self._driver)

    def _driver(self, **arguments: Any) -> AzureDriver:
        """Return the driver, whose connections go here in place of Azure."""
        port = self._port

        def connect(host: str, _: int = 443, **given: Any) -> LibcloudConnection:
            assert host.endswith((".microsoftonline.com", ".azure.com"))
            given = {**given, "port": port, "secure": False}
            return LibcloudConnection("127.0.0.1", **given)

        class Connection(AzureResourceManagementConnection):  # type: ignore[misc]
            conn_class = staticmethod(connect)

        class Driver(AzureDriver):
            connectionCls = Connection  # noqa: N815 - Libcloud's name

        return Driver(**arguments)


def _error(error: Error) -> tuple[int, Any]:
    status, code, message = error
    return status, {"error": {"code": code, "message": message}}


def _handler(cloud: FakeAzure) -> Callable[..., BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            text = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            is_json = self.headers["Content-Type"] == "application/json"
            body = json.loads(text) if text and is_json else {}
            new = self.headers["If-None-Match"] == "*"
            path = urlsplit(self.path).path
            status, content = cloud.answer(self.command, path, body, new)
            self.send_response(status)
            data = b"" if content is None else json.dumps(content).encode()
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_PUT = do_POST = do_DELETE = _answer  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Log nothing of requests."""

    return Handler
