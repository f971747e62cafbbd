# SPDX-License-Identifier: MIT
"""What is found before anything is made, by an API server on loopback."""

import os
from pathlib import Path
from typing import Any

import pytest

from burst.kits.pods import OfferTable, PodBursts
from burst.kits.pods.diagnose.examine import needed_rights
from burst.kits.pods.names import ID, OWNER, PROVIDER
from burst.model.finding import Finding, Level
from burst.model.lead import LeadIdentity
from burst.testing import example_lead
from tests.kits.kubeserver import ABSENT, Said, api_server, cluster_of
from tests.kits.pods import SETTINGS, TAGS, bursts_in, replace

REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
JOBS = "/apis/batch/v1/namespaces/jobs/jobs"
NAMESPACE = "/api/v1/namespaces/jobs"
PODS = "/api/v1/namespaces/jobs/pods"
MINICLUSTERS = "/apis/flux-framework.org/v1alpha2/namespaces/jobs/miniclusters"
KIND = "/apis/flux-framework.org/v1alpha2"
DEPLOYMENT = (
    "/apis/apps/v1/namespaces/operator-system/deployments/operator-controller-manager"
)


ALLOWED = 201, {"status": {"allowed": True}}
DENIED = 201, {"status": {"allowed": False}}


@pytest.fixture
def server(server: Said) -> Said:
    server.answer("GET", "/version", (200, {"gitVersion": "v1.34.4"}))
    server.answer("POST", REVIEWS, ALLOWED)
    server.answer("GET", KIND, (200, {"resources": [{"name": "miniclusters"}]}))
    for path in (JOBS, PODS, MINICLUSTERS):
        server.answer("POST", path, (201, {"metadata": {}}))
    server.serve(JOBS)
    return server


@pytest.fixture
def lead(tmp_path: Path) -> LeadIdentity:
    return example_lead(tmp_path, endpoint="tcp://192.0.2.7:30093")


def examine(
    server: Said, lead: LeadIdentity | None = None, **changes: Any
) -> dict[Level, list[str]]:
    found: dict[Level, list[str]] = {level: [] for level in Level}
    for finding in bursts_in(server, **changes).examine(lead):
        assert isinstance(finding, Finding)
        found[finding.level].append(f"{finding.what}; {finding.advice}")
    return found


def test_a_lead_that_needs_systemd_on_its_followers_is_refused(
    server: Said, lead: LeadIdentity
) -> None:
    found = examine(server, replace(lead, systemd=True))
    [said] = [each for each in found[Level.WRONG] if "[systemd]" in each]
    assert "a pod has no systemd" in said
    assert "set [systemd] enable = false" in said


def test_another_user_than_the_leads_runs_isolated_bursts_alone(
    server: Said, lead: LeadIdentity
) -> None:
    other = replace(lead, owner_userid=499)
    [said] = examine(server, other)[Level.WRONG]
    assert "the lead runs as 499" in said
    assert not examine(server, other, mode="isolated")[Level.WRONG]


def test_all_is_well(server: Said, lead: LeadIdentity) -> None:
    found = examine(server, lead)
    assert not found[Level.WRONG] + found[Level.NOTE]
    assert len(found[Level.OK]) == 9
    memory = [text for text in found[Level.OK] if "may use 32Gi of memory" in text]
    assert len(memory) == len(SETTINGS.offers) == 1
    assert "the API server accepts the Job and the pods of nodes; " in found[Level.OK]


def sent_to(server: Said, path: str) -> list[Any]:
    """Return what was sent there, each with `dryRun` of its query."""
    return [
        body
        for (method, asked, _), body in zip(server.asked, server.bodies, strict=True)
        if method == "POST" and asked.startswith(f"{path}?") and "dryRun=All" in asked
    ]


def invalid(words: str) -> tuple[int, Any]:
    return 422, {"kind": "Status", "message": words, "reason": "Invalid"}


def test_the_api_server_checks_what_each_offer_makes(server: Said) -> None:
    table = OfferTable(
        cores=1, max_nodes=1, pod={"spec": {"priorityClassName": "high"}}
    )
    offers = {"nodes": SETTINGS.offers["nodes"], "urgent": table}
    found = examine(server, offers=offers)
    said = "the API server accepts the Job and the pods of nodes, urgent; "
    assert said in found[Level.OK]
    plain, urgent = sent_to(server, JOBS)
    assert (plain["spec"]["completions"], plain["spec"]["parallelism"]) == (1, 1)
    assert "priorityClassName" not in plain["spec"]["template"]["spec"]
    assert urgent["spec"]["template"]["spec"]["priorityClassName"] == "high"
    pods = sent_to(server, PODS)
    assert [pod["spec"].get("priorityClassName") for pod in pods] == [None, "high"]
    # Nothing else was sent but reviews of rights: nothing was made.
    made = [path for method, path, _ in server.asked if method != "GET"]
    assert all("dryRun=All" in path or path == REVIEWS for path in made)


