# SPDX-License-Identifier: MIT
"""What becomes of the cluster: made, found again, broken, taken down."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest
from burst_kind.provider import KindProvider

from burst.errors import (
    InsufficientCapacity,
    NotFound,
    ProviderError,
    Transient,
)
from burst.model.burst import BurstId
from burst.provider import Event, Phase
from burst.testing import isolate
from tests.plugins.kind.harness import KindHarness
from tests.support.waiting import wait_until


def begin(kind: KindHarness) -> KindProvider:
    """Return a provider that is in the middle of making its cluster."""
    kind.set("gate")
    provider = kind.provider()
    with pytest.raises(Transient, match="is being made ready"):
        provider.provision(kind.spec())
    wait_until(
        lambda: "Starting" in kind.status(provider).why, "kind to start a control plane"
    )
    return provider


def fail(kind: KindHarness, provider: KindProvider) -> ProviderError:
    """Provision until that is given up."""
    said: list[ProviderError] = []

    def failed() -> bool:
        try:
            provider.provision(kind.spec())
        except Transient:
            return False
        except ProviderError as error:
            said.append(error)
        return True

    wait_until(failed, "the provision to be given up")
    return said[0]


def cluster_of(kind: KindHarness) -> str:
    (name,) = {
        (path / "cluster").read_text()
        for path in kind.containers().values()
        if path.name.startswith("far-")
    }
    return name


def test_while_it_is_made_the_burst_waits_and_says_for_what(kind: KindHarness) -> None:
    provider = begin(kind)
    status = kind.status(provider)
    assert status.phase is Phase.PENDING
    assert status.why.endswith("is being made: Starting control-plane")
    with pytest.raises(Transient, match="Starting control-plane") as caught:
        provider.provision(kind.spec())
    assert caught.value.retry_after == 2.0


def test_an_isolated_burst_needs_no_address_of_the_lead(kind: KindHarness) -> None:
    provider = kind.provider(lead="no-such-container")
    kind.provision(provider, isolate(kind.spec()))
    with pytest.raises(ProviderError, match="no-such-container"):
        provider.provision(kind.spec(1))
    kind.reap_all(provider, kind.spec().burst_id)


def test_reaped_while_it_is_made_nothing_of_it_is_left(kind: KindHarness) -> None:
    provider = begin(kind)
    kind.reap_all(provider, kind.spec().burst_id)
    assert kind.containers() == {}
    assert list((kind.path / "run").iterdir()) == []
    assert provider.observe() == []


def test_pods_that_do_not_end_are_deleted_by_force(kind: KindHarness) -> None:
    provider, spec = kind.provider(), kind.spec()
    kind.provision(provider, spec)
    kind.pods[-1].ends_after = 1000
    provider.reap(spec.burst_id)
    assert kind.status(provider).phase is Phase.ENDING
    provider.force_reap(spec.burst_id)
    kind.reap_all(provider, spec.burst_id)
    assert kind.containers() == {}


def test_what_cannot_be_made_ends_the_burst_and_says_why(kind: KindHarness) -> None:
    kind.set("create-error", 'failed to pull image "no/such:1"')
    provider = kind.provider()
    error = fail(kind, provider)
    assert isinstance(error, InsufficientCapacity)
    assert 'ERROR: failed to create cluster: failed to pull image "no/such:1"' in str(
        error
    )
    status = kind.status(provider)
    assert status.phase is Phase.FAILED
    assert "failed to pull image" in status.why
    kind.reap_all(provider, kind.spec().burst_id)
    kind.unset("create-error")
    kind.provision(provider, kind.spec())
    assert kind.status(provider).phase is Phase.RUNNING


def test_a_cluster_of_ours_that_does_not_run_ends_its_bursts(kind: KindHarness) -> None:
    provider = kind.provider()
    for number in (0, 1):
        kind.provision(provider, kind.spec(number))
    (box,) = kind.containers().values()
    (box / "state").write_text("exited")
    for status in provider.observe():
        assert status.phase is Phase.FAILED
        assert status.why.endswith(f"its node {box.name} is exited")
    with pytest.raises(InsufficientCapacity, match="will be deleted"):
        provider.provision(kind.spec(0))
    with pytest.raises(Transient, match="end with the cluster"):
        provider.reap(kind.spec(0).burst_id)
    kind.reap_all(provider, kind.spec(1).burst_id)
    assert kind.containers() == {}
    kind.reap_all(provider, kind.spec(0).burst_id)


def test_a_cluster_of_others_that_does_not_run_is_waited_for(kind: KindHarness) -> None:
    kind.make_cluster("dev")
    provider = kind.provider(create=False, cluster="dev")
    kind.provision(provider, kind.spec())
    state = kind.containers()["dev-control-plane"] / "state"
    state.write_text("exited")
    for call in (
        lambda: provider.provision(kind.spec()),
        lambda: provider.reap(kind.spec().burst_id),
    ):
        with pytest.raises(Transient, match="docker start"):
            call()
    state.write_text("running")
    kind.reap_all(provider, kind.spec().burst_id)


def test_a_cluster_without_a_known_burst_is_seen_and_reaped(kind: KindHarness) -> None:
    kind.provision(kind.provider(), kind.spec())
    shutil.rmtree(kind.path / "run")
    kind.clouds.clear()
    provider = kind.provider()
    status = kind.status(provider)
    assert status.burst_id == cluster_of(kind)
    assert "has no burst in it" in status.why
    with pytest.raises(NotFound):
        provider.reap(BurstId("burst-9-000000"))
    assert kind.containers()
    kind.reap_all(provider, status.burst_id)
    assert kind.containers() == {}


def test_the_clusters_of_others_are_never_deleted(kind: KindHarness) -> None:
    kind.make_cluster("far")
    kind.make_cluster("far-00000000")
    before = kind.containers()
    provider = kind.provider()
    kind.provision(provider, kind.spec())
    kind.reap_all(provider, kind.spec().burst_id)
    assert kind.containers() == before
    deleted = {call for call in kind.calls() if "delete cluster" in call}
    assert all("--name=far-" in call for call in deleted)


def test_a_connection_has_its_kubeconfig_also_after_the_last_burst(
    kind: KindHarness,
) -> None:
    """It is read again if the API server rejects what is in it."""
    kind.make_cluster("far")
    provider = kind.provider(create=False)
    kind.provision(provider, kind.spec())
    kind.reap_all(provider, kind.spec().burst_id)
    assert not list(kind.path.glob("run/*/kubeconfig"))
    kind.provision(provider, kind.spec(1))
    assert list(kind.path.glob("run/*/kubeconfig"))


def test_new_settings_do_not_touch_a_cluster_with_bursts(kind: KindHarness) -> None:
    kind.provision(kind.provider(), kind.spec())
    before = cluster_of(kind), kind.containers()
    changed = kind.provider(images=("other.tar",), config="/other.yaml")
    changed.provision(kind.spec(1))
    assert (cluster_of(kind), kind.containers()) == before


def test_after_a_deletion_cut_short_the_cluster_is_made_anew(kind: KindHarness) -> None:
    kind.provision(kind.provider(), kind.spec())
    (log,) = (kind.path / "run").rglob("log")
    log.write_text("delete 1\nDeleting cluster ...\n")
    before = kind.containers()["".join(kind.containers())] / "id"
    identity = before.read_text()
    provider = kind.provider()
    assert kind.status(provider).why.endswith("is not complete yet")
    kind.provision(provider, kind.spec())
    assert kind.status(provider).phase is Phase.RUNNING
    assert before.read_text() != identity


def test_the_cluster_is_made_as_the_settings_say(kind: KindHarness) -> None:
    manifest = kind.path / "namespace.yaml"
    manifest.write_text("kind: Namespace\n")
    (kind.path / "flux.tar").touch()
    (kind.world / "images").mkdir()
    (kind.world / "images/flux:1").touch()
    images = (f"{kind.path}/flux.tar", "flux:1")
    own = kind.path / "kind.yaml"
    roles = ("control-plane", "worker", "worker")
    own.write_bytes(msgspec.json.encode({"nodes": [{"role": r} for r in roles]}))
    provider = kind.provider(config=str(own), images=images, manifests=(str(manifest),))
    kind.provision(provider, kind.spec())
    boxes = kind.containers()
    assert [(box / "role").read_text() for box in boxes.values()] == [
        *("control-plane", "worker", "worker")
    ]
    for box in boxes.values():
        assert (box / "root/images").read_text().split() == list(images)
    plane = next(box for name, box in boxes.items() if name.endswith("control-plane"))
    assert (plane / "root/applied").read_text() == "kind: Namespace\n"
    (create,) = (call for call in kind.calls() if "create cluster" in call)
    assert f"--config={own}" in create
    (kubeconfig,) = (kind.path / "run").rglob("kubeconfig")
    assert kubeconfig.stat().st_mode & 0o077 == 0


def test_a_namespaces_file_that_is_not_there_is_a_failure(kind: KindHarness) -> None:
    error = fail(kind, kind.provider(manifests=("/no/such.yaml",)))
    assert "/no/such.yaml" in str(error)


def test_images_that_others_cluster_lacks_end_the_burst(kind: KindHarness) -> None:
    kind.make_cluster("dev")
    provider = kind.provider(create=False, cluster="dev", images=("/no/such.tar",))
    error = fail(kind, provider)
    assert "stat /no/such.tar" in str(error)
    kind.reap_all(provider, kind.spec().burst_id)
    assert list(kind.containers()) == ["dev-control-plane"]
    assert not Path(kind.path / "run").exists() or not list(
        (kind.path / "run").iterdir()
    )


def test_where_nothing_can_be_written_pods_are_deleted_too(kind: KindHarness) -> None:
    kind.make_cluster("dev")
    provider, spec = kind.provider(create=False, cluster="dev"), kind.spec()
    kind.provision(provider, spec)
    (home,) = (kind.path / "run").iterdir()
    in_the_way = home / f"{spec.burst_id}.claim"
    in_the_way.unlink()
    in_the_way.mkdir()
    with pytest.raises(Transient, match="Is a directory"):
        provider.provision(spec)
    assert [status.burst_id for status in provider.observe()] == [spec.burst_id]
    provider.reap(spec.burst_id)
    assert kind.count(spec.burst_id) == 0
    in_the_way.rmdir()
    kind.reap_all(provider, spec.burst_id)


def test_events_of_a_burst_go_to_a_cluster_that_was_reached(kind: KindHarness) -> None:
    provider, spec = kind.provider(), kind.spec()
    event = Event(0.0, "online")
    with pytest.raises(NotFound, match="was not reached yet"):
        provider.record_event(spec.burst_id, event, "it is online")
    kind.provision(provider, spec)
    provider.record_event(spec.burst_id, event, "it is online")
    assert kind.pods[-1].told == (f"{spec.burst_id} online it is online",)
