# SPDX-License-Identifier: MIT
"""manifests/gc deletes what is past its lease, with its rights and without a lead."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

import msgspec
import pytest

from burst.errors import Refused
from burst.kits.kube import Cluster, Kubeconfig
from burst.kits.kube.kinds import JOB, SECRET
from burst.testing import example_spec
from tests.cli.cli_harness import burst
from tests.kubernetes.bursts import Bursts, attempt
from tests.kubernetes.kustomize import build
from tests.support.waiting import HANG_S, wait_until

pytestmark = pytest.mark.kubernetes
GC = ("--provider", "kube", "--any-owner", "--expired", "--yes")


@pytest.fixture
def account(bursts: Bursts, tmp_path: Path) -> Path:
    """A kubeconfig with a token of the CronJob's account, which manifests/gc makes."""
    where = ("-n", bursts.namespace)
    built = build(bursts.lab, tmp_path, "gc", namespace=bursts.namespace)
    bursts.lab.kubectl("apply", *where, "-f", built)
    # It is run here by hand, with its arguments.
    bursts.lab.kubectl("delete", "cronjob", "burst-gc", *where)
    token = bursts.lab.kubectl("create", "token", "burst-gc", *where).strip()
    path: Path = bursts.lab.write_kubeconfig(f"gc-{bursts.namespace}", {"token": token})
    with contextlib.closing(Cluster(Kubeconfig(str(path)), timeout=HANG_S)) as client:
        # Roles take effect some milliseconds late.
        wait_until(lambda: client.may("delete", JOB, bursts.namespace), "its rights")
    return path


def test_it_deletes_what_has_expired_and_nothing_else(
    bursts: Bursts, account: Path, tmp_path: Path
) -> None:
    lives = msgspec.structs.replace(
        example_spec(bursts.lead, 1, "nodes"), lease_end=time.time() + 3600
    )
    expired = msgspec.structs.replace(bursts.spec, lease_end=time.time() - 3600)
    for spec in (lives, expired):
        bursts.provider().provision(spec)
    config = tmp_path / "burst.toml"
    config.write_text(
        f'[providers.kube]\ntype = "kube"\nkubeconfig = "{account}"\n'
        f'namespace = "{bursts.namespace}"\nimage = "not-used"\n'
        "[providers.kube.offers.nodes]\ncores = 1\nmax_nodes = 1\n"
    )
    said = burst("gc", "-c", str(config), *GC)
    assert said.status == 0, said.stderr
    assert [line.split()[0] for line in said.lines[1:]] == [expired.burst_id]
    assert f"{expired.burst_id} of provider" in said.stderr

    def listed() -> list[str]:
        return [status.burst_id for status in bursts.provider().observe()]

    wait_until(lambda: listed() == [lives.burst_id], listed)

    def kept() -> bool:
        names = {thing["metadata"]["name"] for thing in bursts.objects("secrets")}
        return lives.burst_id in names and expired.burst_id not in names

    wait_until(kept, lambda: bursts.objects("secrets"))


def test_its_account_can_create_nothing(bursts: Bursts, account: Path) -> None:
    spec = bursts.spec
    error = attempt(lambda: bursts.provider(kubeconfig=str(account)).provision(spec))
    assert isinstance(error, Refused)
    assert "may not create" in error.what
    client = Cluster(Kubeconfig(str(account)), timeout=HANG_S)
    with contextlib.closing(client):
        for verb in ("create", "patch", "update"):
            assert not client.may(verb, JOB, bursts.namespace)
        assert client.may("delete", JOB, bursts.namespace)
        assert not client.may("list", JOB, "default")
        for verb in ("get", "list", "watch"):
            assert not client.may(verb, SECRET, bursts.namespace)
