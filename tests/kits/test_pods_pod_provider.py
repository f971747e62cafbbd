# SPDX-License-Identifier: MIT
"""A provider of pods but for its cluster, and a cluster that is new."""

from pathlib import Path
from typing import Any

import pytest

from burst.errors import NotFound, Refused
from burst.kits.pods import PodBursts, PodProvider, check_burst
from burst.kits.pods.template.storage import known_directories
from burst.model.burst import BurstId
from burst.model.shape import Shape
from burst.provider import BurstSpec, Provider
from tests.kits.kubeserver import ABSENT, Said, cluster_of
from tests.kits.pods import SETTINGS, TAGS, bursts_in, replace

NAMESPACE = "/api/v1/namespaces/jobs"
JOBS = "/apis/batch/v1/namespaces/jobs/jobs"


class OnePod(PodProvider):
    """For the cluster at an address."""

    server: Said

    def bursts(self) -> PodBursts:
        return PodBursts(cluster_of(self.server), SETTINGS, self.tags)


def test_what_is_left_to_write_is_the_way_to_the_cluster(server: Said) -> None:
    provider = OnePod("far", SETTINGS, "owner")
    assert isinstance(provider, Provider)
    (offer,) = provider.offers()
    assert (offer.name, offer.max_nodes) == ("nodes", 4)
    assert provider.directories() == known_directories(SETTINGS)
    provider.server = server
    server.serve_nothing()
    assert provider.observe() == []
    with pytest.raises(NotFound):
        provider.reap(BurstId("No Name"))
    assert provider.examine(None)


def test_only_bursts_without_a_queue_can_be_resized() -> None:
    """Kueue would stop a Job whose size changes, with the followers that stay."""
    for form in ("job", "operator"):
        settings = replace(SETTINGS, form=form)
        assert OnePod("far", settings, "owner").has("resize")
        queued = replace(settings, queue="batch")
        assert not OnePod("far", queued, "owner").has("resize")


def test_without_that_it_says_what_is_missing() -> None:
    with pytest.raises(TypeError, match="abstract method"):
        PodProvider("far", SETTINGS, "owner")  # type: ignore[abstract]


def test_in_a_cluster_of_their_own_bursts_have_their_namespace_made(
    server: Said, spec: BurstSpec
) -> None:
    server.answer("GET", NAMESPACE, ABSENT)
    server.answer("PATCH", NAMESPACE, (201, {}))
    bursts = PodBursts(cluster_of(server), SETTINGS, TAGS, own_cluster=True)
    for _ in range(2):  # what follows is answered 404, as by no API server
        with pytest.raises(Refused, match="has no such resource"):
            bursts.provision(spec)
    asked = [method for method, path, _ in server.asked if "jobs?" in path]
    assert asked.count("PATCH") == 1


DENIED = (
    403,
    {
        "kind": "Status",
        "reason": "Forbidden",
        "message": 'it is forbidden: User "u" cannot list resource "x" in API group ""'
        ' in the namespace "jobs"',
    },
)


@pytest.mark.parametrize("seen", [ABSENT, (200, {}), DENIED])
def test_a_namespace_that_was_deleted_took_its_roles_with_it(
    server: Said, spec: BurstSpec, seen: tuple[int, Any]
) -> None:
    for path in (f"{NAMESPACE}/pods", f"{NAMESPACE}/configmaps", JOBS):
        server.answer("GET", path, DENIED)
        server.answer("GET", f"{path}/{spec.burst_id}", DENIED)
        server.answer("DELETE", f"{path}/{spec.burst_id}", DENIED)
    server.answer("GET", NAMESPACE, seen)
    bursts = bursts_in(server)
    if seen is not ABSENT:
        # Whether it exists is not known, or it does.
        for call in (
            bursts.observe,
            lambda: bursts.provision(spec),
            lambda: bursts.reap(spec.burst_id),
        ):
            with pytest.raises(Refused, match=r"may not .*took its Roles with it"):
                call()
        return
    assert bursts.observe() == []
    for force in (False, True):
        with pytest.raises(NotFound, match="no namespace jobs"):
            bursts.reap(spec.burst_id, force=force)
    for make in (bursts.provision, bursts.resize):
        with pytest.raises(Refused, match="no namespace jobs; kubectl create"):
            make(spec)


def test_what_no_cluster_could_run_is_refused_before_there_is_one(
    spec: BurstSpec, tmp_path: Path
) -> None:
    check_burst(spec, SETTINGS, TAGS)
    with pytest.raises(Refused, match="fewer cores"):
        check_burst(replace(spec, shape=Shape(64)), SETTINGS, TAGS)
    absent = replace(SETTINGS, operator_yaml=str(tmp_path / "none.yaml"))
    with pytest.raises(Refused, match=r"none\.yaml"):
        check_burst(spec, absent, TAGS)
