# SPDX-License-Identifier: MIT
"""Libcloud's own OpenStack driver, with answers of Nova in place of a cloud."""

from __future__ import annotations

import base64
from types import SimpleNamespace
from typing import Any

import pytest
from burst_vm.cloud import VmCloud
from burst_vm.provider import VmProvider
from libcloud.common.exceptions import BaseHTTPError
from libcloud.compute.providers import get_driver

from burst.model.finding import Finding, Level
from burst.provider import Failure, Phase
from tests.plugins.vm.fake_cloud import FakeCloud
from tests.support.reaping import reap_until_gone

AUTH = {
    "ex_force_auth_url": "http://127.0.0.1:1",
    "ex_tenant_name": "hpc",
}


class Nova:
    """What Nova answers to requests of one project, and a provider that asks it."""

    def __init__(self, cloud: FakeCloud) -> None:
        offer = {"size": "4", "cores": 4, "max_nodes": 4, "price": 0.1}
        settings = cloud.settings(
            offers={"nodes": offer},
            driver_options=AUTH,
            region="R1",
            subnet="net-1",
            security_groups=["flux"],
        )
        self.provider = VmProvider(
            "vm",
            settings,
            "owner",
            cloud=VmCloud(settings, self._driver),
            clock=lambda: cloud.now,
        )
        self.spec = cloud.spec(1)
        self.servers: list[dict[str, Any]] = []
        self.asked: list[dict[str, Any]] = []
        self.full = False
        self.limits = {"maxTotalInstances": -1, "maxTotalCores": -1}

    def request(self, path: str, method: str = "GET", **given: Any) -> Any:
        if (path, method) == ("/servers", "POST"):
            if self.full:
                raise BaseHTTPError(403, "Quota exceeded for instances: 1, 10 of 10")
            self._make(given["data"]["server"])
            return answer(server=self.servers[-1])
        if path == "/limits":
            if self.full:
                raise BaseHTTPError(403, "Policy doesn't allow it to be performed.")
            return answer(limits={"absolute": self.limits})
        if path == "/servers/detail":
            return self._page(int(given["params"].get("marker", ["0"])[0]))
        [server] = [each for each in self.servers if path.endswith(each["id"])]
        if method == "DELETE":
            self.servers.remove(server)
        return answer(server=server)

    def _page(self, first: int) -> Any:
        """Return one server of the list, and where the next one is."""
        link = {"rel": "next", "href": f"http://nova/servers/detail?marker={first + 1}"}
        more = [link] if first + 1 < len(self.servers) else []
        return answer(servers=self.servers[first : first + 1], servers_links=more)

    def _driver(self, **arguments: Any) -> Any:
        driver = get_driver("openstack")(**arguments)
        driver.connection = self
        return driver

    def get_service_name(self) -> str:
        return "nova"

    def _make(self, wanted: dict[str, Any]) -> None:
        self.asked.append(wanted)
        identity = f"0000-{len(self.asked)}"
        self.servers.append(
            {
                "id": identity,
                "name": wanted["name"],
                "status": "BUILD",
                "metadata": wanted["metadata"],
                "image": {"id": wanted["imageRef"]},
                "flavor": {"id": wanted["flavorRef"]},
                "addresses": {},
                "links": [{"rel": "self", "href": f"http://nova/servers/{identity}"}],
                **dict.fromkeys(("tenant_id", "user_id", "hostId", "key_name"), "x"),
                **dict.fromkeys(("created", "updated"), "2026-01-01T00:00:00Z"),
            }
        )


def answer(**content: Any) -> Any:
    return SimpleNamespace(object=content, status=202, success=lambda: True)


@pytest.fixture
def nova(cloud: FakeCloud) -> Nova:
    cloud.driver = "openstack"
    cloud.credentials.write_text('key = "flux"\nsecret = "swordfish"\n')
    return Nova(cloud)


def test_a_server_is_made_found_by_its_metadata_and_deleted(nova: Nova) -> None:
    nova.provider.provision(nova.spec)
    [asked] = nova.asked
    assert (asked["imageRef"], asked["flavorRef"]) == ("ami-1", "4")
    assert asked["networks"] == [{"uuid": "net-1"}]
    assert asked["security_groups"] == [{"name": "flux"}]
    assert asked["metadata"]["burst-host"] == "burst-0-0"
    assert base64.b64decode(asked["user_data"]).startswith(b"#cloud-config\n")
    [status] = nova.provider.observe()
    assert status.phase is Phase.PENDING
    assert "is pending" in status.why
    nova.servers[0]["status"] = "ACTIVE"
    [status] = nova.provider.observe()
    assert "has not fetched its files yet" in status.why
    nova.servers[0]["OS-EXT-STS:task_state"] = "deleting"
    [status] = nova.provider.observe()
    assert status.phase is Phase.ENDING
    nova.servers[0]["OS-EXT-STS:task_state"] = None
    reap_until_gone(nova.provider, nova.spec.burst_id)
    assert nova.servers == []


def test_servers_of_all_pages_are_known(nova: Nova, cloud: FakeCloud) -> None:
    nova.provider.provision(cloud.spec(3))
    cloud.now += 60
    [status] = nova.provider.observe()
    assert ["is pending" in each.why for each in status.followers] == [True] * 3


def test_a_server_for_which_there_is_no_host_is_want_of_capacity(nova: Nova) -> None:
    nova.provider.provision(nova.spec)
    message = "No valid host was found. There are not enough hosts available."
    nova.servers[0] |= {"status": "ERROR", "fault": {"code": 500, "message": message}}
    [status] = nova.provider.observe()
    assert (status.phase, status.failure) == (Phase.FAILED, Failure.CAPACITY)
    assert message in status.why


def quotas(nova: Nova) -> list[Finding]:
    """Return what the doctor tells of them."""
    texts = ("of the quota", "quotas cannot be read")
    findings = nova.provider.examine(None)
    return [found for found in findings if any(text in found.what for text in texts)]


def test_a_quota_with_less_than_a_burst_takes_or_unreadable_is_told(nova: Nova) -> None:
    assert quotas(nova) == []
    nova.limits |= {"maxTotalInstances": 10, "totalInstancesUsed": 2}
    nova.limits |= {"maxTotalCores": 20, "totalCoresUsed": 8}
    [instances, cores] = quotas(nova)
    assert instances.level is Level.OK
    assert instances.what == "2 of 10 instances of the quota are in use"
    assert cores.level is Level.NOTE
    assert cores.what.endswith("are in use, and bursts of nodes (16) may need more")
    nova.full = True
    [found] = quotas(nova)
    assert (found.level, bool(found.advice)) == (Level.NOTE, True)
