# SPDX-License-Identifier: MIT
"""What `burst doctor` finds of a provider of VMs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from libcloud.common.exceptions import BaseHTTPError

from burst.errors import ConfigError
from burst.model.finding import Level
from burst.model.lead import GuestAccess, LeadIdentity
from burst.testing import example_lead
from tests.plugins.vm.fake_cloud import FakeCloud
from tests.plugins.vm.hypervisor import Hypervisor
from tests.plugins.vm.moto_cloud import MotoCloud

HUGE = {"size": "c9.huge", "cores": 4, "max_nodes": 4}


def lead_of(cloud: FakeCloud, **changes: object) -> LeadIdentity:
    lead = example_lead(cloud.path, endpoint="tcp://lead.example.org:8050")
    return msgspec.structs.replace(lead, **changes)


def found(cloud: FakeCloud, lead: LeadIdentity | None = None, **changes: Any) -> str:
    """Return what is not as it should be, each with its advice."""
    findings = cloud.provider(**changes).examine(lead)
    assert all(each.advice for each in findings if each.level is not Level.OK)
    return "\n".join(f"{f.what}; {f.advice}" for f in findings if f.level != Level.OK)


def test_what_is_as_it_should_be_is_told(cloud: FakeCloud) -> None:
    findings = cloud.provider().examine(lead_of(cloud))
    assert {each.level for each in findings} == {Level.OK}
    assert len(findings) == 8
    assert cloud.asked == []


def test_credentials_that_others_can_read(cloud: FakeCloud) -> None:
    cloud.credentials.chmod(0o644)
    assert "others may read it" in found(cloud)
    assert "swordfish" not in found(cloud)
    with pytest.raises(ConfigError, match="others may read it"):
        cloud.provider().observe()


def test_volumes_that_ec2_keeps_are_told(hosts: Hypervisor) -> None:
    assert isinstance(hosts.cloud, MotoCloud)
    # That of moto's images keeps its volume.
    findings = hosts.cloud.provider("owner").examine(None)
    [told] = [each for each in findings if each.what.startswith("image ")]
    assert told.level is Level.NOTE
    assert "each VM leaves its volume /dev/sda1" in told.what


def test_a_cloud_that_refuses(cloud: FakeCloud) -> None:
    cloud.errors["list"] = BaseHTTPError(401, "AuthFailure: no")
    assert "AuthFailure" in found(cloud)


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"image": "ami-2"}, "there is no image ami-2"),
        ({"offers": {"nodes": HUGE}}, "no size c9.huge"),
        ({"user_data": "/dev/null"}, "user_data"),
        ({"munge_key": "/nowhere/munge.key"}, "munge_key"),
    ],
)
def test_a_setting_that_names_what_is_not_there(
    cloud: FakeCloud, changes: dict[str, Any], what: str
) -> None:
    assert what in found(cloud, **changes)


def test_a_price_of_compute_engine_without_gpus(tmp_path: Path) -> None:
    cloud = FakeCloud(tmp_path, "gce")
    size = {"size": "c7i.large", "cores": 4, "max_nodes": 4}
    said = "offer nodes: Libcloud's price of c7i.large is without its GPUs; set price"
    assert said in found(cloud, offers={"nodes": {**size, "gpus": 1}})
    for offer in (size, {**size, "gpus": 1, "price": 2.0}):
        assert said not in found(cloud, offers={"nodes": offer})
    others = FakeCloud(tmp_path, "ec2")
    assert found(others, offers={"nodes": {**size, "gpus": 1}}) == ""


def test_a_port_that_is_taken(cloud: FakeCloud) -> None:
    provider = cloud.provider()
    provider.provision(cloud.spec(1))
    assert f"port {cloud.port}" in found(cloud)
    assert provider.observe()


def test_a_lead_that_vms_cannot_reach(cloud: FakeCloud) -> None:
    local = lead_of(cloud, endpoint="tcp://127.0.0.1:8050")
    assert "cannot reach this host" in found(cloud, local)
    assert found(cloud, local, address="10.0.0.1") == ""


def test_a_lead_whose_followers_need_more_in_the_image(cloud: FakeCloud) -> None:
    access = GuestAccess(allow_guest_user=True)
    said = found(cloud, lead_of(cloud, access=access, systemd=True))
    assert "munge_key" in said
    assert "enable-linger" in said
