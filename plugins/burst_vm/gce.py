# SPDX-License-Identifier: MIT
"""Libcloud's driver of Compute Engine, which waits longer and keeps no tokens.

It asks for no disks. Libcloud lists all of the project with each list of VMs, and
leaves out a VM whose disk is not among them, which would then count as deleted.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from libcloud.compute.base import Node
from libcloud.compute.drivers.gce import GCENodeDriver

_OPERATION_S = 180.0
"""How long to wait until a VM is made, in seconds: Libcloud's own default. A want of
capacity is often told only after a minute or two."""


class GceDriver(GCENodeDriver):  # type: ignore[misc]
    """VMs of one project."""

    def __init__(self, *args: Any, **given: Any) -> None:
        # By default Libcloud keeps the token in a file of the project's, so that after
        # a change of the account the old one's would be used.
        super().__init__(*args, **{"credential_file": os.devnull, **given})
        # Libcloud ends this wait, too, after the timeout of a request. That of requests
        # is already set by now, and stays.
        self.connection.timeout = _OPERATION_S

    def list_nodes(self) -> list[Node]:
        """Return all VMs of the zone."""
        found = self.connection.request_aggregated_items("instances", zone=self.zone)
        zones = found["items"].values()
        return [self._to_node(vm) for each in zones for vm in each["instances"]]

    def _to_node(self, node: Mapping[str, Any], **_: Any) -> Node:
        """Return a VM of an answer, without its disks. Libcloud's methods call it."""
        return super()._to_node({**node, "disks": []})
