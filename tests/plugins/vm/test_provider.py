# SPDX-License-Identifier: MIT
"""The provider on a driver in memory: lost and late answers, states, ends."""

from __future__ import annotations

import socket

import msgspec
import pytest
from burst_vm.provider import VmProvider
from libcloud.common.exceptions import BaseHTTPError
from libcloud.compute.types import NodeState

from burst.errors import (
    ConfigError,
    InsufficientCapacity,
    NotFound,
    Refused,
    SpecRefused,
    Transient,
)
from burst.provider import BurstSpec, BurstStatus, Failure, Phase, Provider
from tests.plugins.vm.fake_cloud import FakeCloud
from tests.support.reaping import reap_until_gone


def seen(provider: Provider) -> BurstStatus:
    [status] = provider.observe()
    return status


def fetch_all(cloud: FakeCloud, spec: BurstSpec) -> None:
    """Note of each follower that its VM has fetched its files."""
    for host in spec.hosts:
        (cloud.path / f"notes/owner.vm/{spec.burst_id}/{host}.fetched").touch()


def unanswered(cloud: FakeCloud, call: str) -> VmProvider:
    """Return a provider whose first VM had no answer at this call, and is unlisted."""
    cloud.errors[call] = TimeoutError("timed out")
    cloud.late = {"i-1"}
    provider = cloud.provider()
    with pytest.raises(Transient):
        provider.provision(cloud.spec(1))
    return provider


@pytest.mark.parametrize("call", ["create", "answer"])
def test_a_vm_whose_request_was_throttled_is_there_or_requested_again_at_once(
    cloud: FakeCloud, call: str
) -> None:
    cloud.errors[call] = BaseHTTPError(503, "RequestLimitExceeded: too many")
    provider = cloud.provider()
    with pytest.raises(Transient) as caught:
        provider.provision(cloud.spec(1))
    assert caught.value.retry_after == 1
    provider.provision(cloud.spec(1))
    assert len(cloud.asked) == 1
    # Its token is valid.
    assert "has not fetched its files yet" in seen(provider).why


def test_nothing_is_left_of_a_request_that_was_throttled(cloud: FakeCloud) -> None:
    cloud.errors["create"] = BaseHTTPError(503, "RequestLimitExceeded: too many")
    provider = cloud.provider()
    with pytest.raises(Transient):
        provider.provision(cloud.spec(1))
    with pytest.raises(NotFound):
        provider.reap(cloud.spec(1).burst_id)


def test_a_vm_that_is_listed_late_is_not_made_twice(cloud: FakeCloud) -> None:
    provider = unanswered(cloud, "answer")
    cloud.now += 30
    with pytest.raises(Transient) as caught:
        provider.provision(cloud.spec(1))
    assert caught.value.retry_after == 30
    assert seen(provider).phase is Phase.PENDING
    cloud.late = set()
    provider.provision(cloud.spec(1))
    assert len(cloud.asked) == 1


def test_a_vm_that_is_made_slowly_and_listed_late_is_not_made_twice(
    cloud: FakeCloud,
) -> None:
    cloud.takes = 50.0
    provider = unanswered(cloud, "answer")
    cloud.now += 30
    with pytest.raises(Transient):
        provider.provision(cloud.spec(1))
    cloud.now += 29
    provider.reap(cloud.spec(1).burst_id)
    assert len(cloud.asked) == 1


def test_a_vm_that_is_made_slowly_and_listed_late_is_not_lost(cloud: FakeCloud) -> None:
    cloud.takes, cloud.late = 50.0, {"i-1"}
    provider = cloud.provider()
    provider.provision(cloud.spec(1))
    cloud.now += 30
    assert seen(provider).phase is Phase.PENDING
    cloud.now += 30
    assert seen(provider).phase is Phase.FAILED


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("by_list", [False, True])
def test_a_vm_without_an_answer_that_was_listed_and_failed_is_lost(
    cloud: FakeCloud, *, restarted: bool, by_list: bool
) -> None:
    provider = unanswered(cloud, "answer")
    cloud.late = set()
    assert seen(provider).phase is Phase.PENDING
    if restarted:
        provider = cloud.provider()
    else:
        provider.provision(cloud.spec(1))
    if by_list:
        cloud.nodes.clear()
        cloud.now += 60
    else:
        cloud.nodes[0].state = NodeState.TERMINATED
        reason = "Server.InsufficientInstanceCapacity: none"
        cloud.nodes[0].extra |= {"status": "terminated", "reason": reason}
    status = seen(provider)
    assert status.phase is Phase.FAILED
    assert status.failure is (Failure.OTHER if by_list else Failure.CAPACITY)
    assert "VM i-1 is" in status.why
    # It is not made again, as jobs may have run there.
    provider.provision(cloud.spec(1))
    assert len(cloud.asked) == 1


