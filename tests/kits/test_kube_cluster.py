# SPDX-License-Identifier: MIT
"""What answers of an API server mean, on loopback."""

import time
from typing import Any

import pytest

from burst.errors import (
    InsufficientCapacity,
    ProviderError,
    Refused,
    SpecRefused,
    Transient,
)
from burst.kits.kube import Cluster
from burst.kits.kube.kinds import CONFIG_MAP, JOB, MINICLUSTER, POD, SECRET, Kind
from tests.kits.kubeserver import Said

JOBS = "/apis/batch/v1/namespaces/far/jobs"
SECRETS = "/api/v1/namespaces/far/secrets"


def status(code: int, reason: str, message: str = "", **details: Any) -> Any:
    body = {"kind": "Status", "reason": reason, "message": message, "details": details}
    return code, {key: value for key, value in body.items() if value}


def page(*names: str, more: str = "") -> tuple[int, Any]:
    items = [{"metadata": {"name": name}} for name in names]
    return 200, {"metadata": {"continue": more}, "items": items}


def test_a_list_is_read_page_by_page(server: Said, cluster: Cluster) -> None:
    server.answer("GET", JOBS, page("a", "b", more="next"), page("c"))
    found = cluster.find(JOB, "far", {"x": "y"})
    assert [item["metadata"]["name"] for item in found] == ["a", "b", "c"]
    assert {(item["apiVersion"], item["kind"]) for item in found} == {
        ("batch/v1", "Job")
    }
    first, second = (path for _, path, _ in server.asked)
    assert "labelSelector=x%3Dy" in first
    assert "continue=next" in second


def test_a_list_that_fails_half_way_or_has_no_end_is_no_list(
    server: Said, cluster: Cluster
) -> None:
    server.answer("GET", JOBS, page("a", more="next"), status(410, "Expired", "old"))
    with pytest.raises(Transient, match=r"cannot list jobs.batch in namespace far now"):
        cluster.find(JOB, "far")
    server.answer("GET", JOBS, page(more="again"))
    with pytest.raises(Transient, match="too many pages"):
        cluster.find(JOB, "far")
    # An empty list may lack its items.
    server.answer("GET", JOBS, (200, {"items": None, "metadata": {}}))
    assert cluster.find(JOB, "far") == []


def test_the_clock_of_the_api_server_is_known_also_if_this_hosts_is_set(
    server: Said, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.answer("GET", "/version", (200, {}))
    for ahead in (0.0, 600.0, -600.0):
        server.ahead = ahead
        cluster.version()
        assert cluster.ahead == pytest.approx(ahead, abs=5)
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() - 600)
    assert cluster.ahead == pytest.approx(0, abs=5)


CASES: list[tuple[Kind, Any, type[ProviderError], str]] = [
    (JOB, status(429, "TooManyRequests", "slow down"), Transient, "slow down"),
    (JOB, status(500, "InternalError", "etcd"), Transient, "etcd"),
    (JOB, (503, "<html>a proxy</html>"), Transient, "status 503"),
    (JOB, (408, "<html>a proxy</html>"), Transient, "status 408"),
    (JOB, (425, "<html>a proxy</html>"), Transient, "status 425"),
    (JOB, status(409, "Conflict", "other"), Transient, "other"),
    (
        JOB,
        status(403, "Forbidden", 'jobs.batch is forbidden: User "u" cannot list'),
        Refused,
        'may not list jobs.batch in .*verb list on jobs of API group "batch"',
    ),
    (
        POD,
        status(403, "Forbidden", "pods is forbidden: exceeded quota: small"),
        InsufficientCapacity,
        "exceeded quota: small.*ResourceQuota",
    ),
    (
        POD,
        status(403, "Forbidden", "pods is forbidden: violates PodSecurity"),
        Refused,
        "forbids it: list pods.*violates PodSecurity",
    ),
    (
        POD,
        status(403, "Forbidden", "x", causes=[{"reason": "NamespaceTerminating"}]),
        Refused,
        "namespace far is being deleted",
    ),
    (
        POD,
        status(404, "NotFound", "no", name="far", kind="namespaces"),
        Refused,
        "there is no namespace far; kubectl create namespace far, and apply its Roles",
    ),
    (MINICLUSTER, status(404, "NotFound"), Refused, "CRD is not installed.*form"),
    (JOB, (404, "404 page"), Refused, "no such resource: list jobs.batch"),
    (JOB, status(404, "NotFound", name="x", kind="jobs"), Transient, "does not exist"),
    (JOB, status(422, "Invalid", "x: bad"), SpecRefused, "not accept it.*x: bad"),
    (JOB, status(413, "RequestEntityTooLarge", "limit"), SpecRefused, "too large"),
    (JOB, status(500, "", "etcdserver: request is too large"), SpecRefused, "etcd"),
    (JOB, status(500, "", "etcdserver: leader changed"), Transient, "now"),
    (JOB, status(405, "MethodNotAllowed", "no"), Refused, "check the settings"),
]


@pytest.mark.parametrize("case", CASES)
def test_what_an_answer_means(server: Said, cluster: Cluster, case: Any) -> None:
    kind, answer, error, words = case
    server.answer("GET", kind.path("far"), answer)
    with pytest.raises(error, match=words) as caught:
        cluster.find(kind, "far")
    assert error is not Refused or not issubclass(caught.type, SpecRefused)


