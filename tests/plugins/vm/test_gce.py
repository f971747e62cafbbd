# SPDX-License-Identifier: MIT
"""Libcloud's own driver of Compute Engine, with answers in place of a cloud."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests
from burst_vm.cloud import NewVm, VmCloud
from burst_vm.failures import Throttled
from burst_vm.machines import VmState
from burst_vm.settings import VmOffer
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from libcloud.common import base
from libcloud.common.google import GoogleServiceAcctAuthConnection
from libcloud.compute.drivers.gce import GCEConnection
from libcloud.http import LibcloudConnection

from burst.errors import InsufficientCapacity, Transient
from tests.plugins.vm.fake_cloud import FakeCloud

ZONE = "europe-west1-b"
ITEM = {
    "id": "1",
    "status": "UP",
    "guestCpus": 4,
    "selfLink": "https://www.googleapis.com/x",
}
INSTANCE = {
    **ITEM,
    "name": "burst-0-ab12-0",
    "status": "RUNNING",
    "zone": ZONE,
    "machineType": "zones/z/machineTypes/c3-standard-8",
    "tags": {"fingerprint": "x"},
    "labels": {"burst-owner": "owner", "burst-id": "burst-0-ab12"},
    "disks": [
        {
            "boot": True,
            "type": "PERSISTENT",
            "source": f"https://www.googleapis.com/compute/v1/projects/hpc/zones/{ZONE}"
            "/disks/burst-0-ab12-0",
        }
    ],
}
STOCKOUT = {"code": "ZONE_RESOURCE_POOL_EXHAUSTED", "message": "no such VMs now"}

THROTTLED = {
    "error": {
        "code": 403,
        "message": "Rate Limit Exceeded",
        "errors": [{"domain": "usageLimits", "reason": "rateLimitExceeded"}],
    }
}


class Compute:
    """What Compute Engine answers, and the requests it had."""

    def __init__(self) -> None:
        self.now = 0.0
        self.ends = 95.0
        """When the operation that makes a VM fails."""
        self.tokens: set[str] = set()
        self.timeouts: set[float] = set()
        self.throttles = False
        """Whether it takes no request that asks for the state of an operation."""

    def answer(self, method: str, path: str) -> dict[str, Any]:
        words = path.split("/")
        if method == "POST" or words[-2] == "operations":
            done = self.now >= self.ends
            link = "https://www.googleapis.com/compute/operations/1"
            found = {"status": "DONE" if done else "RUNNING", "selfLink": link}
            return found | ({"error": {"errors": [STOCKOUT]}} if done else {})
        if words[-1] == "zones":
            return {"items": [{**ITEM, "name": ZONE}]}
        if words[-1] == "instances":
            return {"items": [INSTANCE]}
        if words[-2:] == ["aggregated", "disks"]:
            # As of a zone that cannot be reached, or an account without that right.
            return {"items": {}}
        if words[-1] == "regions":
            region = {"name": "europe-west1", "zones": [ZONE], "quotas": []}
            return {"items": [{**ITEM, **region}]}
        return {**ITEM, "name": words[-1], "zone": ZONE}

    def connection(self, **given: Any) -> LibcloudConnection:
        compute, made = self, LibcloudConnection(**given)

        def request(method: str, url: str, headers: Any, **_: Any) -> None:
            compute.tokens.add(headers["Authorization"])
            compute.timeouts.add(made.session.timeout)
            made.response = requests.Response()
            path = urlsplit(url).path
            throttled = compute.throttles and "/operations/" in path
            made.response.status_code = 403 if throttled else 200
            found = THROTTLED if throttled else compute.answer(method, path)
            made.response._content = json.dumps(found).encode()

        made.request = request
        return made

    def time(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def compute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Compute:
    compute = Compute()
    token = {"access_token": "theirs", "expire_time": "2999-01-01T00:00:00Z"}
    (tmp_path / ".google_libcloud_auth.hpc").write_text(json.dumps(token))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(
        GoogleServiceAcctAuthConnection,
        "get_new_token",
        lambda _: {**token, "access_token": "ours"},
    )
    monkeypatch.setattr(GCEConnection, "conn_class", compute.connection)
    monkeypatch.setattr(base, "time", compute)
    return compute


@pytest.fixture
def cloud(tmp_path: Path) -> VmCloud:
    key = rsa.generate_private_key(65537, 2048).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    file = tmp_path / "account.json"
    file.write_text(json.dumps({"private_key": key.decode()}))
    fake = FakeCloud(tmp_path, "gce")
    user = "burst@hpc.iam.gserviceaccount.com"
    fake.credentials.write_text(f'user_id = "{user}"\nkey = "{file}"\n')
    image = "https://www.googleapis.com/compute/v1/projects/hpc/global/images/flux"
    settings = fake.settings(
        region=ZONE, image=image, driver_options={"project": "hpc"}
    )
    return VmCloud(settings)


def test_a_stock_out_that_is_told_after_a_while_is_read(
    compute: Compute, cloud: VmCloud
) -> None:
    offer = VmOffer(size="a2-highgpu-1g", cores=6, max_nodes=1)
    vm = NewVm("burst-0-0", offer, {"burst-owner": "owner"}, "#cloud-config")
    with pytest.raises(InsufficientCapacity, match="no such VMs now"):
        cloud.create(vm)
    assert compute.now >= compute.ends
    assert compute.timeouts == {30.0}, "of one request"


def test_a_vm_may_have_been_made_though_a_question_after_that_is_throttled(
    compute: Compute, cloud: VmCloud
) -> None:
    compute.throttles = True
    offer = VmOffer(size="a2-highgpu-1g", cores=6, max_nodes=1)
    vm = NewVm("burst-0-0", offer, {"burst-owner": "owner"}, "#cloud-config")
    with pytest.raises(Transient, match="rateLimitExceeded") as caught:
        cloud.create(vm)
    assert not isinstance(caught.value, Throttled)


def test_no_token_is_kept_in_a_file(
    compute: Compute, cloud: VmCloud, tmp_path: Path
) -> None:
    cloud.quotas()
    assert compute.tokens == {"Bearer ours"}
    kept = (tmp_path / ".google_libcloud_auth.hpc").read_text()
    assert json.loads(kept)["access_token"] == "theirs"


@pytest.mark.usefixtures("compute")
def test_a_vm_is_listed_also_if_its_disk_is_not(cloud: VmCloud) -> None:
    [machine] = cloud.machines()
    assert machine.state is VmState.RUNNING
    assert machine.burst == "burst-0-ab12"
