# SPDX-License-Identifier: MIT
"""What becomes of the cluster: made, found again, broken, taken down."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from burst_kind import KindProvider

from burst.errors import (
    InsufficientCapacity,
    NotFound,
    ProviderError,
    Refused,
    Transient,
)
from burst.model.burst import BurstId
from burst.provider import Phase
from burst.testing import isolate
from tests.plugins.kind.harness import Desk
from tests.support.fluxlead import wait_until


def begin(desk: Desk) -> KindProvider:
    """Return a provider that is in the middle of making its cluster."""
    desk.set("gate")
    provider = desk.provider()
    with pytest.raises(Transient, match="is being made ready"):
        provider.provision(desk.spec())
    wait_until(
        lambda: "Starting" in desk.status(provider).why, "kind to start a control plane"
    )
    return provider


def fail(desk: Desk, provider: KindProvider) -> ProviderError:
    """Provision until that is given up."""
    said: list[ProviderError] = []

    def failed() -> bool:
        try:
            provider.provision(desk.spec())
        except Transient:
            return False
        except ProviderError as error:
            said.append(error)
        return True

    wait_until(failed, "the provision to be given up")
    return said[0]


def cluster_of(desk: Desk) -> str:
    (name,) = {
        (path / "cluster").read_text()
        for path in desk.containers().values()
        if path.name.startswith("far-")
    }
    return name


def test_while_it_is_made_the_burst_waits_and_says_for_what(desk: Desk) -> None:
    provider = begin(desk)
    status = desk.status(provider)
    assert status.phase is Phase.PENDING
    assert [follower.host for follower in status.followers] == list(desk.spec().hosts)
    assert status.why.endswith("is being made: Starting control-plane")
    with pytest.raises(Transient, match="Starting control-plane") as caught:
        provider.provision(desk.spec())
    assert caught.value.retry_after == 2.0


def test_an_isolated_burst_needs_no_address_of_the_lead(desk: Desk) -> None:
    provider = desk.provider(lead="no-such-container")
    desk.provision(provider, isolate(desk.spec()))
    with pytest.raises(ProviderError, match="no-such-container"):
        provider.provision(desk.spec(1))
    desk.reap_all(provider, desk.spec().burst_id)


def test_another_process_finds_it_being_made_and_goes_on(desk: Desk) -> None:
    begin(desk)
    later = desk.provider()
    assert "is being made" in desk.status(later).why
    desk.unset("gate")
    desk.provision(later, desk.spec())
    assert desk.status(later).phase is Phase.RUNNING
    assert sum("create cluster" in call for call in desk.calls()) == 1


def test_reaped_while_it_is_made_nothing_of_it_is_left(desk: Desk) -> None:
    provider = begin(desk)
    desk.reap_all(provider, desk.spec().burst_id)
    assert desk.containers() == {}
    assert list((desk.path / "run").iterdir()) == []
    assert provider.observe() == []


def test_what_cannot_be_made_ends_the_burst_and_says_why(desk: Desk) -> None:
    desk.set("create-error", 'failed to pull image "no/such:1"')
    provider = desk.provider()
    error = fail(desk, provider)
    assert isinstance(error, InsufficientCapacity)
    assert 'ERROR: failed to create cluster: failed to pull image "no/such:1"' in str(
        error
    )
    status = desk.status(provider)
    assert status.phase is Phase.FAILED
    assert "failed to pull image" in status.why
    desk.reap_all(provider, desk.spec().burst_id)
    desk.unset("create-error")
    desk.provision(provider, desk.spec())
    assert desk.status(provider).phase is Phase.RUNNING


def test_a_cluster_of_ours_that_does_not_run_ends_its_bursts(desk: Desk) -> None:
    provider = desk.provider()
    for number in (0, 1):
        desk.provision(provider, desk.spec(number))
    (box,) = desk.containers().values()
    (box / "state").write_text("exited")
    for status in provider.observe():
        assert status.phase is Phase.FAILED
        assert status.why.endswith(f"its node {box.name} is exited")
    with pytest.raises(InsufficientCapacity, match="will be deleted"):
        provider.provision(desk.spec(0))
    with pytest.raises(Transient, match="end with the cluster"):
        provider.reap(desk.spec(0).burst_id)
    desk.reap_all(provider, desk.spec(1).burst_id)
    assert desk.containers() == {}
    desk.reap_all(provider, desk.spec(0).burst_id)


def test_a_cluster_of_others_that_does_not_run_is_waited_for(desk: Desk) -> None:
    desk.make_cluster("dev")
    provider = desk.provider(create=False, cluster="dev")
    desk.provision(provider, desk.spec())
    state = desk.containers()["dev-control-plane"] / "state"
    state.write_text("exited")
    for call in (
        lambda: provider.provision(desk.spec()),
        lambda: provider.reap(desk.spec().burst_id),
    ):
        with pytest.raises(Transient, match="docker start"):
            call()
    state.write_text("running")
    desk.reap_all(provider, desk.spec().burst_id)


def test_a_cluster_that_no_burst_is_known_for_is_seen_and_reaped(desk: Desk) -> None:
    desk.provision(desk.provider(), desk.spec())
    shutil.rmtree(desk.path / "run")
    desk.clouds.clear()
    provider = desk.provider()
    status = desk.status(provider)
    assert status.burst_id == cluster_of(desk)
    assert "has no burst in it" in status.why
    with pytest.raises(NotFound):
        provider.reap(BurstId("burst-9-000000"))
    assert desk.containers()
    desk.reap_all(provider, status.burst_id)
    assert desk.containers() == {}


def test_bursts_outlive_the_directory(desk: Desk) -> None:
    desk.provision(desk.provider(), desk.spec())
    shutil.rmtree(desk.path / "run")
    provider = desk.provider()
    assert desk.status(provider).phase is Phase.RUNNING
    desk.reap_all(provider, desk.spec().burst_id)
    assert desk.containers() == {}


def test_a_damaged_claim_is_of_a_burst_all_the_same(desk: Desk) -> None:
    provider = begin(desk)
    (claim,) = (desk.path / "run").rglob("*.claim")
    claim.write_text("{")
    assert desk.status(provider).burst_id == desk.spec().burst_id
    desk.reap_all(provider, desk.spec().burst_id)
    assert desk.containers() == {}


def test_the_clusters_of_others_are_never_deleted(desk: Desk) -> None:
    desk.make_cluster("far")
    desk.make_cluster("far-00000000")
    before = desk.containers()
    provider = desk.provider()
    desk.provision(provider, desk.spec())
    desk.reap_all(provider, desk.spec().burst_id)
    assert desk.containers() == before
    deleted = {call for call in desk.calls() if "delete cluster" in call}
    assert all("--name=far-" in call for call in deleted)


def test_new_settings_do_not_touch_a_cluster_with_bursts(desk: Desk) -> None:
    desk.provision(desk.provider(), desk.spec())
    before = cluster_of(desk), desk.containers()
    changed = desk.provider(images=("other.tar",), nodes=3, node_image="other")
    changed.provision(desk.spec(1))
    assert (cluster_of(desk), desk.containers()) == before


def test_docker_that_fails_is_not_taken_for_a_cluster_half_made(desk: Desk) -> None:
    desk.provision(desk.provider(), desk.spec())
    desk.set("docker-error", "Error response from daemon: no")
    fresh = desk.provider()
    with pytest.raises(Transient, match="Error response"):
        fresh.provision(desk.spec())
    desk.unset("docker-error")
    assert desk.status(fresh).phase is Phase.RUNNING


def test_a_deletion_that_was_cut_short_leaves_no_cluster_to_burst_into(
    desk: Desk,
) -> None:
    desk.provision(desk.provider(), desk.spec())
    (log,) = (desk.path / "run").rglob("log")
    log.write_text("delete 1\nDeleting cluster ...\n")
    before = desk.containers()["".join(desk.containers())] / "id"
    identity = before.read_text()
    provider = desk.provider()
    assert desk.status(provider).why.endswith(
        "is not complete, and no command is at work on it"
    )
    desk.provision(provider, desk.spec())
    assert desk.status(provider).phase is Phase.RUNNING
    assert before.read_text() != identity


def test_the_cluster_is_made_as_the_settings_say(desk: Desk) -> None:
    manifest = desk.path / "namespace.yaml"
    manifest.write_text("kind: Namespace\n")
    (desk.path / "flux.tar").touch()
    (desk.world / "images").mkdir()
    (desk.world / "images/flux:1").touch()
    images = (f"{desk.path}/flux.tar", "flux:1")
    provider = desk.provider(
        nodes=2, node_image="node:1", images=images, manifests=(str(manifest),)
    )
    desk.provision(provider, desk.spec())
    boxes = desk.containers()
    assert [(box / "role").read_text() for box in boxes.values()] == [
        *("control-plane", "worker", "worker"),
    ]
    for box in boxes.values():
        assert (box / "root/images").read_text().split() == list(images)
    plane = next(box for name, box in boxes.items() if name.endswith("control-plane"))
    assert (plane / "root/applied").read_text() == "kind: Namespace\n"
    (config,) = (desk.path / "run").rglob("cluster.json")
    assert json.loads(config.read_text())["networking"] == {
        "podSubnet": "10.245.0.0/16",
        "serviceSubnet": "10.97.0.0/16",
    }
    (create,) = (call for call in desk.calls() if "create cluster" in call)
    assert "--image=node:1" in create
    (kubeconfig,) = (desk.path / "run").rglob("kubeconfig")
    assert kubeconfig.stat().st_mode & 0o077 == 0


def test_a_namespaces_file_that_is_not_there_is_a_failure(desk: Desk) -> None:
    error = fail(desk, desk.provider(manifests=("/no/such.yaml",)))
    assert "/no/such.yaml" in str(error)


def test_images_that_others_cluster_did_not_get_end_the_burst(desk: Desk) -> None:
    desk.make_cluster("dev")
    provider = desk.provider(create=False, cluster="dev", images=("/no/such.tar",))
    error = fail(desk, provider)
    assert "stat /no/such.tar" in str(error)
    desk.reap_all(provider, desk.spec().burst_id)
    assert list(desk.containers()) == ["dev-control-plane"]
    assert not Path(desk.path / "run").exists() or not list(
        (desk.path / "run").iterdir()
    )


def test_inside_docker_the_inner_address_is_taken(desk: Desk) -> None:
    provider = desk.provider(internal=True)
    desk.provision(provider, desk.spec())
    (export,) = (call for call in desk.calls() if "export kubeconfig" in call)
    assert "--internal" in export


def test_the_cluster_is_reached_by_its_kubeconfig(desk: Desk) -> None:
    desk.provision(desk.provider(), desk.spec())
    # The stand-in's is none that Kubernetes would know.
    provider = KindProvider(
        "far", desk.settings, desk.owner, environment=desk.environment
    )
    with pytest.raises(Refused, match=r"/kubeconfig: cannot be used"):
        provider.observe()


def test_where_nothing_can_be_written_pods_are_deleted_all_the_same(
    desk: Desk,
) -> None:
    desk.make_cluster("dev")
    provider, spec = desk.provider(create=False, cluster="dev"), desk.spec()
    desk.provision(provider, spec)
    (home,) = (desk.path / "run").iterdir()
    in_the_way = home / f"{spec.burst_id}.claim"
    in_the_way.unlink()
    in_the_way.mkdir()
    with pytest.raises(Transient, match="Is a directory"):
        provider.provision(spec)
    assert [status.burst_id for status in provider.observe()] == [spec.burst_id]
    provider.reap(spec.burst_id)
    assert desk.count(spec.burst_id) == 0
    in_the_way.rmdir()
    desk.reap_all(provider, spec.burst_id)
