# SPDX-License-Identifier: MIT
"""Tokens, and errors of AWS as boto3 raises them."""

from __future__ import annotations

import base64
import logging
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import boto3
import pytest
from burst_eks.cloud import Cloud

from burst.errors import InsufficientCapacity, Refused, SpecRefused, Transient
from burst.provider import Phase
from tests.plugins.eks.moto_eks import CLUSTER, NOW, REGION, ROLE, STOCKOUT, MotoEks
from tests.support.set_clock import SetClock

GROUP = {
    "clusterName": CLUSTER,
    "nodegroupName": "burst-a",
    "nodeRole": "arn:aws:iam::123456789012:role/nodes",
    "subnets": ["subnet-0a"],
    "tags": {"of": "a test"},
}


def signing(key: str = "AKIDEXAMPLE", secret: str | None = "swordfish") -> Cloud:
    """Return a cloud that asks nobody; its session speaks to AWS itself."""
    session = boto3.Session(key, secret, "session-token", region_name=REGION)
    return Cloud(REGION, make_session=lambda **_: session, clock=SetClock(NOW))


def url_of(token: str) -> str:
    """Return the signed URL in a token."""
    kind, _, text = token.partition(".")
    assert kind == "k8s-aws-v1"
    assert "=" not in text
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()


def test_a_token_is_a_signed_url_that_tells_who_we_are_to_one_cluster() -> None:
    url = urlsplit(url_of(signing().token("bursts")))
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


def test_tokens_of_two_clusters_have_two_signatures() -> None:
    cloud = signing()
    tokens = [cloud.token(name) for name in ("bursts", "others")]
    signatures = [
        parse_qs(urlsplit(url_of(t)).query)["X-Amz-Signature"] for t in tokens
    ]
    assert signatures[0] != signatures[1]


def test_a_token_is_kept_for_eight_minutes_and_signed_anew_then() -> None:
    asked = []
    session = boto3.Session("AKIDEXAMPLE", "swordfish", region_name=REGION)
    find = session.get_credentials
    session.get_credentials = lambda: asked.append(1) or find()  # type: ignore[func-returns-value, method-assign]
    clock = SetClock(NOW)
    cloud = Cloud(REGION, make_session=lambda **_: session, clock=clock)
    first = [cloud.token("bursts"), cloud.token("bursts")]
    signed = len(asked)
    clock.now += 479
    assert [*first, cloud.token("bursts")] == [first[0]] * 3
    assert len(asked) == signed
    clock.now += 2
    cloud.token("bursts")
    assert len(asked) > signed
    clock.now -= 3600  # a clock that was set back does not keep one for an hour more
    signed = len(asked)
    cloud.token("bursts")
    assert len(asked) > signed


def test_no_token_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    token = signing().token("bursts")
    assert token not in caplog.text
    assert "X-Amz-Signature" not in caplog.text


def test_without_credentials_it_says_how_to_find_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    for ask in (lambda c: c.token("bursts"), lambda c: c.cluster("bursts")):
        with pytest.raises(Refused, match="aws sts get-caller-identity"):
            ask(Cloud(REGION))
    with pytest.raises(Refused, match=r"absent.*aws sts get-caller-identity"):
        Cloud(REGION, "absent").cluster("bursts")


def test_no_answer_is_transient() -> None:
    session = boto3.Session("AKIDEXAMPLE", "swordfish", region_name=REGION)
    client = session.client("eks", endpoint_url="http://127.0.0.1:1")
    session.client = lambda *_, **__: client  # type: ignore[method-assign]
    with pytest.raises(Transient, match="could not be asked to look at cluster bursts"):
        Cloud(REGION, make_session=lambda **_: session).cluster("bursts")


@pytest.mark.parametrize(
    ("status", "code", "error"),
    [
        (400, "ResourceLimitExceededException", InsufficientCapacity),
        (403, "AccessDeniedException", Refused),
        (400, "InvalidParameterException", SpecRefused),
        (409, "ResourceInUseException", Transient),
        (404, "ResourceNotFoundException", Refused),
        (429, "ThrottlingException", Transient),
        (500, "ServerException", Transient),
    ],
)
def test_a_declined_request_is_a_decision_with_the_words_of_aws(
    eks: MotoEks, status: int, code: str, error: type[Exception]
) -> None:
    eks.errors["POST"] = status, code
    with pytest.raises(error, match=r"to make node group burst-a.*said so") as raised:
        eks.cloud().create(GROUP)
    assert type(raised.value) is error


def test_a_cluster_that_is_not_there_is_refused_and_never_not_found(
    eks: MotoEks,
) -> None:
    with pytest.raises(Refused, match="set region, cluster and profile"):
        eks.cloud().cluster("no")


def test_a_cluster_that_cannot_be_used_says_so(eks: MotoEks) -> None:
    cluster = eks.backend.clusters[CLUSTER]
    cluster.status = "CREATING"
    with pytest.raises(Transient, match="is CREATING"):
        eks.cloud().cluster(CLUSTER)
    cluster.status = "DELETING"
    with pytest.raises(Refused, match="is DELETING"):
        eks.cloud().cluster(CLUSTER)
    cluster.status = "UPDATING"
    assert eks.cloud().cluster(CLUSTER).subnets == ("subnet-0a", "subnet-0b")


@pytest.mark.parametrize(
    ("status", "issues", "phase"),
    [
        ("CREATING", [], Phase.PENDING),
        ("CREATING", [STOCKOUT], Phase.FAILED),
        ("CREATING", [{"code": "IamThrottling", "message": "busy"}], Phase.PENDING),
        ("ACTIVE", [], Phase.RUNNING),
        ("UPDATING", [], Phase.RUNNING),
        ("DEGRADED", [STOCKOUT], Phase.RUNNING),
        ("DELETING", [], Phase.ENDING),
        ("DELETE_FAILED", [], Phase.FAILED),
        ("CREATE_FAILED", [STOCKOUT], Phase.FAILED),
    ],
)
def test_a_node_group_is_in_a_phase(
    eks: MotoEks, status: str, issues: list[dict[str, str]], phase: Phase
) -> None:
    cloud = eks.cloud()
    cloud.create(GROUP)
    eks.stalled = True
    group = eks.groups["burst-a"]
    group.status, group.health = status, {"issues": issues}
    found = cloud.group(CLUSTER, "burst-a")
    assert found is not None
    assert found.phase is phase
    assert found.tags == {"of": "a test"}
    for issue in issues:
        assert issue["message"] in found.why


def test_all_pages_of_node_groups_are_read(eks: MotoEks) -> None:
    one = eks.backend.create_nodegroup(CLUSTER, ROLE, "burst-x-0", ["subnet-0a"])
    eks.groups.update({f"burst-x-{number}": one for number in range(101)})
    assert len(eks.cloud().groups(CLUSTER, "burst-x-10")) == 2
    assert len(list(eks.cloud()._names(CLUSTER))) == 101
