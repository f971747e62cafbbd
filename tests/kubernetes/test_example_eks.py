# SPDX-License-Identifier: MIT
"""The example of a third party's provider keeps the contract, on a real API server.

A script answers in the place of `aws`; pods run as kwok says.
"""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import entry_points
from pathlib import Path

import msgspec
import pytest

from burst.config import load
from burst.errors import Refused, Transient
from burst.kits.pods import OfferTable
from burst.provider import BurstSpec, Provider
from burst.provider_type import PROVIDERS
from burst.testing import ProviderContract, example_lead, example_spec
from burst.testing.contract import MakeProvider, MakeSpec
from tests.kubelab.cluster import Cluster
from tests.kubernetes.access import new_namespace
from tests.kubernetes.api import Api
from tests.kubernetes.proxy import Fault, Proxy
from tests.support.examples import load_example

EXAMPLE = Path(__file__).parents[2] / "examples" / "eks"

burst_eks = load_example("eks")


def write_aws(directory: Path, url: str, authority: str, token: str) -> Path:
    """Write a script that answers as `aws eks` does; return its path."""
    cluster = {
        "endpoint": url,
        "certificateAuthority": {"data": base64.b64encode(authority.encode()).decode()},
    }
    status = {"token": token, "expirationTimestamp": "2099-01-01T00:00:00Z"}
    answers = {
        "describe-cluster": {"cluster": cluster},
        "get-token": {"status": status},
    }
    path = directory / f"aws-{len(list(directory.iterdir()))}"
    path.touch(mode=0o700)
    path.write_text(
        f"#!{sys.executable}\nimport json, sys\n"
        f"print(json.dumps({answers!r}[sys.argv[2]]))\n"
    )
    return path


def write_failing(directory: Path, said: str) -> Path:
    """Write an `aws` that fails; it prints a secret where a token would be."""
    path = directory / "aws-fails"
    path.touch(mode=0o700)
    path.write_text(f"#!/bin/sh\necho planted\necho {json.dumps(said)} >&2\nexit 254\n")
    return path


def settings(aws: Path, namespace: str = "default") -> msgspec.Struct:
    made: msgspec.Struct = burst_eks.EksSettings(
        cluster="bursts",
        aws=str(aws),
        namespace=namespace,
        image="local.test/flux:v0.88.0",
        user=1000,
        one_per_node=False,
        offers={"nodes": OfferTable(cores=1, max_nodes=4)},
    )
    return made


@pytest.mark.kubernetes
class TestEksProvider(ProviderContract):
    patience = 90.0
    pause = 0.02

    @pytest.fixture(scope="class")
    @staticmethod
    def place(lab: Cluster) -> Iterator[str]:
        with new_namespace(lab, "eks") as name:
            yield name

    @pytest.fixture
    def aws(self, lab: Cluster, tmp_path: Path) -> Path:
        authority = lab.pki["ca.crt"].read_text()
        return write_aws(tmp_path, lab.url, authority, lab.tokens["admin"])

    @pytest.fixture(autouse=True)
    def proxy(self, api: Api, tmp_path: Path) -> Iterator[Proxy]:
        with Proxy(api, tmp_path) as proxy:
            yield proxy

    @pytest.fixture
    def make_provider(self, aws: Path, place: str) -> MakeProvider:
        made = settings(aws, place)
        return lambda owner: burst_eks.EksProvider("eks", made, owner)

    @pytest.fixture
    def make_interrupted(
        self, proxy: Proxy, lab: Cluster, place: str, tmp_path: Path
    ) -> MakeProvider:
        proxy.faults.append(Fault("PATCH", "/jobs/", drop=True))
        authority = lab.pki["ca.crt"].read_text()
        cut = settings(write_aws(tmp_path, proxy.url, authority, "any"), place)
        return lambda owner: burst_eks.EksProvider("eks", cut, owner)

    @pytest.fixture
    def make_spec(self, tmp_path: Path) -> MakeSpec:
        def make(owner: str, number: int) -> BurstSpec:
            return example_spec(example_lead(tmp_path, owner), number, "nodes")

        return make

    @pytest.fixture
    def misconfigured(self, tmp_path: Path) -> Callable[[], Provider]:
        wrong = settings(tmp_path / "no-such-program")
        return lambda: burst_eks.EksProvider("eks", wrong, "owner-a")


@pytest.mark.parametrize(
    ("said", "error", "advice"),
    [
        ("(ResourceNotFoundException): No cluster found", Refused, "set cluster"),
        ("An error occurred (AccessDeniedException)", Refused, "allow eks:Describe"),
        ("Unable to locate credentials.", Refused, "give `aws` credentials"),
        ("Could not connect to the endpoint URL", Transient, "Could not connect"),
    ],
)
def test_what_aws_says_becomes_a_decision(
    tmp_path: Path, said: str, error: type[Exception], advice: str
) -> None:
    provider = burst_eks.EksProvider(
        "eks", settings(write_failing(tmp_path, said)), "owner-a"
    )
    with pytest.raises(error, match=advice) as raised:
        provider.observe()
    assert "planted" not in str(raised.value)


def test_a_token_is_renewed_before_it_ends() -> None:
    now, asked = [0.0], []

    def renew() -> tuple[str, float]:
        asked.append(now[0])
        return f"token-{len(asked)}", now[0] + 900

    token = burst_eks.Token(renew, lambda: now[0])
    assert [token(), token()] == ["token-1"] * 2
    now[0] = 850.0
    assert token() == "token-2"
    assert asked == [0.0, 850.0]


def test_its_settings_are_read_by_the_daemon() -> None:
    file = load(EXAMPLE / "burst.toml")
    assert file.providers["eks"].type == "eks"
    assert not entry_points(group=PROVIDERS, name="eks"), (
        "the example is not one of our own plug-ins"
    )
