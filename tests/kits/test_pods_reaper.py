# SPDX-License-Identifier: MIT
"""When a burst counts as deleted."""

from typing import Any

import pytest

from burst.kits.pods.lifecycle.reaper import Reaper
from burst.kits.pods.names import ALONE_SINCE
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


@pytest.mark.parametrize(
    ("answers", "looks"),
    [([TAKEN, TAKEN, (201, {})], 3), ([FORBIDDEN], 1)],
    ids=["it goes later", "it cannot be known"],
)
def test_a_minicluster_is_not_gone_before_its_secret(
    server: Said, answers: list[tuple[int, Any]], looks: int
) -> None:
    """All that can be listed is gone for long, but for the marker."""
    server.serve_nothing()
    server.serve(MINICLUSTERS)
    meta = {
        "name": BURST,
        "namespace": "jobs",
        "uid": "u",
        "labels": TAGS.labels(BURST),
    }
    marker = {"metadata": {**meta, "annotations": {ALONE_SINCE: "100"}}}
    server.serve(f"{CORE}/configmaps", marker)
    for kind in (MINICLUSTERS, JOBS, f"{CORE}/services"):
        server.answer("GET", f"{kind}/{BURST}", ABSENT)
    server.answer("GET", f"{MARKER}-entrypoint", ABSENT)
    server.answer("POST", f"{CORE}/secrets", *answers)
    server.answer("DELETE", MARKER, (200, {}))
    reaper = Reaper(cluster_of(server), replace(SETTINGS, form="operator"), TAGS)

    def deletions() -> list[str]:
        return [path for method, path, _ in server.asked if method == "DELETE"]

    for _ in range(looks):
        assert not deletions()
        reaper.reap(BURST, 200.0)
    assert deletions() == [MARKER]
    asked = [path for method, path, _ in server.asked if method == "POST"]
    assert all("dryRun=All" in path for path in asked)
