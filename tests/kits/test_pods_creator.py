# SPDX-License-Identifier: MIT
"""In which order a burst's objects are made, and what each of them is owned by."""

from typing import Any

import pytest

from burst.errors import Refused, Transient
from burst.kits.pods.names import KUEUE_QUEUE, SPEC, STARTED, spec_hash
from burst.provider import BurstSpec
from tests.kits.kubeserver import ABSENT, Said
from tests.kits.pods import TAGS, bursts_in, replace

CORE = "/api/v1/namespaces/jobs"
JOBS = "/apis/batch/v1/namespaces/jobs/jobs"
NOW = 1000.0


class Site:
    """An API server, and bursts in it of a provider."""

    def __init__(self, server: Said, spec: BurstSpec) -> None:
        self.server = server
        self.spec = replace(spec, lease_end=NOW + 60)
        self.bursts = bursts_in(server, lambda: NOW)
        for path in (JOBS, f"{CORE}/configmaps"):
            self.absent(path)
        self.job = {"metadata": self.metadata("7")}
        server.answer("POST", JOBS, (201, self.job))
        for kind in ("configmaps", "secrets"):
            server.answer("POST", f"{CORE}/{kind}", (201, {"metadata": {}}))
        server.answer("PATCH", f"{JOBS}/{spec.burst_id}", (200, {}))

    def metadata(self, uid: str, *, owner: str = "", **labels: str) -> Any:
        noted = {SPEC: spec_hash(self.spec)}
        meta = {
            "name": self.spec.burst_id,
            "namespace": "jobs",
            "uid": uid,
            "labels": {**TAGS.labels(self.spec.burst_id), **labels},
            "annotations": noted,
        }
        return {**meta, "ownerReferences": [{"uid": owner}]} if owner else meta

    def absent(self, path: str) -> None:
        self.server.answer("GET", f"{path}/{self.spec.burst_id}", ABSENT)

    def exists(self, path: str, metadata: Any) -> None:
        found = 200, {"metadata": metadata}
        self.server.answer("GET", f"{path}/{self.spec.burst_id}", found)

    def provision(self) -> list[tuple[str, str, Any]]:
        """Return what was changed: method, kind, body."""
        self.bursts.provision(self.spec)
        return self.changes()

    def changes(self) -> list[tuple[str, str, Any]]:
        asked = zip(self.server.asked, self.server.bodies, strict=True)
        return [
            (method, path.partition("?")[0].split("/")[-1], body)
            for (method, path, _), body in asked
            if method != "GET"
        ]


TAKEN = 409, {"kind": "Status", "reason": "AlreadyExists"}


@pytest.fixture
def site(server: Said, spec: BurstSpec) -> Site:
    return Site(server, spec)


def test_the_job_is_first_owns_the_rest_and_is_started_last(site: Site) -> None:
    changes = site.provision()
    name = site.spec.burst_id
    assert [(method, what) for method, what, _ in changes] == [
        ("POST", "jobs"),
        ("POST", "configmaps"),
        ("POST", "secrets"),
        ("PATCH", name),
    ]
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": "7"}
    for _, _, body in changes[1:3]:
        references = body["metadata"]["ownerReferences"]
        assert references == [{**owner, "blockOwnerDeletion": True}]
    assert changes[0][2]["spec"]["suspend"] is True
    assert changes[3][2] == {
        "metadata": {"annotations": {STARTED: "true"}, "uid": "7"},
        "spec": {"activeDeadlineSeconds": 61, "suspend": False},
    }


def test_what_a_crash_left_out_is_made_and_what_is_there_is_not_touched(
    site: Site,
) -> None:
    site.exists(JOBS, site.metadata("7"))
    site.exists(f"{CORE}/configmaps", site.metadata("8", owner="7"))
    for kind in ("configmaps", "secrets"):
        site.server.answer("POST", f"{CORE}/{kind}", TAKEN)
    changed = [what for _, what, _ in site.provision()]
    assert changed == ["configmaps", "secrets", site.spec.burst_id]


def test_a_job_that_was_started_is_left_alone(site: Site) -> None:
    """Also one that was suspended again, such as by Kueue or by a person."""
    meta = site.metadata("7")
    meta["annotations"][STARTED] = "true"
    site.exists(JOBS, meta)
    assert site.provision() == []


def test_a_job_in_a_queue_of_kueue_is_started_by_kueue(site: Site) -> None:
    queued = {"metadata": site.metadata("7", **{KUEUE_QUEUE: "batch"})}
    site.server.answer("POST", JOBS, (201, queued))
    *_, (_, _, start) = site.provision()
    assert start["metadata"]["annotations"] == {STARTED: "true"}
    assert "suspend" not in start["spec"]


def test_two_that_make_it_at_once_make_one(site: Site) -> None:
    site.server.answer("POST", JOBS, TAKEN)
    with pytest.raises(Transient, match="was made meanwhile"):
        site.provision()
    assert [what for _, what, _ in site.changes()] == ["jobs"]


@pytest.mark.parametrize("gone", [False, True])
def test_what_a_burst_before_left_is_waited_for(site: Site, gone: bool) -> None:
    """Its Job was deleted in the background, and Kubernetes deletes the rest soon.

    What is gone before it can be looked at is made by the next call.
    """
    if not gone:
        site.exists(JOBS, site.metadata("7"))
        site.exists(f"{CORE}/configmaps", site.metadata("8", owner="6"))
    site.server.answer("POST", f"{CORE}/configmaps", TAKEN)
    with pytest.raises(Transient, match="still exists, from a burst that was"):
        site.provision()


def test_a_name_that_another_has_is_not_used(site: Site) -> None:
    theirs = site.metadata("8")
    theirs["labels"] = {}
    site.exists(f"{CORE}/configmaps", theirs)
    with pytest.raises(Refused, match="exists and is not ours"):
        site.provision()
    assert site.changes() == []