def test_a_vm_without_an_answer_that_provision_saw_and_that_failed_is_lost(
    cloud: FakeCloud,
) -> None:
    provider = unanswered(cloud, "answer")
    cloud.late = set()
    provider.provision(cloud.spec(1))
    cloud.nodes.clear()
    cloud.now += 60
    assert seen(provider).phase is Phase.FAILED


def test_it_is_not_gone_while_a_vm_may_be_listed_late(cloud: FakeCloud) -> None:
    spec, provider = cloud.spec(1), unanswered(cloud, "answer")
    provider.reap(spec.burst_id)
    cloud.late = set()
    provider.reap(spec.burst_id)
    assert cloud.destroyed == ["i-1"]
    cloud.now += 60
    with pytest.raises(NotFound):
        provider.reap(spec.burst_id)
    assert list(cloud.path.glob("notes/*")) == []


def test_it_is_not_gone_if_the_cloud_does_not_know_yet_what_it_shall_delete(
    cloud: FakeCloud,
) -> None:
    spec, provider = cloud.spec(1), cloud.provider()
    provider.provision(spec)
    error = BaseHTTPError(400, "InvalidInstanceID.NotFound: i-1")
    cloud.errors["destroy"] = error
    provider.reap(spec.burst_id)
    cloud.late = {"i-1"}
    provider.reap(spec.burst_id)
    cloud.late = set()
    provider.reap(spec.burst_id)
    assert cloud.destroyed == ["i-1"]
    with pytest.raises(NotFound):
        provider.reap(spec.burst_id)


def test_a_vm_runs_for_the_daemon_once_it_has_its_files(cloud: FakeCloud) -> None:
    spec, provider = cloud.spec(), cloud.provider()
    provider.provision(spec)
    status = seen(provider)
    assert status.phase is Phase.PENDING
    assert "has not fetched its files yet" in status.why
    assert all(each.has_node for each in status.followers)
    cloud.now += 901
    status = seen(provider)
    assert status.phase is Phase.FAILED
    assert "did not fetch its files in time" in status.why
    fetch_all(cloud, spec)
    assert (seen(provider).phase, seen(provider).why) == (Phase.RUNNING, "")


@pytest.mark.parametrize(
    ("state", "own", "phase"),
    [
        (NodeState.PENDING, "pending", Phase.PENDING),
        (NodeState.UNKNOWN, "a new word", Phase.PENDING),
        (NodeState.RUNNING, "running", Phase.RUNNING),
        (NodeState.UNKNOWN, "shutting-down", Phase.ENDING),
        (NodeState.PENDING, "STOPPING", Phase.ENDING),
        (NodeState.ERROR, "ERROR", Phase.FAILED),
        # EC2's words, which Libcloud does not know.
        (NodeState.UNKNOWN, "stopped", Phase.FAILED),
        (NodeState.UNKNOWN, "stopping", Phase.ENDING),
    ],
)
def test_a_state_is_a_phase(
    cloud: FakeCloud, state: NodeState, own: str, phase: Phase
) -> None:
    spec, provider = cloud.spec(1), cloud.provider()
    provider.provision(spec)
    fetch_all(cloud, spec)
    cloud.nodes[0].state = state
    cloud.nodes[0].extra["status"] = own
    status = seen(provider)
    assert status.phase is phase
    assert (own in status.why) is (phase is not Phase.RUNNING)


