# SPDX-License-Identifier: MIT
"""Making a burst while GKE is slow, fails, lies, or has something of that name."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from google.cloud.container_v1.types import Cluster, NodePool
from google.rpc.code_pb2 import Code

from burst.errors import InsufficientCapacity, NotFound, Refused, Transient
from burst.kits import certificate
from burst.model.shape import Shape
from burst.provider import Event, Failure, Phase, Program
from tests.plugins.gke.build import POOL, World, orders
from tests.plugins.gke.gke import EXHAUSTED, STOCKOUT, Denied, Fate

CREATE = "create_cluster", "create_node_pool"


def test_while_it_is_made_it_is_listed_with_why_and_ordered_once(form: World) -> None:
    form.gke.fates = [Fate(looks=8)]
    with pytest.raises(Transient) as caught:
        form.provider.provision(form.spec)
    assert caught.value.retry_after
    status = form.status()
    assert status.phase is Phase.PENDING
    assert status.why == f"{form.name} is PROVISIONING"
    assert "PROVISIONING" in form.provision()
    assert orders(form) == 1
    status = form.status()
    assert (status.phase, len(status.followers)) == (Phase.RUNNING, 2)


def test_what_does_not_show_yet_is_kept_and_not_ordered_again(form: World) -> None:
    form.gke.fates = [Fate(looks=100, remains="")]
    with pytest.raises(Transient):
        form.provider.provision(form.spec)
    with pytest.raises(Transient, match="GKE has not ended create_"):
        form.provider.provision(form.spec)
    assert orders(form) == 1
    with pytest.raises(Transient, match="has not ended create_"):
        form.provider.reap(form.spec.burst_id)


def test_a_success_that_is_none_is_not_believed(form: World) -> None:
    form.gke.fates = [Fate(remains="")]
    with pytest.raises(
        AssertionError, match=r"GKE reports create_.* as done, and does not list it"
    ):
        form.provision(5)
    assert orders(form) == 1


@pytest.mark.parametrize(
    ("code", "message", "kind"),
    [
        (EXHAUSTED, STOCKOUT[1], InsufficientCapacity),
        (int(Code.INTERNAL), "Internal error", InsufficientCapacity),
        (int(Code.PERMISSION_DENIED), "may not act as x", Refused),
    ],
)
def test_failed_and_gone_it_is_not_ordered_again(
    form: World, code: int, message: str, kind: type[Exception]
) -> None:
    form.gke.fates = [Fate(error=(code, message), remains="")]
    for _ in range(2):
        with pytest.raises(kind, match=re.escape(message)) as caught:
            form.provision()
        assert caught.type is kind
    assert orders(form) == 1


@pytest.mark.parametrize("remains", ["ERROR", "DEGRADED", "RUNNING_WITH_ERROR"])
def test_what_comes_out_broken_has_failed_with_why(world: World, remains: str) -> None:
    table = POOL if remains == "RUNNING_WITH_ERROR" else {}
    world.gke.add_cluster("shared")
    world.make(**table)
    world.gke.fates = [Fate(remains=remains, conditions=[("UNKNOWN", "it broke")])]
    world.provision()
    status = world.status()
    assert (status.phase, status.failure) == (Phase.FAILED, Failure.OTHER)
    assert status.why == f"{world.name} is {remains}: it broke"
    assert world.kubernetes.count(world.spec.burst_id) == 0


def test_a_cluster_that_runs_without_its_nodes_has_failed(world: World) -> None:
    world.gke.stalled = True
    world.provision()
    pool: Any = world.gke.clusters[world.name].node_pools[0]
    pool.status = NodePool.Status.RUNNING_WITH_ERROR
    pool.status_message = "quota CPUS exceeded"
    status = world.status()
    assert (status.phase, status.failure) == (Phase.FAILED, Failure.CAPACITY)


def test_what_is_impaired_later_ends_no_pods_that_run(form: World) -> None:
    """An upgrade of a node failed, say: an isolated burst runs on, with its result."""
    program = Program(kind="interactive")
    form.spec = msgspec.structs.replace(form.spec, program=program)
    form.provision()
    *_, pool = form.gke.things().values()
    pool.status = NodePool.Status.RUNNING_WITH_ERROR
    pool.status_message = "the upgrade failed"
    status = form.status()
    assert status.phase is Phase.RUNNING
    assert status.instance is not None
    assert status.instance.online
    assert status.why == f"{form.name} is RUNNING_WITH_ERROR: the upgrade failed"


@pytest.mark.parametrize(
    ("status", "phase"),
    [
        (Cluster.Status.DEGRADED, Phase.PENDING),
        (Cluster.Status.ERROR, Phase.FAILED),
    ],
)
def test_what_is_impaired_and_does_not_answer_is_not_lost(
    world: World, status: Cluster.Status, phase: Phase
) -> None:
    world.provision()
    cluster: Any = world.gke.clusters[world.name]
    cluster.status = status
    cluster.status_message = "the control plane is down"
    world.kubernetes.trouble = Transient("no API server")
    found = world.status()
    assert found.phase is phase
    told = f"{world.name} is {status.name}: the control plane is down"
    assert found.why == told + ("; no API server" if phase is Phase.PENDING else "")
    world.kubernetes.trouble = None
    assert world.status().phase is Phase.RUNNING


def test_it_has_its_pods_once_its_cluster_answers_again(world: World) -> None:
    """The control plane broke down before they were made."""
    world.kubernetes.trouble = Transient("no API server")
    with pytest.raises(AssertionError, match="no API server"):
        world.provision()
    cluster: Any = world.gke.clusters[world.name]
    cluster.status = Cluster.Status.DEGRADED
    with pytest.raises(Transient, match="no API server"):
        world.provider.provision(world.spec)
    world.kubernetes.trouble = None
    cluster.status = Cluster.Status.RUNNING
    world.provision()
    assert world.status().phase is Phase.RUNNING


def test_deleted_by_others_while_it_is_made_it_is_not_made_again(form: World) -> None:
    form.provision()
    form.reap()
    with pytest.raises(InsufficientCapacity, match="was deleted"):
        form.provider.provision(form.spec)
    assert orders(form) == 1


@pytest.mark.parametrize("labels", [{}, {"burst-id": "other"}])
def test_what_others_named_so_is_refused(form: World, labels: dict[str, str]) -> None:
    _put(form, labels)
    before = form.gke.things().keys()
    with pytest.raises(Refused, match=f"{form.name} .*not ours"):
        form.provider.provision(form.spec)
    assert form.provider.observe() == []
    assert form.reap() == []
    assert form.gke.things().keys() == before
    assert form.gke.calls["delete_cluster"] == form.gke.calls["delete_node_pool"] == 0


def test_our_own_thing_is_adopted_only_if_it_is_of_this_spec(form: World) -> None:
    form.provision()
    other = msgspec.structs.replace(form.spec, hosts=("burst-0-0", "burst-0-2"))
    other = msgspec.structs.replace(other, ranks=(1, 3))
    with pytest.raises(Refused, match="other hosts"):
        form.provider.provision(other)
    form.provision()


def test_made_by_another_between_two_calls_it_is_looked_at_first(form: World) -> None:
    form.gke.denials = {name: [Denied("ALREADY_EXISTS", "there is")] for name in CREATE}
    with pytest.raises(Transient, match="there is"):
        form.provider.provision(form.spec)


def test_what_pods_could_not_use_is_not_paid_for(form: World) -> None:
    big = msgspec.structs.replace(form.spec, shape=Shape(64))
    homeless = msgspec.structs.replace(
        form.spec, lead=msgspec.structs.replace(form.spec.lead, endpoint="")
    )
    for wrong in (big, homeless):
        with pytest.raises(Refused):
            form.provider.provision(wrong)
    assert orders(form) == 0


def test_a_list_with_holes_is_no_list(form: World) -> None:
    form.provision()
    form.gke.missing_zones = ["us-central1-a"]
    for call in (form.provider.observe, form.reap):
        with pytest.raises((Transient, AssertionError), match="us-central1-a"):
            call()
    assert form.gke.things()


@pytest.mark.parametrize(
    ("status", "kind", "says"),
    [
        ("STOPPING", Refused, "cannot be used"),
        (None, Refused, "cannot be used"),
        ("PROVISIONING", Transient, "cannot be used yet"),
    ],
)
def test_a_shared_cluster_that_does_not_run_is_not_used(
    world: World, status: str | None, kind: type[Exception], says: str
) -> None:
    if status:
        world.gke.add_cluster("shared", status)
    world.make(**POOL)
    with pytest.raises(kind, match=f"cluster shared .*{says}"):
        world.provider.provision(world.spec)


def test_a_pool_that_is_named_has_to_be_there(world: World) -> None:
    world.share("default-pool", pool="burstable")
    with pytest.raises(Refused, match="no node pool burstable; it has default-pool"):
        world.provider.provision(world.spec)


@pytest.mark.parametrize("status", ["RUNNING", "RUNNING_WITH_ERROR"])
def test_in_a_named_pool_nothing_is_made_but_pods(named: World, status: str) -> None:
    (pool,) = named.gke.clusters["shared"].node_pools
    pool.status = getattr(NodePool.Status, status)
    assert named.provision() == ""
    assert orders(named) == 0
    found = named.kubernetes.bursts[named.spec.burst_id].settings
    chosen = {"cloud.google.com/gke-nodepool": "burstable"}
    assert found.pod["spec"]["nodeSelector"] == chosen
    named.reap()
    assert named.gke.calls["delete_cluster"] == named.gke.calls["delete_node_pool"] == 0
    assert named.kubernetes.count(named.spec.burst_id) == 0


def test_pods_end_when_google_ends_their_nodes(form: World) -> None:
    form.make(**form.table, max_run_duration="2h")
    form.provision()
    entry = next(iter(form.kubernetes.bursts.values()))
    assert entry.spec.lease_end == form.clock.now + 7200


def test_no_order_has_the_secret(form: World) -> None:
    form.provision()
    secret = certificate.read(Path(form.spec.lead.certificate)).secret.decode()
    assert orders(form)
    assert secret not in str(form.gke.orders)


def _put(world: World, labels: dict[str, str]) -> None:
    """Have a thing of the burst's name that is not the burst's."""
    if "shared" in world.gke.clusters:
        pool = NodePool(name=world.name, status=NodePool.Status.RUNNING)
        pool.config.resource_labels = labels
        world.gke.clusters["shared"].node_pools.append(pool)
    else:
        world.gke.add_cluster(world.name, resource_labels=labels)


def test_events_of_a_burst_go_to_a_cluster_that_is_reached(form: World) -> None:
    """Google is not asked for that, and what is gone is left out."""
    burst, event = form.spec.burst_id, Event(0.0, "online")
    with pytest.raises(NotFound):
        form.provider.record_event(burst, event, "it is online")
    form.provision()
    calls = form.gke.calls.copy()
    form.provider.record_event(burst, event, "it is online")
    assert form.kubernetes.told == [f"{burst} online it is online"]
    assert form.gke.calls == calls
    form.reap()
    form.provider.observe()
    with pytest.raises(NotFound):
        form.provider.record_event(burst, Event(1.0, "reaped"), "nothing is left")


def test_nodes_that_a_pool_begins_with_cost_before_there_are_pods(form: World) -> None:
    with contextlib.suppress(Transient):
        form.provider.provision(form.spec)
    assert form.status().has_nodes
