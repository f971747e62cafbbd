# SPDX-License-Identifier: MIT
"""What each of Libcloud's drivers is given, by their own signatures."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from burst_vm.cloud import VmCloud
from burst_vm.machines import tags_of
from burst_vm.settings import DRIVERS, TAG_OPTIONS
from libcloud.compute.drivers.openstack import OpenStack_2_NodeDriver
from libcloud.compute.providers import get_driver

from burst.errors import ConfigError, Refused
from tests.plugins.vm.fake_cloud import FakeCloud
from tests.support.reaping import reap_until_gone

GCE = {"driver": "gce", "region": "europe-west1-b"}


def class_of(driver: str) -> Any:
    """Return the class that makes VMs of a driver."""
    # That of OpenStack chooses one by the version of the API.
    return OpenStack_2_NodeDriver if driver == "openstack" else get_driver(driver)


# Azure's is ours: test_azure.py.
@pytest.fixture(params=[each for each in DRIVERS if each != "azure_arm"])
def driver(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_a_driver_takes_what_it_is_given(tmp_path: Path, driver: str) -> None:
    cloud = FakeCloud(tmp_path, driver)
    offer = {"size": "small", "cores": 4, "max_nodes": 4, "price": 1.0}
    provider = cloud.provider(
        offers={"nodes": {**offer, "spot": driver != "openstack"}},
        subnet="net-1",
        security_groups=["group-1"],
        region="us-east-1",
        **({} if driver == "gce" else {"endpoint": "https://cloud.example.org:8774"}),
    )
    spec = cloud.spec(1)
    provider.provision(spec)
    provider.reap(spec.burst_id)
    assert cloud.nodes == []
    [asked] = cloud.asked
    create = inspect.signature(class_of(driver).create_node)
    create.bind(None, **asked)
    assert driver != "ec2" or asked["ex_spot"] is True
    [made] = {frozenset(each.items()) for each in cloud.made}
    arguments = dict(made)
    assert arguments["secret"] == "swordfish"
    if driver != "gce":
        assert (arguments["host"], arguments["port"]) == ("cloud.example.org", 8774)
        assert arguments["secure"] is True


def test_an_ec2_vm_is_deleted_by_who_powers_it_off(cloud: FakeCloud) -> None:
    cloud.provider(options={"ex_keyname": "admin"}).provision(cloud.spec(1))
    [asked] = cloud.asked
    assert asked["ex_terminate_on_shutdown"] is True
    assert asked["ex_keyname"] == "admin"


def test_a_sites_tags_are_added_to_ours(tmp_path: Path, driver: str) -> None:
    tags = TAG_OPTIONS[driver]
    options = {tags: {"cost-centre": "hpc", "burst-owner": "somebody"}}
    cloud = FakeCloud(tmp_path, driver)
    spec, provider = cloud.spec(2), cloud.provider(options=options)
    provider.provision(spec)
    assert [each[tags]["cost-centre"] for each in cloud.asked] == ["hpc", "hpc"]
    [status] = provider.observe()
    assert {each.host for each in status.followers} == set(spec.hosts)
    assert [each.owner for each in provider.list_all()] == [spec.owner]
    reap_until_gone(provider, spec.burst_id)
    assert cloud.nodes == []


def test_a_sites_metadata_in_compute_engine_is_added_to_ours(tmp_path: Path) -> None:
    items = [
        {"key": "enable-oslogin", "value": "TRUE"},
        {"key": "user-data", "value": "theirs"},
    ]
    cloud = FakeCloud(tmp_path, "gce")
    cloud.provider(options={"ex_metadata": {"items": items}}).provision(cloud.spec(1))
    [asked] = cloud.asked
    found = {each["key"]: each["value"] for each in asked["ex_metadata"]["items"]}
    assert len(found) == len(asked["ex_metadata"]["items"]) == 2
    assert found["enable-oslogin"] == "TRUE"
    assert found["user-data"].startswith("#cloud-config\n")


def test_a_vm_of_compute_engine_acts_for_no_service_account(tmp_path: Path) -> None:
    cloud = FakeCloud(tmp_path, "gce")
    cloud.provider().provision(cloud.spec(1))
    account = {"email": "jobs@hpc.iam.gserviceaccount.com", "scopes": ["storage-ro"]}
    options = {"ex_service_accounts": [account]}
    cloud.provider("another", options=options).provision(cloud.spec(1))
    assert [each["ex_service_accounts"] for each in cloud.asked] == [[], [account]]


def test_options_may_not_be_what_the_provider_sets(tmp_path: Path, driver: str) -> None:
    cloud = FakeCloud(tmp_path, driver)
    provider = cloud.provider(subnet="net-1", security_groups=["group-1"])
    provider.provision(cloud.spec(1))
    [asked] = cloud.asked
    added = {TAG_OPTIONS[driver], "ex_metadata", "ex_service_accounts"}
    itself = {"name", "ex_terminate_on_shutdown"}
    for name in asked.keys() - added:
        why = "the provider itself" if name in itself else "set .* instead"
        with pytest.raises(ConfigError, match=f"options: {name}: {why}"):
            cloud.settings(options={name: asked[name]})


@pytest.mark.parametrize(
    ("driver", "option", "key"),
    [
        ("ec2", "ex_userdata", "user_data"),
        ("ec2", "ex_spot", "spot of the offer"),
        ("ec2", "ex_subnet", "subnet"),
        ("ec2", "ex_security_group_ids", "security_groups"),
        ("ec2", "size", "size of the offer"),
        ("ec2", "image", "image"),
        ("openstack", "networks", "subnet"),
        ("openstack", "ex_security_groups", "security_groups"),
        ("gce", "location", "region"),
        ("gce", "ex_preemptible", "spot of the offer"),
        ("gce", "ex_tags", "security_groups"),
        ("gce", "ex_subnetwork", "subnet"),
        ("azure_arm", "ex_customdata", "user_data"),
        ("azure_arm", "ex_security_group", "security_groups"),
    ],
)
def test_it_is_said_which_key_to_set_in_place_of_an_option(
    tmp_path: Path, driver: str, option: str, key: str
) -> None:
    cloud = FakeCloud(tmp_path, driver)
    with pytest.raises(ConfigError, match=f"options: {option}: set {key} instead"):
        cloud.settings(options={option: "x"})


def test_compute_engine_takes_the_labels(tmp_path: Path) -> None:
    spec = FakeCloud(tmp_path).spec(1)
    hosts = ("Login1.example.org", *spec.lead.hosts[1:])
    lead = msgspec.structs.replace(spec.lead, hosts=hosts)
    labels = tags_of(msgspec.structs.replace(spec, lead=lead), "vm", spec.hosts[0])
    assert labels["burst-lead"] == "login1-example-org"
    for key, value in labels.items():
        assert re.fullmatch("[a-z][a-z0-9_-]{0,62}", key)
        assert re.fullmatch("[a-z0-9_-]{0,63}", value)


def test_tags_that_somebody_changed_name_no_file(cloud: FakeCloud) -> None:
    cloud.provider().provision(cloud.spec(1))
    cloud.nodes[0].extra["tags"]["burst-id"] = "../../etc"
    [status] = cloud.provider().observe()
    assert status.burst_id == cloud.spec(1).burst_id


@pytest.mark.parametrize("host", [None, "", "../../etc/passwd"])
def test_a_vm_whose_tag_names_no_host_is_deleted_with_its_burst(
    cloud: FakeCloud, host: str | None
) -> None:
    spec, provider = cloud.spec(2), cloud.provider()
    provider.provision(spec)
    tags = cloud.nodes[0].extra["tags"]
    changed = tags["burst-host"]
    tags |= {"burst-host": host} if host is not None else {}
    if host is None:
        del tags["burst-host"]
    [status] = provider.observe()
    assert {each.host for each in status.followers} == set(spec.hosts)
    cloud.now += 60
    [status] = provider.observe()
    assert [each.host for each in status.followers if each.lost] == [changed]
    reap_until_gone(provider, spec.burst_id)
    assert cloud.nodes == []


def test_settings_that_libclouds_class_rejects_are_refused(cloud: FakeCloud) -> None:
    with pytest.raises(Refused, match="mars-1"):
        VmCloud(cloud.settings(region="mars-1")).machines()


@pytest.mark.parametrize(
    "options",
    [
        {"project": "another"},
        {"ex_tenant_name": "another"},
        {"ex_force_auth_url": "https://keystone.example.org"},
        {"subscription_id": "another"},
        {"resource_group": "another"},
    ],
    ids=str,
)
def test_vms_of_another_project_are_in_another_place(
    cloud: FakeCloud, options: dict[str, str]
) -> None:
    common = {"ex_force_auth_version": "3.x_password"}
    here = cloud.provider(driver_options=common).place()
    assert cloud.provider(driver_options={**common, **options}).place() != here
    # Which says how it is reached, and not what.
    other = {"ex_force_auth_version": "3.x_oidc_access_token"}
    assert cloud.provider(driver_options=other).place() == here


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"driver": "dummy"}, "driver"),
        ({"credentials": "cloud.toml"}, "credentials"),
        ({"endpoint": "ftp://x"}, "endpoint"),
        ({"endpoint": "http://x/path"}, "endpoint"),
        ({"offers": {}}, "offers"),
        ({"fetch_time": "5m"}, "fetch_time: is gone; remove it"),
        ({"options": {"ex_maxcount": 2}}, "options: ex_maxcount: the provider itself"),
        ({"options": {"ex_metadata": {"year": 2026}}}, "must be a table of text"),
        ({"driver": "gce", "endpoint": "https://x"}, "endpoint: .* of gce"),
        ({**GCE, "options": {"ex_metadata": {"a": "b"}}}, "items = "),
        ({**GCE, "region": ""}, "region: .* a zone"),
        ({"security_groups": ["sg-1"]}, "set subnet"),
    ],
)
def test_settings_that_cannot_work_are_named(
    cloud: FakeCloud, changes: dict[str, object], word: str
) -> None:
    with pytest.raises(ConfigError, match=word):
        cloud.settings(**changes)