@pytest.mark.parametrize(
    ("reason", "failure", "reclaimed"),
    [
        ("Server.SpotInstanceTermination: gone", Failure.RECLAIMED, True),
        ("Server.InsufficientInstanceCapacity: none", Failure.CAPACITY, False),
        ("Client.InstanceInitiatedShutdown: poweroff", Failure.OTHER, False),
    ],
)
def test_why_a_vm_ended_is_told(
    cloud: FakeCloud, reason: str, failure: Failure, reclaimed: bool
) -> None:
    spec, provider = cloud.spec(), cloud.provider()
    provider.provision(spec)
    fetch_all(cloud, spec)
    cloud.nodes[0].state = NodeState.TERMINATED
    cloud.nodes[0].extra |= {"status": "terminated", "reason": reason}
    status = seen(provider)
    assert (status.phase, status.failure) == (Phase.FAILED, failure)
    lost = {each.host: each for each in status.followers if each.lost}
    [follower] = lost.values()
    assert follower.reclaimed is reclaimed
    assert reason in follower.why
    # It is not made again, as jobs may have run there.
    provider.provision(spec)
    assert len(cloud.asked) == 2


@pytest.mark.parametrize(
    ("own", "state", "phase"),
    [
        ("shutting-down", NodeState.UNKNOWN, Phase.ENDING),
        ("terminated", NodeState.TERMINATED, Phase.FAILED),
    ],
)
@pytest.mark.parametrize("lifecycle", ["spot", None])
def test_a_spot_vm_that_ec2_ends_was_taken_back(
    cloud: FakeCloud, own: str, state: NodeState, phase: Phase, lifecycle: str | None
) -> None:
    spec, provider = cloud.spec(), cloud.provider()
    provider.provision(spec)
    fetch_all(cloud, spec)
    cloud.nodes[0].state = state
    reason = "Service initiated (2026-06-06 16:04:58 GMT)"
    words = {"status": own, "reason": reason, "instance_lifecycle": lifecycle}
    cloud.nodes[0].extra |= words
    status, taken = seen(provider), lifecycle == "spot"
    expected = Failure.RECLAIMED if taken else Failure.OTHER
    assert (status.phase, status.failure) == (phase, expected)
    reclaimed = [each.phase for each in status.followers if each.reclaimed]
    assert reclaimed == ([phase] if taken else [])


def test_a_vm_that_is_not_listed_any_more_is_lost(cloud: FakeCloud) -> None:
    spec, provider = cloud.spec(1), cloud.provider()
    provider.provision(spec)
    fetch_all(cloud, spec)
    cloud.nodes.clear()
    assert seen(provider).phase is Phase.PENDING, "the list may be late"
    cloud.now += 60
    status = seen(provider)
    assert status.phase is Phase.FAILED
    assert "VM i-1 is not listed any more" in status.why


def test_what_the_cloud_refused_is_soon_gone(cloud: FakeCloud) -> None:
    cloud.errors["create"] = BaseHTTPError(400, "InvalidSubnetID.NotFound: subnet-1")
    spec, provider = cloud.spec(1), cloud.provider()
    with pytest.raises(Refused, match="InvalidSubnetID"):
        provider.provision(spec)
    with pytest.raises(NotFound):
        provider.reap(spec.burst_id)


def test_without_its_notes_it_is_found_by_its_tags(cloud: FakeCloud) -> None:
    spec = cloud.spec()
    cloud.provider().provision(spec)
    elsewhere = cloud.provider(dir=str(cloud.path / "other"))
    status = seen(elsewhere)
    assert status.phase is Phase.RUNNING
    assert {each.host for each in status.followers} == set(spec.hosts)
    reap_until_gone(elsewhere, spec.burst_id)
    assert cloud.nodes == []


def test_a_price_is_that_of_the_size_unless_it_is_set(cloud: FakeCloud) -> None:
    size = {"size": "c7i.large", "cores": 4, "max_nodes": 4}
    offers = {
        "own": {**size, "price": 3.0, "total": 7, "spot": True},
        "theirs": size,
        "unknown": {**size, "size": "u9.huge"},
    }
    found = {o.name: o for o in cloud.provider(offers=offers).offers()}
    prices = {name: offer.price for name, offer in found.items()}
    assert prices == {"own": 3.0, "theirs": 0.1, "unknown": 0.0}
    assert (found["own"].total, found["own"].spot) == (7, True)


