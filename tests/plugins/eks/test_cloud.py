# SPDX-License-Identifier: MIT
"""Tokens, and errors of AWS as boto3 raises them."""

from __future__ import annotations

import base64
import logging
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit
from wsgiref.types import StartResponse, WSGIEnvironment

import boto3
import pytest
from burst_eks.cloud import EksCloud
from burst_eks.failures import NoSuchThing

from burst.errors import Refused, Transient
from burst.provider import Phase
from tests.plugins.eks.moto_eks import (
    AUTHORITY,
    CLUSTER,
    REGION,
    ROLE,
    STOCKOUT,
    EksServer,
    MotoEks,
)

GROUP = {
    "clusterName": CLUSTER,
    "nodegroupName": "burst-a",
    "nodeRole": "arn:aws:iam::123456789012:role/nodes",
    "subnets": ["subnet-0a"],
    "tags": {"of": "a test"},
}


def signing(eks: MotoEks, session: Any = None, **changes: Any) -> EksCloud:
    """Return a cloud that asks nobody; its session speaks to AWS itself."""
    known = session or boto3.Session("AKIDEXAMPLE", "swordfish", "session-token")
    settings = eks.settings(**changes)
    return EksCloud(settings, make_session=lambda **_: known, clock=eks.clock)


def url_of(token: str) -> str:
    """Return the signed URL in a token."""
    kind, _, text = token.partition(".")
    assert kind == "k8s-aws-v1"
    assert "=" not in text
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()


def test_a_token_is_a_signed_url_that_names_us_to_one_cluster(eks: MotoEks) -> None:
    url = urlsplit(url_of(signing(eks).token()))
    assert (url.scheme, url.netloc, url.path) == (
        "https",
        f"sts.{REGION}.amazonaws.com",
        "/",
    )
    query = {key: values[0] for key, values in parse_qs(url.query).items()}
    assert query["Action"] == "GetCallerIdentity"
    assert query["Version"] == "2011-06-15"
    # Without this header in the signature any cluster would take it.
    assert query["X-Amz-SignedHeaders"] == "host;x-k8s-aws-id"
    assert query["X-Amz-Credential"].startswith("AKIDEXAMPLE/")
    assert query["X-Amz-Credential"].endswith(f"/{REGION}/sts/aws4_request")
    assert query["X-Amz-Security-Token"] == "session-token"
    assert query["X-Amz-Expires"] == "60"
    assert "swordfish" not in url.query
    other = parse_qs(urlsplit(url_of(signing(eks, cluster="others").token())).query)
    assert other["X-Amz-Signature"] != [query["X-Amz-Signature"]]


def test_a_token_is_kept_for_eight_minutes_and_signed_anew_then(eks: MotoEks) -> None:
    asked: list[int] = []

    class Session(boto3.Session):  # type: ignore[misc]
        def get_credentials(self) -> Any:
            asked.append(1)
            return super().get_credentials()

    cloud = signing(eks, Session("AKIDEXAMPLE", "swordfish"))
    tokens = {cloud.token(), cloud.token()}
    asked.clear()
    eks.clock.now += 479
    assert tokens == {cloud.token()}
    assert not asked
    eks.clock.now += 2
    cloud.token()
    assert asked
    asked.clear()
    eks.clock.now -= 3600  # a clock that was set back keeps no token for an hour more
    cloud.token()
    assert asked