def test_what_the_api_server_does_not_accept_is_wrong(server: Said) -> None:
    server.answer("POST", JOBS, invalid("spec.template.spec.schedulerNam: unknown"))
    (why,) = examine(server)[Level.WRONG]
    assert why.startswith("offer nodes: the API server does not accept it")
    assert "schedulerNam: unknown" in why
    absent = {"kind": "Status", "details": {"name": "jobs", "kind": "namespaces"}}
    server.answer("POST", JOBS, (404, absent))
    (why,) = examine(server)[Level.WRONG]
    assert why == (
        "there is no namespace jobs; kubectl create namespace jobs, and apply its"
        " Roles again"
    )
    # A quota that is used up is no fault.
    words = 'jobs.batch "burst-doctor" is forbidden: exceeded quota: burst'
    server.answer("POST", JOBS, (403, {"kind": "Status", "message": words}))
    found = examine(server)
    assert not found[Level.WRONG]
    assert "exceeded quota" in found[Level.NOTE][0]


def test_pods_are_checked_only_by_who_may_make_them(server: Said) -> None:
    # Rights, nodes, and pods.
    rights = [ALLOWED] * (len(needed_rights("job")) + 1)
    server.answer("POST", REVIEWS, *rights, DENIED)
    found = examine(server)
    assert "the API server accepts the Job of nodes; " in found[Level.OK]
    assert sent_to(server, PODS) == []


def test_a_minicluster_is_checked_once_a_lead_is_known(
    server: Said, lead: LeadIdentity
) -> None:
    server.answer("GET", DEPLOYMENT, deployment(availableReplicas=1))
    examine(server, form="operator")
    assert sent_to(server, MINICLUSTERS) == []
    found = examine(server, lead, form="operator")
    assert "the API server accepts the MiniCluster of nodes; " in found[Level.OK]
    (made,) = sent_to(server, MINICLUSTERS)
    assert made["spec"]["size"] == 1
    assert made["spec"]["interactive"], "its brokers run until they are told to end"
    lost = replace(lead, certificate="/no/such")
    found = examine(server, lost, form="operator")
    assert any("offer nodes: /no/such" in text for text in found[Level.WRONG])


def test_pods_wait_for_a_namespace_that_is_brought(server: Said) -> None:
    bursts = PodBursts(cluster_of(server), SETTINGS, TAGS, own_cluster=True)
    assert all(finding.level is not Level.WRONG for finding in bursts.examine(None))
    assert sent_to(server, JOBS) == []


def test_a_cluster_that_is_not_there(lead: LeadIdentity) -> None:
    with api_server() as server:
        pass
    found = examine(server, lead)
    (why,) = found[Level.WRONG]
    assert "cannot be reached" in why
    # What needs no cluster is looked at all the same.
    assert len(found[Level.OK]) == 3


def test_what_a_cluster_lacks_is_told(server: Said) -> None:
    server.answer("GET", KIND, (404, {}))
    (why,) = examine(server, form="operator")[Level.WRONG]
    assert "has no kind miniclusters.flux-framework.org" in why
    server.answer("POST", REVIEWS, DENIED, ALLOWED)
    server.answer("GET", NAMESPACE, (200, {"metadata": {}}))
    (why,) = examine(server)[Level.WRONG]
    assert "lacks rights in namespace jobs: get jobs.batch; apply a Role" in why
    server.answer("POST", REVIEWS, DENIED, ALLOWED)
    server.answer("GET", NAMESPACE, ABSENT)
    (why,) = examine(server)[Level.WRONG]
    assert "there is no namespace jobs; kubectl create namespace jobs" in why
    server.answer("GET", "/version", (200, {"gitVersion": "v1.28.3-gke.1"}))
    (why,) = examine(server)[Level.WRONG]
    assert "is Kubernetes v1.28.3-gke.1; upgrade it to 1.29" in why


def test_nodes_and_an_operator_that_cannot_be_seen_are_no_fault(server: Said) -> None:
    server.answer("POST", REVIEWS, *[ALLOWED] * len(needed_rights("job")), DENIED)
    found = examine(server)
    assert found[Level.WRONG] == []
    assert "may not get nodes: a pod on a dead node" in found[Level.NOTE][0]
    assert "burst down --force" in found[Level.NOTE][0]
    server.answer("POST", REVIEWS, *[ALLOWED] * len(needed_rights("operator")), DENIED)
    found = examine(server, form="operator")
    assert "may not get deployments" in found[Level.NOTE][0]


VIOLATED = 'would violate PodSecurity "restricted:latest": runAsUser=0 (pod)'


