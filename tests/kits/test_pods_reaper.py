# SPDX-License-Identifier: MIT
"""When a burst counts as deleted."""

from contextlib import nullcontext
from typing import Any

import pytest

from burst.errors import NotFound, Refused
from burst.kits.pods.lifecycle.reaper import Reaper
from burst.kits.pods.names import ALONE_SINCE
from burst.kits.pods.settings import PodForm
from burst.model.burst import BurstId
from tests.kits.kubeserver import ABSENT, Said, cluster_of
from tests.kits.pods import SETTINGS, TAGS, replace

BURST = BurstId("burst-0-aaaaaa")
CORE = "/api/v1/namespaces/jobs"
JOBS = "/apis/batch/v1/namespaces/jobs/jobs"
MINICLUSTERS = "/apis/flux-framework.org/v1alpha2/namespaces/jobs/miniclusters"
MARKER = f"{CORE}/configmaps/{BURST}"
TAKEN = 409, {"kind": "Status", "reason": "AlreadyExists"}
FORBIDDEN = 403, {"kind": "Status", "reason": "Forbidden"}


def no_right(resource: str) -> tuple[int, Any]:
    """Return the answer where RBAC grants no right to read objects of this kind."""
    who = 'User "system:serviceaccount:jobs:burst-gc"'
    said = f'{resource} is forbidden: {who} cannot get resource "{resource}"'
    return 403, {"kind": "Status", "reason": "Forbidden", "message": said}


def let_all_be_gone(server: Said, since: float) -> None:
    """Serve a MiniCluster's marker, which has been the only object for so long."""
    server.serve_nothing()
    server.serve(MINICLUSTERS)
    meta = {
        "name": BURST,
        "namespace": "jobs",
        "uid": "u",
        "labels": TAGS.labels(BURST),
    }
    marker = {"metadata": {**meta, "annotations": {ALONE_SINCE: str(since)}}}
    server.serve(f"{CORE}/configmaps", marker)
    for kind in (MINICLUSTERS, JOBS, f"{CORE}/services"):
        server.answer("GET", f"{kind}/{BURST}", ABSENT)
    server.answer("GET", MARKER, (200, marker))
    server.answer("GET", f"{MARKER}-entrypoint", ABSENT)
    server.answer("DELETE", MARKER, (200, {}))


def reaper_in(server: Said, form: PodForm = "operator") -> Reaper:
    return Reaper(cluster_of(server), replace(SETTINGS, form=form), TAGS)


def deletions(server: Said) -> list[str]:
    return [path for method, path, _ in server.asked if method == "DELETE"]


@pytest.mark.parametrize(
    ("answers", "looks"),
    [([TAKEN, TAKEN, (201, {})], 3), ([FORBIDDEN], 1)],
    ids=["it goes later", "it cannot be known"],
)
def test_a_minicluster_is_not_gone_before_its_secret(
    server: Said, answers: list[tuple[int, Any]], looks: int
) -> None:
    """All that can be listed is gone for long, but for the marker."""
    let_all_be_gone(server, since=100.0)
    server.answer("POST", f"{CORE}/secrets", *answers)
    reaper = reaper_in(server)
    for _ in range(looks):
        assert not deletions(server)
        reaper.reap(BURST, 200.0)
    assert deletions(server) == [MARKER]
    asked = [path for method, path, _ in server.asked if method == "POST"]
    assert all("dryRun=All" in path for path in asked)


def test_a_clock_that_is_set_back_keeps_no_marker(server: Said) -> None:
    """The time is noted anew, also if another host's clock is ahead."""
    let_all_be_gone(server, since=3800.0)
    server.answer("PATCH", MARKER, (200, {}))
    server.answer("POST", f"{CORE}/secrets", FORBIDDEN)
    reaper = reaper_in(server)
    reaper.reap(BURST, 200.0)
    assert not deletions(server)
    (noted,) = (body for body in server.bodies if body and "metadata" in body)
    assert noted["metadata"]["annotations"] == {ALONE_SINCE: "200.000"}
    let_all_be_gone(server, since=200.0)
    # The operator may still make objects for two seconds.
    reaper.reap(BURST, 201.9)
    assert not deletions(server)
    reaper.reap(BURST, 202.0)
    assert deletions(server) == [MARKER]


@pytest.mark.parametrize(
    ("groups", "left"),
    [
        ((200, {"groups": [{"name": "batch"}]}), False),
        # Another version of the CRD: its objects are there.
        ((200, {"groups": [{"name": "flux-framework.org"}]}), True),
        # Not an API server, such as a proxy whose backend is away.
        ((404, {}), True),
    ],
    ids=["deleted", "another version", "unknown"],
)
def test_a_burst_is_reaped_after_the_crd_was_deleted(
    server: Said, groups: tuple[int, Any], left: bool
) -> None:
    let_all_be_gone(server, since=100.0)
    for path in (MINICLUSTERS, f"{MINICLUSTERS}/{BURST}"):
        server.answer("GET", path, (404, {}))
    server.answer("GET", "/apis", groups)
    server.answer("POST", f"{CORE}/secrets", (201, {}))
    with pytest.raises(Refused) if left else nullcontext():
        reaper_in(server).reap(BURST, 200.0)
    assert deletions(server) == ([] if left else [MARKER])


