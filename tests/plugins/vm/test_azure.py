# SPDX-License-Identifier: MIT
"""Libcloud's driver with our own way to make VMs, over the wire to a fake of Azure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from burst_vm.failures import Throttled
from burst_vm.provider import VmProvider

from burst.errors import (
    ConfigError,
    InsufficientCapacity,
    ProviderError,
    Refused,
    Transient,
)
from burst.model.finding import Level
from burst.provider import BurstSpec, BurstStatus, Failure, Phase
from burst.testing import example_lead, example_spec
from tests.plugins.vm.fake_azure import GROUP, AzureVm, FakeAzure
from tests.support.ports import free_port
from tests.support.reaping import reap_until_gone

NETWORK = f"{GROUP}/providers/Microsoft.Network"
PUT = f"PUT {GROUP}"
LIST = f"GET {GROUP}/providers/Microsoft.Compute/virtualMachines"


@pytest.fixture
def azure(tmp_path: Path) -> Iterator[FakeAzure]:
    cloud = FakeAzure(tmp_path)
    yield cloud
    cloud.close()


class Asked:
    """A burst of one VM that was asked for."""

    def __init__(self, azure: FakeAzure, **changes: Any) -> None:
        self.spec = spec(azure)
        self.provider = provider(azure, **changes)
        self.provider.provision(self.spec)
        [self.vm] = azure.vms()

    def status(self) -> BurstStatus:
        [found] = self.provider.observe()
        return found

    def reap(self) -> None:
        reap_until_gone(self.provider, self.spec.burst_id)


def provider(azure: FakeAzure, **changes: Any) -> VmProvider:
    return azure.provider("owner", settles=0.0, port=free_port(), **changes)


def spec(azure: FakeAzure) -> BurstSpec:
    return example_spec(example_lead(azure.path), 0, "nodes", 1)


def properties(vm: AzureVm) -> Any:
    return vm.body["properties"]


def interface(vm: AzureVm) -> Any:
    [found] = properties(vm)["networkProfile"]["networkInterfaceConfigurations"]
    return found["properties"]


def test_one_request_makes_a_vm_and_all_that_it_has(azure: FakeAzure) -> None:
    asked = Asked(azure, security_groups=["flux"])
    assert len([each for each in azure.asked if each.startswith("PUT")]) == 1
    assert asked.vm.body["location"] == "westeurope"
    assert asked.vm.body["tags"]["burst-host"] == "burst-0-0"
    assert asked.vm.user_data.startswith(b"#cloud-config\n")
    given = properties(asked.vm)
    assert given["hardwareProfile"] == {"vmSize": "Standard_D8s_v5"}
    assert "priority" not in given
    nic = interface(asked.vm)
    assert nic["networkSecurityGroup"] == {
        "id": f"{NETWORK}/networkSecurityGroups/flux"
    }
    [address] = nic["ipConfigurations"]
    subnet = {"id": f"{NETWORK}/virtualNetworks/net/subnets/nodes"}
    assert address["properties"] == {"subnet": subnet}, "and no public address"


def test_nothing_is_left_of_a_vm_that_is_deleted(azure: FakeAzure) -> None:
    asked = Asked(azure)
    assert len(azure.parts) == 2
    asked.provider.reap(asked.spec.burst_id)
    assert asked.status().phase is Phase.ENDING
    asked.reap()
    assert (azure.vms(), azure.parts) == ([], {})
    deletions = [each for each in azure.asked if each.startswith("DELETE")]
    assert len(deletions) == 1, "a VM that is being deleted is not deleted again"


def test_a_vm_that_powered_itself_off_is_lost_and_is_deleted(azure: FakeAzure) -> None:
    asked = Asked(azure)
    azure.powered_off(asked.vm)
    status = asked.status()
    assert status.phase is Phase.FAILED
    assert status.why.endswith("is stopped")
    assert [each.burst_id for each in asked.provider.list_all()] == [status.burst_id]
    asked.reap()
    assert (azure.vms(), azure.parts) == ([], {})


@pytest.mark.parametrize(
    ("provisioning", "power", "phase", "word"),
    [
        ("creating", "", Phase.PENDING, "is creating"),
        ("creating", "running", Phase.PENDING, "has not fetched its files yet"),
        ("updating", "running", Phase.PENDING, "has not fetched its files yet"),
        ("failed/OSProvisioningTimedOut", "running", Phase.PENDING, "has not fetched"),
        ("succeeded", "starting", Phase.PENDING, "is starting"),
        ("succeeded", "stopping", Phase.ENDING, "is stopping"),
        ("succeeded", "deallocating", Phase.FAILED, "is deallocating"),
        ("succeeded", "deallocated", Phase.FAILED, "is deallocated"),
        ("failed/VMExtensionError", "stopped", Phase.FAILED, "is failed"),
        ("deleting", "running", Phase.ENDING, "is deleting"),
    ],
)
def test_a_state_is_a_phase(
    azure: FakeAzure, provisioning: str, power: str, phase: Phase, word: str
) -> None:
    asked = Asked(azure)
    asked.vm.provisioning, asked.vm.power = provisioning, power
    status = asked.status()
    assert status.phase is phase
    assert word in status.why


def test_capacity_that_is_missing_after_the_request(azure: FakeAzure) -> None:
    asked = Asked(azure)
    asked.vm.provisioning, asked.vm.power = "failed/ZonalAllocationFailed", ""
    asked.vm.message = "We do not have sufficient capacity in this zone."
    status = asked.status()
    assert (status.phase, status.failure) == (Phase.FAILED, Failure.CAPACITY)
    assert "ZonalAllocationFailed: We do not have" in status.why
    asked.reap()
    assert azure.parts == {}


@pytest.mark.parametrize(
    ("answer", "expected", "advice"),
    [
        ((409, "SkuNotAvailable", "x"), InsufficientCapacity, ""),
        ((409, "AllocationFailed", "x"), InsufficientCapacity, ""),
        ((409, "ZonalAllocationFailed", "x"), InsufficientCapacity, ""),
        ((409, "OverconstrainedAllocationRequest", "x"), InsufficientCapacity, ""),
        ((400, "SubnetIsFull", "x"), InsufficientCapacity, ""),
        ((409, "QuotaExceeded", "x"), InsufficientCapacity, "higher quota"),
        (
            (409, "OperationNotAllowed", "exceeding approved Total Cores quota"),
            InsufficientCapacity,
            "higher quota",
        ),
        ((403, "AuthorizationFailed", "or the scope is invalid"), Refused, "rights"),
        ((403, "LinkedAuthorizationFailed", "invalid"), Refused, "rights"),
        ((401, "InvalidAuthenticationToken", "x"), Refused, "rights"),
        ((401, "ExpiredAuthenticationToken", "x"), Refused, "rights"),
        ((400, "InvalidParameter", "x"), Refused, "compare this table"),
        ((404, "ResourceGroupNotFound", "x"), Refused, "compare this table"),
        ((429, "TooManyRequests", "x"), Throttled, ""),
        ((429, "RetryableError", "x"), Throttled, ""),
        ((409, "RetryableError", "x"), Transient, ""),
        ((409, "Conflict", "the VM is being deleted"), Transient, ""),
        ((500, "InternalExecutionError", "x"), Transient, ""),
    ],
    ids=str,
)
def test_a_code_is_a_decision(
    azure: FakeAzure,
    answer: tuple[int, str, str],
    expected: type[ProviderError],
    advice: str,
) -> None:
    azure.errors[PUT] = answer
    with pytest.raises(expected) as raised:
        provider(azure).provision(spec(azure))
    assert type(raised.value) is expected
    assert advice in raised.value.advice


def test_a_secret_that_has_ended_is_refused_and_not_told(azure: FakeAzure) -> None:
    azure.refuses = True
    with pytest.raises(Refused) as raised:
        provider(azure).observe()
    assert "rights" in raised.value.advice
    assert "swordfish" not in str(raised.value)


def test_a_vm_of_anothers_with_that_name_is_not_changed(azure: FakeAzure) -> None:
    asked = Asked(azure)
    before = dict(asked.vm.body)
    asked.vm.body["tags"] = {"owner": "somebody"}
    again = azure.provider("owner", "other", settles=0.0, port=free_port())
    with pytest.raises(Transient, match="PreconditionFailed"):
        again.provision(asked.spec)
    assert asked.vm.body == {**before, "tags": {"owner": "somebody"}}
    assert again.list_all() == []


def test_vms_of_others_cost_no_request(azure: FakeAzure) -> None:
    asked = Asked(azure)
    asked.vm.body["tags"] = {}
    azure.asked.clear()
    assert asked.provider.list_all() == []
    assert not any(each.endswith("/instanceView") for each in azure.asked)


def test_vms_of_all_pages_are_known(azure: FakeAzure) -> None:
    made, whole = provider(azure), example_spec(example_lead(azure.path), 0, "nodes", 3)
    made.provision(whole)
    [found] = made.observe()
    assert {each.host for each in found.followers} == set(whole.hosts)
    assert found.phase is Phase.PENDING
    asked = [each for each in azure.asked if each.startswith(f"{LIST}Next/")]
    assert asked, "the fake gives two at a time"
    reap_until_gone(made, whole.burst_id)
    assert azure.parts == {}


def test_a_vm_that_goes_between_two_requests_is_gone(azure: FakeAzure) -> None:
    asked = Asked(azure)
    view = f"{LIST}/{asked.vm.name}/instanceView"
    azure.errors[view] = (404, "ResourceNotFound", "x")
    assert asked.provider.list_all() == []
    azure.errors[view] = (503, "ServiceUnavailable", "x")
    with pytest.raises(Transient):
        asked.provider.list_all()


def test_a_vm_that_somebody_deleted_is_no_error(azure: FakeAzure) -> None:
    asked = Asked(azure)
    found = asked.provider.list_all()
    assert len(found) == 1
    azure.errors["DELETE"] = (204, "", "")
    asked.provider.reap(asked.spec.burst_id)
    azure.errors["DELETE"] = (404, "ResourceNotFound", "x")
    asked.provider.reap(asked.spec.burst_id)


def test_a_spot_vm_is_deleted_when_it_is_taken_back(azure: FakeAzure) -> None:
    size = {"size": "Standard_D8s_v5", "cores": 4, "max_nodes": 4, "spot": True}
    given = properties(Asked(azure, offers={"nodes": {**size, "price": 0.1}}).vm)
    assert (given["priority"], given["evictionPolicy"]) == ("Spot", "Delete")


def test_images_of_the_marketplace_and_ids_of_networks(azure: FakeAzure) -> None:
    urn = "Canonical:ubuntu:22_04-lts:latest"
    subnet = "/subscriptions/s/other"
    asked = Asked(azure, image=urn, subnet=subnet, security_groups=["/group"])
    reference = properties(asked.vm)["storageProfile"]["imageReference"]
    assert ":".join(reference.values()) == urn
    nic = interface(asked.vm)
    assert nic["networkSecurityGroup"] == {"id": "/group"}
    assert nic["ipConfigurations"][0]["properties"]["subnet"] == {"id": subnet}


def test_without_a_key_the_password_is_a_random_one(azure: FakeAzure) -> None:
    profile = properties(Asked(azure).vm)["osProfile"]
    assert re.fullmatch(r"aA1-[\w-]{40,}", profile["adminPassword"])


def test_options_are_the_vms(azure: FakeAzure) -> None:
    options = {"ex_ssh_key": "ssh-ed25519 A", "ex_user_name": "hpc", "ex_disk_size": 64}
    asked = Asked(azure, options={**options, "ex_tags": {"cost-centre": "hpc"}})
    assert asked.vm.body["tags"]["cost-centre"] == "hpc"
    assert asked.status().phase is Phase.PENDING, "it is known by our own tags"
    given = properties(asked.vm)
    assert given["storageProfile"]["osDisk"]["diskSizeGB"] == 64
    profile = given["osProfile"]
    assert "adminPassword" not in profile
    linux = profile["linuxConfiguration"]
    assert linux["disablePasswordAuthentication"] is True
    key = {"path": "/home/hpc/.ssh/authorized_keys", "keyData": "ssh-ed25519 A"}
    assert linux["ssh"]["publicKeys"] == [key]


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"subnet": ""}, "subnet"),
        ({"image": "ubuntu"}, "PUBLISHER:OFFER:SKU:VERSION"),
        ({"region": ""}, "region"),
        ({"driver_options": {"tenant_id": "t", "subscription_id": "s"}}, "resource_gr"),
    ],
)
def test_what_is_missing_is_refused_by_its_name(
    azure: FakeAzure, changes: dict[str, Any], what: str
) -> None:
    with pytest.raises(Refused, match=what):
        provider(azure, **changes).provision(spec(azure))
    assert azure.vms() == []


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"endpoint": "https://azure.example.org"}, "cloud_environment"),
        ({"security_groups": ["a", "b"]}, "only one"),
        ({"options": {"ex_customdata": "x"}}, "set user_data instead"),
    ],
)
def test_settings_that_cannot_work_are_named(
    azure: FakeAzure, changes: dict[str, Any], what: str
) -> None:
    with pytest.raises(ConfigError, match=what):
        provider(azure, **changes)


def test_what_is_as_it_should_be_is_told(azure: FakeAzure) -> None:
    name = {"value": "cores"}
    azure.usages = [{"name": name, "currentValue": 90, "limit": 100}]
    findings = provider(azure).examine(None)
    told = {each.what: each.level for each in findings}
    assert Level.WRONG not in told.values()
    assert told["offer nodes: there is a size Standard_D8s_v5"] is Level.OK
    [quota] = [what for what in told if what.startswith("90 of 100 cores")]
    assert told[quota] is Level.NOTE


@pytest.mark.parametrize(
    ("image", "level"),
    [
        ("Canonical:ubuntu:22_04-lts:latest", Level.OK),
        ("Canonical:ubuntu:22_04-lts:22.04.1", Level.OK),
        ("Canonical:ubuntu:22_04-lts:1.0", Level.WRONG),
        (f"{GROUP}/providers/Microsoft.Compute/images/none", Level.WRONG),
    ],
)
def test_an_image_is_looked_for(azure: FakeAzure, image: str, level: Level) -> None:
    findings = provider(azure, image=image).examine(None)
    assert [each.level for each in findings if image in each.what] == [level]