def test_a_job_of_followers_is_looked_at_and_not_made(server: Said) -> None:
    found = examine(server)
    assert "pods comply with the Pod Security Standard restricted; " in found[Level.OK]
    ((_, path, _),) = (asked for asked in server.asked if JOBS in asked[1])
    assert "dryRun=All" in path
    taken = {"kind": "Status", "reason": "AlreadyExists"}
    server.answer("POST", JOBS, (409, taken))
    assert found == examine(server)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"user": 0}, "remove user = 0, or label it {}=baseline"),
        ({"security": "baseline"}, 'remove security = "baseline", or label it {}='),
        ({"host_paths": ("/opt",)}, "remove host_paths, or label it {}=privileged"),
        ({}, "ask its administrator what it demands"),
    ],
)
def test_pods_that_a_namespace_may_deny(
    server: Said, changes: dict[str, Any], words: str
) -> None:
    server.warnings = ["batch is old, and so on", VIOLATED]
    (why,) = examine(server, **changes)[Level.NOTE]
    text = 'pods violate the Pod Security Standard "restricted:latest": runAsUser=0'
    assert why.startswith(f"{text} (pod); namespace jobs denies them if it enforces")
    assert words.format("pod-security.kubernetes.io/enforce") in why


def test_the_daemons_user_is_said_to_be_the_daemons(server: Said) -> None:
    server.warnings = [VIOLATED]
    (why,) = examine(server, user=None)[Level.NOTE]
    assert ("user = 0, the daemon's" in why) == (os.geteuid() == 0)


def deployment(**status: int) -> tuple[int, Any]:
    pods = {"spec": {"containers": [{"image": "operator:v1"}]}}
    return 200, {"metadata": {}, "spec": {"template": pods}, "status": status}


@pytest.mark.parametrize(
    ("answer", "level", "words"),
    [
        (deployment(availableReplicas=1), Level.OK, "Operator runs: operator:v1"),
        (deployment(), Level.WRONG, "(operator:v1) is not available"),
        (
            (404, {"kind": "Status", "details": {"name": "x", "kind": "deployments"}}),
            Level.NOTE,
            "there is no deployment",
        ),
    ],
)
def test_whether_the_operator_runs(
    server: Said, answer: tuple[int, Any], level: Level, words: str
) -> None:
    server.answer("GET", DEPLOYMENT, answer)
    assert words in str(examine(server, form="operator")[level])


@pytest.mark.parametrize(
    ("image", "level", "words"),
    [
        ("r.io:5000/flux:bookworm-v0.88.3-amd64", Level.OK, "the lead's Flux, 0.88.3"),
        (f"r.io:5000/flux:v0.88.3@sha256:{'0' * 64}", Level.OK, "lead's Flux, 0.88.3"),
        ("flux:0.87.0", Level.WRONG, "has Flux 0.87.0, by its name"),
        ("flux:latest", Level.NOTE, "does not tell its version"),
        ("r.io/flux@sha256:0.88.0", Level.NOTE, "does not tell its version"),
    ],
)
def test_which_flux_an_image_has(
    server: Said, lead: LeadIdentity, image: str, level: Level, words: str
) -> None:
    found = examine(server, lead, image=image)
    assert any(words in text for text in found[level])


def test_a_view_is_what_has_the_flux(server: Said, lead: LeadIdentity) -> None:
    found = examine(server, lead, image="app:1.2.3", view="flux-view:0.88.0")
    assert any("flux-view:0.88.0 has the lead's" in text for text in found[Level.OK])
    found = examine(server, replace(lead, follower_module="m"))
    assert any("need no Flux" in text for text in found[Level.OK])


@pytest.mark.parametrize(
    ("endpoint", "level", "words"),
    [
        ("", Level.WRONG, "address that pods connect to is not known"),
        ("tcp://127.0.0.1:8050", Level.WRONG, "is a loopback address"),
        ("tcp://[::1]:8050", Level.WRONG, "is a loopback address"),
        ("tcp://lead.invalid:8050", Level.NOTE, "cannot be resolved here"),
    ],
)
def test_an_address_that_pods_cannot_use(
    server: Said, lead: LeadIdentity, endpoint: str, level: Level, words: str
) -> None:
    found = examine(server, replace(lead, endpoint=endpoint))
    assert any(words in text for text in found[level])


@pytest.mark.parametrize("form", ["job", "operator"])
def test_a_namespace_is_of_one_owner(
    server: Said, lead: LeadIdentity, form: str
) -> None:
    """Those of this lead are no fault; without a lead nobody knows whose are ours."""
    server.answer("GET", DEPLOYMENT, deployment(availableReplicas=1))
    mine, other = bursts_of(lead.owner), bursts_of("burst-lead-2")
    server.serve(JOBS, mine)
    found = examine(server, lead, form=form)
    assert "nobody else has bursts in namespace jobs; " in found[Level.OK]
    server.serve(JOBS, mine, other, other)
    (told,) = examine(server, lead, form=form)[Level.WRONG]
    assert told.startswith("namespace jobs has bursts of another owner, too:")
    assert "burst-lead-2; give each lead a namespace of its own" in told
    assert not examine(server, form=form)[Level.WRONG]


def bursts_of(owner: str) -> dict[str, Any]:
    labels = {OWNER: owner, PROVIDER: "far", ID: "burst-0-0a1b2c"}
    return {"metadata": {"name": "burst-0-0a1b2c", "labels": labels}}