def made_for(kind: str, **more: Any) -> dict[str, Any]:
    """Return an object of the burst that is owned by one of this kind."""
    owner = {"kind": kind, "name": BURST, "uid": "u"}
    meta = {"name": BURST, "namespace": "jobs", "uid": "v", "ownerReferences": [owner]}
    return {"metadata": {**meta, "labels": TAGS.labels(BURST)}, **more}


def test_a_minicluster_is_reaped_though_bursts_are_jobs_now(server: Said) -> None:
    let_all_be_gone(server, since=100.0)
    meta = {"name": BURST, "namespace": "jobs", "uid": "u"}
    made = {"metadata": {**meta, "labels": TAGS.labels(BURST)}}
    server.serve(MINICLUSTERS, made)
    server.serve(JOBS, made_for("MiniCluster"))
    server.answer("DELETE", f"{MINICLUSTERS}/{BURST}", (200, {}))
    reaper = reaper_in(server, "job")
    reaper.reap(BURST, 200.0)
    # Its operator would make the Job again.
    assert deletions(server) == [f"{MINICLUSTERS}/{BURST}"]
    for kind in (MINICLUSTERS, JOBS):
        server.serve(kind)
    server.answer("POST", f"{CORE}/secrets", (201, {}))
    reaper.reap(BURST, 200.0)
    assert deletions(server)[1:] == [MARKER]
    server.serve(f"{CORE}/configmaps")
    server.answer("GET", MARKER, ABSENT)
    with pytest.raises(NotFound):
        reaper.reap(BURST, 200.0)


def test_a_job_needs_no_right_to_read_the_marker(server: Said) -> None:
    """As of `burst gc`, where the rights for MiniClusters were removed."""
    let_all_be_gone(server, since=100.0)
    server.answer("GET", MARKER, no_right("configmaps"))
    job = made_for("")
    del job["metadata"]["ownerReferences"]
    server.serve(JOBS, job)
    server.answer("DELETE", f"{JOBS}/{BURST}", (200, {}))
    reaper = reaper_in(server, "job")
    reaper.reap(BURST, 200.0)
    assert deletions(server) == [f"{JOBS}/{BURST}"]
    assert not [path for _, path, _ in server.asked if "configmaps" in path]
    server.serve(JOBS)
    with pytest.raises(NotFound):
        reaper.reap(BURST, 200.0)


def test_the_job_of_a_minicluster_is_not_deleted_alone(server: Said) -> None:
    """Who may not read MiniClusters is told so."""
    let_all_be_gone(server, since=100.0)
    for path in (MINICLUSTERS, MARKER):
        server.answer("GET", path, no_right("miniclusters"))
    server.serve(JOBS, made_for("MiniCluster"))
    with pytest.raises(Refused, match="miniclusters"):
        reaper_in(server, "job").reap(BURST, 200.0)
    assert deletions(server) == []


def test_without_a_job_the_marker_tells_that_a_minicluster_is_left(
    server: Said,
) -> None:
    """As before the operator has made its Job."""
    let_all_be_gone(server, since=100.0)
    meta = {"name": BURST, "namespace": "jobs", "uid": "u"}
    made = {"metadata": {**meta, "labels": TAGS.labels(BURST)}}
    server.serve(MINICLUSTERS, made)
    server.answer("DELETE", f"{MINICLUSTERS}/{BURST}", (200, {}))
    reaper_in(server, "job").reap(BURST, 200.0)
    assert deletions(server) == [f"{MINICLUSTERS}/{BURST}"]


def test_a_job_is_reaped_though_bursts_are_miniclusters_now(server: Said) -> None:
    let_all_be_gone(server, since=100.0)
    job = made_for("")
    del job["metadata"]["ownerReferences"]
    server.serve(JOBS, job)
    server.serve(f"{CORE}/configmaps", made_for("Job"))
    server.answer("DELETE", f"{JOBS}/{BURST}", (200, {}))
    reaper_in(server).reap(BURST, 200.0)
    assert deletions(server) == [f"{JOBS}/{BURST}"]


@pytest.mark.parametrize("owner", ["Job", ""])
def test_for_a_job_nobody_is_asked_about_miniclusters(server: Said, owner: str) -> None:
    """Their kind need not exist. `kubectl delete --cascade=orphan` removes owners."""
    server.serve_nothing()
    config = made_for(owner, data={"broker.toml": ""})
    if not owner:
        del config["metadata"]["ownerReferences"]
    server.answer("GET", MARKER, (200, config))
    server.answer("GET", f"{JOBS}/{BURST}", ABSENT)
    with pytest.raises(NotFound):
        reaper_in(server, "job").reap(BURST, 200.0)
    assert not [path for _, path, _ in server.asked if "miniclusters" in path]
