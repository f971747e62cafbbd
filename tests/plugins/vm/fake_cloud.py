# SPDX-License-Identifier: MIT
"""A driver with Libcloud's methods that keeps its VMs in memory, for each driver."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from burst_vm.cloud import VmCloud
from burst_vm.provider import VmProvider
from burst_vm.settings import VmSettings
from burst_vm.user_data import HOME
from libcloud.compute.types import NodeState

from burst.config import convert
from burst.provider import BurstSpec
from burst.testing import example_lead, example_spec
from tests.plugins.vm.hypervisor import written
from tests.support.ports import free_port

TAGS = {"ec2": "tags", "openstack": "metadata", "gce": "labels"}


class FakeDriver:
    """What `FakeCloud` has, as one of Libcloud's driver objects."""

    def __init__(self, cloud: FakeCloud, arguments: dict[str, Any]) -> None:
        self._cloud = cloud
        self.arguments = arguments

    def list_nodes(self, **_: Any) -> list[Any]:
        self._cloud.fail("list")
        return [node for node in self._cloud.nodes if node.id not in self._cloud.late]

    def create_node(self, **arguments: Any) -> Any:
        self._cloud.fail("create")
        self._cloud.now += self._cloud.takes
        node = self._cloud.add(arguments)
        self._cloud.fail("answer")
        return node

    def destroy_node(self, node: Any, **_: Any) -> bool:
        self._cloud.fail("destroy")
        self._cloud.destroyed.append(node.id)
        self._cloud.nodes.remove(node)
        return True

    def list_sizes(self) -> list[Any]:
        self._cloud.fail("sizes")
        return [SimpleNamespace(id="c7i.large", name="c7i.large", price=0.1)]

    def get_image(self, image: str) -> Any:
        if image != "ami-1":
            raise IndexError("list index out of range")
        return SimpleNamespace(id=image)


class FakeCloud:
    """One account, and a provider of it. `errors` are raised at these calls, once."""

    def __init__(self, path: Path, driver: str = "ec2") -> None:
        self.path, self.driver = path, driver
        self.nodes: list[Any] = []
        self.late: set[str] = set()
        """VMs that are not listed yet."""
        self.destroyed: list[str] = []
        self.errors: dict[str, Exception] = {}
        self.asked: list[dict[str, Any]] = []
        self.made: list[dict[str, Any]] = []
        """Arguments of `create_node`, and of drivers."""
        self.now = 1000.0
        self.takes = 0.0
        """How many seconds it takes to make a VM."""
        self._lock = threading.Lock()
        self.credentials = path / "cloud.toml"
        self.credentials.touch(mode=0o600)
        self.credentials.write_text('key = "a"\nsecret = "swordfish"\n')
        self.port = free_port()

    def fail(self, call: str) -> None:
        if error := self.errors.pop(call, None):
            raise error

    def add(self, arguments: dict[str, Any]) -> Any:
        """Have a VM with what `create_node` is given."""
        with self._lock:
            self.asked.append(arguments)
            key = TAGS[self.driver]
            tags = arguments["ex_labels" if key == "labels" else "ex_metadata"]
            node = SimpleNamespace(
                id=f"i-{len(self.asked)}",
                name=arguments["name"],
                state=NodeState.RUNNING,
                extra={key: tags, "status": "running"},
            )
            self.nodes.append(node)
            return node

    def settings(self, **changes: Any) -> VmSettings:
        size = {"size": "c7i.large", "cores": 4, "max_nodes": 4}
        table = {
            "driver": self.driver,
            "region": "europe-west1-b" if self.driver == "gce" else "",
            "credentials": str(self.credentials),
            "image": "ami-1",
            "dir": str(self.path / "notes"),
            "bind": "127.0.0.1",
            "port": self.port,
            "offers": {"nodes": size},
            **changes,
        }
        return convert(VmSettings, table, "vm")

    def cloud(self, **changes: Any) -> VmCloud:
        def make(**arguments: Any) -> FakeDriver:
            self.made.append(arguments)
            return FakeDriver(self, arguments)

        return VmCloud(self.settings(**changes), make)

    def provider(self, owner: str = "owner", **changes: Any) -> VmProvider:
        return VmProvider(
            "vm",
            self.settings(**changes),
            owner,
            cloud=self.cloud(**changes),
            clock=lambda: self.now,
        )

    def handover(self, index: int = 0) -> dict[str, Any]:
        """Return what the user data of a VM gives its `fetch.py`."""
        files = written(self.asked[index]["ex_userdata"])
        found: dict[str, Any] = json.loads(files[Path(HOME) / "handover.json"])
        return found

    def spec(self, nodes: int = 2) -> BurstSpec:
        return example_spec(example_lead(self.path), 0, "nodes", nodes)
