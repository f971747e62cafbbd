# SPDX-License-Identifier: MIT
"""Libcloud's driver of Azure, with its own way to make, list and delete VMs.

Libcloud 3.9 cannot send user data (its issue 1893), makes a network interface by a
separate request, so that it is left over if the next request fails, has no spot VMs,
and waits until a deletion has ended. Here one request makes a VM, its interface and its
disk, with the option by which Azure deletes these with the VM. No public address is
made.
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from libcloud.common.exceptions import BaseHTTPError
from libcloud.compute.base import Node
from libcloud.compute.drivers.azure_arm import AzureNodeDriver
from libcloud.compute.types import NodeState

_VMS = {"api-version": "2024-07-01"}
_NETWORK = "2020-11-01"
_IMAGES = {"api-version": "2021-07-01"}
"""An API version for images of a gallery and for others."""
_USAGES = {"api-version": "2021-07-01"}
_WITH_VM = {"deleteOption": "Delete"}
_NODE_STATES = {
    "running": NodeState.RUNNING,
    "failed": NodeState.ERROR,
    # A VM that powers itself off is `stopped` and still costs. A deallocated VM does
    # not, but its disk does.
    "stopped": NodeState.STOPPED,
    "deallocating": NodeState.STOPPED,
    "deallocated": NodeState.STOPPED,
}
"""By the words of `_seen`; any other is PENDING. `machines` knows `deleting`."""


class AzureDriver(AzureNodeDriver):  # type: ignore[misc]
    """VMs of one resource group."""

    def __init__(self, *, resource_group: str, region: str, **given: Any) -> None:
        super().__init__(region=region, **given)
        account, location = self.subscription_id, self.default_location.id
        self._group = f"/subscriptions/{account}/resourceGroups/{resource_group}"
        self._network = f"{self._group}/providers/Microsoft.Network"
        self._place = (
            f"/subscriptions/{account}/providers/Microsoft.Compute/locations/{location}"
        )

    def create_node(  # noqa: PLR0913 - they have names, and most have usual values
        self,
        name: str,
        size: Any,
        image: Any,
        *,
        ex_subnet: str,
        ex_tags: Mapping[str, str],
        ex_customdata: str,
        ex_spot: bool = False,
        ex_security_group: str = "",
        ex_user_name: str = "azureuser",
        ex_ssh_key: str = "",
        ex_disk_size: int = 0,
        ex_storage_account_type: str = "StandardSSD_LRS",
    ) -> Node:
        """Request a VM whose name no other VM has yet.

        `ex_subnet` is NETWORK/SUBNET of the resource group, or an id. `ex_ssh_key` is a
        public key with which `ex_user_name` can log in; without it nobody has the
        password. `ex_disk_size` is in GiB, 0 for the image's. Raises ValueError for a
        value that is neither an id nor a name.
        """
        disk: dict[str, Any] = {"createOption": "FromImage", **_WITH_VM}
        disk["managedDisk"] = {"storageAccountType": ex_storage_account_type}
        if ex_disk_size:
            disk["diskSizeGB"] = ex_disk_size
        interface = {
            "name": f"{name}-nic",
            "properties": self._interface(ex_subnet, ex_security_group),
        }
        properties: dict[str, Any] = {
            "hardwareProfile": {"vmSize": size.id},
            "storageProfile": {
                "imageReference": _image_reference(image.id),
                "osDisk": disk,
            },
            "osProfile": {
                "computerName": name,
                "adminUsername": ex_user_name,
                "customData": base64.b64encode(ex_customdata.encode()).decode(),
                **_login(ex_user_name, ex_ssh_key),
            },
            "networkProfile": {
                "networkApiVersion": _NETWORK,
                "networkInterfaceConfigurations": [interface],
            },
        }
        if ex_spot:
            properties |= {"priority": "Spot", "evictionPolicy": "Delete"}
        answer = self.connection.request(
            self._path(name),
            params=_VMS,
            data={
                "location": self.default_location.id,
                "tags": dict(ex_tags),
                "properties": properties,
            },
            # Otherwise it would change an existing VM of this name.
            headers={"If-None-Match": "*"},
            method="PUT",
        )
        return self._to_node(answer.object)

    def list_nodes(self, ex_tag: str = "") -> Sequence[Node]:
        """Return the VMs that have the tag, each with its state."""
        nodes: list[Node] = []
        path, params = self._path(""), _VMS
        # Libcloud's own method ends after five minutes with what it has by then, and
        # what is not listed counts as gone.
        while path:
            page = self.connection.request(path, params=params).object
            nodes += map(self._to_node, page["value"])
            following = urlsplit(page.get("nextLink", ""))
            path, params = following.path, dict(parse_qsl(following.query))
        return [
            node for node in nodes if ex_tag in node.extra["tags"] and self._see(node)
        ]

    def destroy_node(self, node: Node) -> bool:
        """Request that a VM is deleted, with its interface and its disk."""
        try:
            self.connection.request(self._path(node.id), params=_VMS, method="DELETE")
        except BaseHTTPError as error:
            if error.code != 204:  # there is none any more
                raise
        return True

    def get_image(self, image_id: str) -> Any:
        """Return Azure's data of an image. Raises IndexError if it has none."""
        reference = _image_reference(image_id)
        if "id" in reference:
            return self.connection.request(reference["id"], params=_IMAGES).object
        versions = (
            f"{self._place}/publishers/{reference['publisher']}/artifacttypes/vmimage"
            f"/offers/{reference['offer']}/skus/{reference['sku']}/versions"
        )
        listed = self.connection.request(versions, params=_IMAGES).object
        wanted = reference["version"]
        found = [each for each in listed if wanted in ("latest", each["name"])]
        return found[0]

    def ex_usages(self) -> Sequence[Mapping[str, Any]]:
        """Return the region's quotas: `currentValue` and `limit` of a `name`."""
        answer = self.connection.request(f"{self._place}/usages", params=_USAGES)
        return list(answer.object["value"])

    def _path(self, name: str) -> str:
        """Return the path of a VM, or of all of them."""
        vms = f"{self._group}/providers/Microsoft.Compute/virtualMachines"
        return f"{vms}/{name}" if name else vms

    def _interface(self, subnet: str, security_group: str) -> dict[str, Any]:
        """Return the properties of a VM's interface."""
        if not subnet.startswith("/"):
            network, slash, name = subnet.partition("/")
            if not slash:
                raise ValueError(
                    f"subnet: {subnet!r} is neither NETWORK/SUBNET nor an id"
                )
            subnet = f"{self._network}/virtualNetworks/{network}/subnets/{name}"
        address = {"name": "address", "properties": {"subnet": {"id": subnet}}}
        found: dict[str, Any] = {
            "primary": True,
            "ipConfigurations": [address],
            **_WITH_VM,
        }
        if security_group:
            if not security_group.startswith("/"):
                security_group = (
                    f"{self._network}/networkSecurityGroups/{security_group}"
                )
            found["networkSecurityGroup"] = {"id": security_group}
        return found

    def _to_node(self, data: Mapping[str, Any]) -> Node:
        """Return the node for a listed VM.

        Libcloud's own method fails for a VM that never got an interface.
        """
        word = str(data["properties"].get("provisioningState", "")).lower()
        extra = {"tags": data.get("tags") or {}, "status": word}
        # The full id is in upper or lower case, depending on the request.
        name = data["name"]
        return Node(name, name, NodeState.PENDING, [], [], self, extra=extra)

    def _see(self, node: Node) -> bool:
        """Ask for a VM's state; return whether the VM exists."""
        if node.extra["status"] == "deleting":
            return True
        try:
            where = f"{self._path(node.id)}/instanceView"
            view = self.connection.request(where, params=_VMS)
        except BaseHTTPError as error:
            if error.code != 404:
                raise
            return False
        word, reason = _seen(view.object.get("statuses", []))
        node.extra |= {"status": word, "reason": reason}
        node.state = _NODE_STATES.get(word, NodeState.PENDING)
        return True