def test_no_token_is_logged(eks: MotoEks, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    token = signing(eks).token()
    assert token not in caplog.text
    assert "X-Amz-Signature" not in caplog.text


def test_without_credentials_it_says_how_to_find_out(
    eks: MotoEks, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    for ask in (EksCloud.token, EksCloud.cluster, EksCloud.identity):
        with pytest.raises(Refused, match="aws sts get-caller-identity"):
            ask(EksCloud(eks.settings()))
    with pytest.raises(Refused, match=r"absent.*aws sts get-caller-identity"):
        EksCloud(eks.settings(profile="absent")).cluster()


def test_renewed_credentials_are_read_once_the_old_ones_are_refused(
    eks: MotoEks, server: EksServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file, keys, answer = tmp_path / "credentials", [], server.answer

    def write(key: str) -> None:
        names = "aws_access_key_id", "aws_secret_access_key"
        lines = [f"{name} = {key}\n" for name in names]
        file.write_text("".join(["[default]\n", *lines]))

    def watch(given: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        keys.append(key_of(given["HTTP_AUTHORIZATION"]))
        return answer(given, start)

    server.answer = watch
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
    cloud = EksCloud(eks.settings(), clock=eks.clock)
    for ask in (cloud.token, cloud.cluster):
        with pytest.raises(Refused, match="aws sts get-caller-identity"):
            ask()
    write("AKIDOLD")
    assert key_of(url_of(cloud.token())) == "AKIDOLD"
    cloud.cluster()
    write("AKIDNEW")
    eks.errors["GET"] = 403, "ExpiredTokenException"
    with pytest.raises(Refused, match="renew the credentials"):
        cloud.group("burst-a")
    eks.errors.clear()
    assert key_of(url_of(cloud.token())) == "AKIDNEW"
    assert cloud.group("burst-a") is None
    assert keys == ["AKIDOLD", "AKIDOLD", "AKIDNEW"]


class Crossing(boto3.Session):  # type: ignore[misc]
    """A session in whose use another thread comes between, at the named place."""

    at = ""
    cross: Callable[[], None] | None = None
    """Does what the other thread does."""

    def client(self, service: str, **given: Any) -> Any:
        found = super().client(service, **given)
        self._pass(service)
        return found

    def get_credentials(self) -> Any:
        self._pass("credentials")
        return super().get_credentials()

    def _pass(self, place: str) -> None:
        if place == self.at and self.cross:
            self.at = ""
            self.cross()


@pytest.fixture
def two(
    eks: MotoEks, server: EksServer, monkeypatch: pytest.MonkeyPatch
) -> tuple[Crossing, EksCloud, list[Crossing]]:
    """Return the first session, a cloud, and the session that it makes after that."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
    old, new = Crossing("AKIDOLD", "swordfish"), Crossing("AKIDNEW", "swordfish")
    later = [old, new]
    cloud = EksCloud(
        eks.settings(), make_session=lambda **_: later.pop(0), clock=eks.clock
    )
    return old, cloud, later


def refused(eks: MotoEks, cloud: EksCloud) -> None:
    """Have AWS refuse the credentials of a call."""
    eks.errors["GET"] = 403, "ExpiredTokenException"
    with pytest.raises(Refused, match="renew the credentials"):
        cloud.group("burst-a")
    eks.errors.clear()


@pytest.mark.parametrize("place", ["sts", "credentials"])
def test_a_token_is_signed_though_another_thread_is_refused(
    eks: MotoEks, two: tuple[Crossing, EksCloud, list[Crossing]], place: str
) -> None:
    old, cloud, _ = two
    old.at, old.cross = place, lambda: refused(eks, cloud)
    assert key_of(url_of(cloud.token())) == "AKIDOLD"
    assert key_of(url_of(cloud.token())) == "AKIDNEW"


def test_a_late_refusal_keeps_what_another_thread_has_read(
    eks: MotoEks, two: tuple[Crossing, EksCloud, list[Crossing]]
) -> None:
    old, cloud, later = two

    def cross() -> None:
        refused(eks, cloud)
        assert key_of(url_of(cloud.token())) == "AKIDNEW"
        eks.errors["GET"] = 403, "ExpiredTokenException"

    old.at, old.cross = "eks", cross
    with pytest.raises(Refused, match="renew the credentials"):
        cloud.group("burst-a")
    assert later == []
    assert key_of(url_of(cloud.token())) == "AKIDNEW"


def key_of(signed: str) -> str:
    """Return the key that a header or a URL was signed with."""
    found = re.search(r"Credential=(\w+)", signed)
    assert found, signed
    return found[1]


def test_a_declined_request_is_a_decision_with_the_words_of_aws(eks: MotoEks) -> None:
    eks.errors["POST"] = 404, "ResourceNotFoundException"
    with pytest.raises(NoSuchThing, match=r"to make node group burst-a.*said so"):
        eks.cloud().create(GROUP)


def test_an_absent_cluster_is_refused_and_never_not_found(eks: MotoEks) -> None:
    with pytest.raises(Refused, match="set region, cluster and profile"):
        eks.cloud(cluster="no").cluster()


def test_a_cluster_that_cannot_be_used_says_so(eks: MotoEks) -> None:
    cluster = eks.backend.clusters[CLUSTER]
    cluster.status = "CREATING"
    with pytest.raises(Transient, match="is CREATING"):
        eks.cloud().cluster()
    cluster.status = "DELETING"
    with pytest.raises(Transient, match="is DELETING"):
        eks.cloud().cluster()
    cluster.status = "UPDATING"
    assert eks.cloud().cluster()[1] == AUTHORITY


THROTTLED = {"code": "IamThrottling", "message": "busy"}
UNREGISTERED = {"code": "NodeCreationFailure", "message": "no node joined"}


@pytest.mark.parametrize(
    ("status", "issues", "phase", "has_nodes"),
    [
        ("CREATING", [], Phase.PENDING, True),
        ("CREATING", [STOCKOUT], Phase.FAILED, False),
        ("CREATING", [THROTTLED], Phase.PENDING, True),
        ("ACTIVE", [], Phase.RUNNING, True),
        ("DEGRADED", [STOCKOUT], Phase.RUNNING, False),
        ("DELETING", [], Phase.ENDING, True),
        ("DELETE_FAILED", [], Phase.FAILED, True),
        ("CREATE_FAILED", [STOCKOUT], Phase.FAILED, False),
        ("CREATE_FAILED", [UNREGISTERED], Phase.FAILED, True),
    ],
)
def test_a_node_group_is_in_a_phase_and_has_nodes_or_not(
    eks: MotoEks,
    status: str,
    issues: list[dict[str, str]],
    phase: Phase,
    *,
    has_nodes: bool,
) -> None:
    cloud = eks.cloud()
    cloud.create(GROUP)
    eks.stalled = True
    group = eks.groups["burst-a"]
    group.status, group.health = status, {"issues": issues}
    found = cloud.group("burst-a")
    assert found is not None
    assert (found.phase, found.has_nodes) == (phase, has_nodes)
    assert found.tags == {"of": "a test"}
    for issue in issues:
        assert issue["message"] in found.why


def test_all_pages_of_node_groups_are_read(eks: MotoEks) -> None:
    one = eks.backend.create_nodegroup(CLUSTER, ROLE, "burst-x-0", ["subnet-0a"])
    eks.groups.update({f"burst-x-{number}": one for number in range(101)})
    assert len(eks.cloud().groups("burst-x-10")) == 2
    assert len(eks.cloud().groups("burst-")) == 101