@pytest.mark.parametrize(("set_", "told"), [("1d", 86400.0), ("inf", 0.0)])
def test_the_lifetime_is_told_unless_there_is_none(
    cloud: FakeCloud, set_: str, told: float
) -> None:
    [offer] = cloud.provider(lifetime=set_).offers()
    assert offer.lifetime == told


def test_a_burst_that_cannot_grow_stays_as_it_is(cloud: FakeCloud) -> None:
    spec, provider = cloud.spec(2), cloud.provider()
    provider.provision(spec)
    for error, raised in (
        ("InsufficientInstanceCapacity: none", InsufficientCapacity),
        ("InvalidSubnetID.NotFound: subnet-1", Refused),
    ):
        cloud.errors["create"] = BaseHTTPError(400, error)
        with pytest.raises(raised):
            provider.resize(cloud.spec(3))
        # Also to a daemon that starts again.
        for each in (provider, cloud.provider()):
            assert [one.host for one in seen(each).followers] == [*spec.hosts]
    provider.resize(cloud.spec(3))
    assert len(cloud.nodes) == 3


def test_jobs_of_guests_need_munges_key(cloud: FakeCloud) -> None:
    assert [offer.guests for offer in cloud.provider().offers()] == [False]
    key = cloud.path / "munge.key"
    assert [o.guests for o in cloud.provider(munge_key=str(key)).offers()] == [True]


def test_a_burst_whose_lease_has_ended_is_refused(cloud: FakeCloud) -> None:
    spec = msgspec.structs.replace(cloud.spec(), lease_end=cloud.now - 1)
    with pytest.raises(SpecRefused, match="lease"):
        cloud.provider().provision(spec)
    assert cloud.asked == []


def test_changed_credentials_are_used(cloud: FakeCloud) -> None:
    provider = cloud.provider()
    provider.observe()
    cloud.credentials.write_text('key = "b"\nsecret = "another"\ntoken = "new"\n')
    provider.observe()
    assert [made["key"] for made in cloud.made] == ["a", "b"]


def test_a_changed_file_of_the_key_is_used(cloud: FakeCloud) -> None:
    file = cloud.path / "account.json"
    file.write_text('{"private_key": "old"}')
    cloud.credentials.write_text(f'user_id = "a"\nkey = "{file}"\n')
    provider = cloud.provider()
    provider.observe()
    file.write_text('{"private_key": "new"}')
    provider.observe()
    provider.observe()
    keys = [made["key"] for made in cloud.made]
    assert keys == ['{"private_key": "old"}', '{"private_key": "new"}']
    file.unlink()
    with pytest.raises(ConfigError, match=r"key: .*account\.json: No such file"):
        provider.observe()


def test_credentials_that_are_no_toml_are_not_told(cloud: FakeCloud) -> None:
    cloud.credentials.write_text("swordfish")
    with pytest.raises(ConfigError, match="is not TOML") as caught:
        cloud.provider().observe()
    assert "swordfish" not in str(caught.value)


def test_bursts_are_told_of_although_vms_cannot_fetch_files(cloud: FakeCloud) -> None:
    spec = cloud.spec(1)
    cloud.provider().provision(spec)
    with socket.create_server(("127.0.0.1", cloud.port)):
        status = seen(cloud.provider())
    assert status.phase is Phase.PENDING
    assert "Address already in use" in status.why


def test_a_vm_never_made_is_asked_for_with_the_others(cloud: FakeCloud) -> None:
    provider = unanswered(cloud, "create")
    cloud.late = set()
    assert cloud.asked == []
    cloud.now += 60
    provider.provision(cloud.spec(3))
    assert len(cloud.nodes) == 3


@pytest.mark.parametrize("lacks", ["certificate", "munge_key", "user_data"])
def test_what_followers_would_lack_is_told_before_anything_is_made(
    cloud: FakeCloud, lacks: str
) -> None:
    spec, provider = cloud.spec(1), cloud.provider()
    if lacks == "certificate":
        lead = msgspec.structs.replace(spec.lead, certificate="/nowhere/burst.cert")
        spec = msgspec.structs.replace(spec, lead=lead)
    else:
        provider = cloud.provider(**{lacks: "/nowhere/file"})
    with pytest.raises(Refused, match="/nowhere"):
        provider.provision(spec)
    assert cloud.asked == []
    with pytest.raises(NotFound):
        provider.reap(spec.burst_id)