def _seen(statuses: Sequence[Mapping[str, str]]) -> tuple[str, str]:
    """Return a word for the state, and why the VM failed.

    Codes are `PowerState/WORD` and `ProvisioningState/WORD`, followed by `/CODE` after
    a failure. While a VM runs, a failure of its provisioning does not count.
    """
    words = {
        kind: (word, rest, status.get("message", ""))
        for status in statuses
        for kind, _, path in [status["code"].partition("/")]
        for word, _, rest in [path.partition("/")]
    }
    power = words.get("PowerState", ("", "", ""))[0]
    made, code, message = words.get("ProvisioningState", ("", "", ""))
    if made == "deleting" or (made == "failed" and power != "running"):
        return made, ": ".join(filter(None, (code, message)))
    return power or made or "unknown", ""


def _image_reference(image: str) -> dict[str, str]:
    """Return the reference for PUBLISHER:OFFER:SKU:VERSION, or for an id."""
    if image.startswith("/"):
        return {"id": image}
    keys = ("publisher", "offer", "sku", "version")
    parts = image.split(":")
    if len(parts) != len(keys):
        raise ValueError(
            f"image: {image!r} is neither {':'.join(keys).upper()} nor an id"
        )
    return dict(zip(keys, parts, strict=True))


def _login(user: str, ssh_key: str) -> dict[str, Any]:
    """Return how the user logs in; Azure makes no VM without a key or a password."""
    if not ssh_key:
        # Azure requires three kinds of characters.
        return {"adminPassword": f"aA1-{secrets.token_urlsafe(32)}"}
    key = {"path": f"/home/{user}/.ssh/authorized_keys", "keyData": ssh_key}
    return {
        "linuxConfiguration": {
            "disablePasswordAuthentication": True,
            "ssh": {"publicKeys": [key]},
        }
    }