def test_how_long_to_wait_is_taken_from_the_body_too(
    server: Said, cluster: Cluster
) -> None:
    busy = status(429, "TooManyRequests", "x", retryAfterSeconds=3)
    server.answer("GET", JOBS, busy)
    with pytest.raises(Transient) as caught:
        cluster.find(JOB, "far")
    assert caught.value.retry_after == 3


def test_a_complaint_about_a_secret_is_not_repeated(
    server: Said, cluster: Cluster
) -> None:
    said = status(422, "Invalid", 'data: Invalid value: "hush-hush"')
    server.answer("PATCH", f"{SECRETS}/key", said)
    meta = {"name": "key", "namespace": "far"}
    words = r"patch secrets key .*422 Invalid \(the message is not shown"
    with pytest.raises(Refused, match=words) as caught:
        cluster.apply({"apiVersion": "v1", "kind": "Secret", "metadata": meta})
    assert "hush" not in str(caught.value)


def test_one_object_is_there_or_not(server: Said, cluster: Cluster) -> None:
    there = 200, {"kind": "PartialObjectMetadata", "metadata": {"name": "a"}}
    server.answer("GET", f"{SECRETS}/a", there)
    found = cluster.get(SECRET, "far", "a", metadata_only=True)
    assert found == {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}
    server.answer("GET", f"{SECRETS}/b", status(404, "NotFound", name="b"))
    assert cluster.get(SECRET, "far", "b") is None
    with pytest.raises(Refused, match="has no such resource: get secrets c"):
        cluster.get(SECRET, "far", "c")


def config_map(**meta: str) -> Any:
    named = {"name": "a", "namespace": "far", **meta}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": named}


def test_what_has_a_name_that_is_taken_is_not_created(
    server: Said, cluster: Cluster
) -> None:
    path = CONFIG_MAP.path("far")
    made = {"metadata": {"name": "a", "uid": "1"}}
    taken = status(409, "AlreadyExists", "exists", name="a")
    # At a quota that somebody else changes, which is no reason to stop.
    busy = status(409, "Conflict", "Operation cannot be fulfilled on resourcequotas")
    server.answer("POST", path, (201, made), taken, busy)
    expected = {**made, "apiVersion": "v1", "kind": "ConfigMap"}
    assert cluster.create(config_map()) == expected
    assert cluster.create(config_map()) is None
    with pytest.raises(Transient, match="cannot create configmaps a in namespace far"):
        cluster.create(config_map())
    assert "fieldValidation=Strict" in server.asked[0][1]


def test_a_change_is_of_one_object_and_not_of_its_namesake(
    server: Said, cluster: Cluster
) -> None:
    there = config_map(uid="1")
    path = CONFIG_MAP.path("far", "a")
    changed = {"metadata": {"name": "a"}}
    server.answer("PATCH", path, (200, changed), status(409, "Conflict", "the UID"))
    change = {"metadata": {"annotations": {"x": "y"}}}
    assert cluster.merge(there, change) == changed
    assert server.bodies[-1] == {"metadata": {"annotations": {"x": "y"}, "uid": "1"}}
    with pytest.raises(Transient, match="the UID"):
        cluster.merge(there, change)


def test_deleting_what_is_gone_is_fine(server: Said, cluster: Cluster) -> None:
    meta = {"name": "a", "namespace": "far", "uid": "1"}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta}
    server.answer("DELETE", f"{JOBS}/a", status(404, "NotFound", name="a"))
    cluster.delete(job)
    server.answer("DELETE", f"{JOBS}/a", status(409, "Conflict", "another uid"))
    with pytest.raises(Transient, match="another uid"):
        cluster.delete(job)


def test_whether_a_kind_is_known(server: Said, cluster: Cluster) -> None:
    assert not cluster.serves(MINICLUSTER)
    listed = 200, {"resources": [{"name": "configmaps"}]}
    server.answer("GET", "/api/v1", listed)
    assert cluster.serves(CONFIG_MAP)
    assert not cluster.serves(POD)


def test_a_log_that_is_not_there_is_empty(server: Said, cluster: Cluster) -> None:
    log = POD.path("far", "a", "log")
    server.answer("GET", log, (200, "the end"))
    assert cluster.tail("far", "a", "broker") == "the end"
    assert "container=broker" in server.asked[-1][1]
    server.answer("GET", log, status(400, "BadRequest", "container is waiting"))
    assert cluster.tail("far", "a", "broker") == ""
    assert cluster.log("far", "a", "broker") == ""
    assert "container=broker" in server.asked[-1][1]


def test_events_are_asked_for_by_what_they_are_about(
    server: Said, cluster: Cluster
) -> None:
    server.answer("GET", "/api/v1/namespaces/far/events", page("e"))
    cluster.events("far", JOB)
    assert "type%3DWarning%2CinvolvedObject.kind%3DJob" in server.asked[-1][1]
    cluster.events("far", POD, reason="Pulling")
    assert "reason%3DPulling%2CinvolvedObject.kind%3DPod" in server.asked[-1][1]
    cluster.normal_events("far", POD, but=("Pulled", "Started"))
    asked = "type%3DNormal%2CinvolvedObject.kind%3DPod%2Creason%21%3DPulled%2Creason"
    assert f"{asked}%21%3DStarted" in server.asked[-1][1]


def test_after_closing_it_connects_anew(server: Said, cluster: Cluster) -> None:
    server.answer("GET", "/version", (200, {}))
    assert cluster.version() == "unknown"
    cluster.close()
    cluster.close()
    assert cluster.version() == "unknown"
    server.answer("GET", "/version", (200, "<html>please log in</html>"))
    with pytest.raises(Transient, match="not a JSON object"):
        cluster.version()
