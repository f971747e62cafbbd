# SPDX-License-Identifier: MIT
"""Which error a denial of the API server is, and what becomes of a burst by one.

The texts are those of clusters.
"""

from typing import Any

import msgspec
import pytest

from burst.errors import (
    InsufficientCapacity,
    ProviderError,
    Refused,
    SpecRefused,
    Transient,
)
from burst.kits.kube import Endpoint
from burst.kits.kube.connect import ApiResponse
from burst.kits.kube.denials import is_judged
from burst.kits.kube.faults import ApiCall, NoRight, explain
from burst.kits.kube.kinds import JOB, POD, SECRET, Kind
from burst.kits.pods.status.warnings import warnings_by_object
from burst.provider import Failure, Phase
from tests.kits.seen_pods import RUNNING, about, event, look, pod, thing

SCC = (
    'pods "b-0-" is forbidden: unable to validate against any security context'
    ' constraint: [provider "anyuid": Forbidden: not usable by user or serviceaccount,'
    " provider restricted-v2: .containers[0].runAsUser: Invalid value: 1000: must be in"
    ' the ranges: [1000680000, 1000689999], provider "restricted": Forbidden: not'
    ' usable by user or serviceaccount, provider "nonroot-v2": Forbidden: not usable by'
    " user or serviceaccount]"
)
WARDEN = (
    'admission webhook "warden-validating.common-webhooks.networking.gke.io" denied the'
    " request: GKE Warden rejected the request because it violates one or more"
    ' constraints.\nViolations details: {"[denied by'
    ' autogke-node-affinity-selector-limitation]":["Auto GKE disallows use of'
    " cluster-autoscaler.kubernetes.io/safe-to-evict=false annotation on"
    ' workloads"]}\nRequested by user:'
    " 'system:serviceaccount:kube-system:job-controller', groups:"
    " 'system:serviceaccounts,system:authenticated'."
)
KYVERNO = (
    'admission webhook "validate.kyverno.svc-fail" denied the request: \n\nresource'
    " Pod/jobs/b-0 was blocked due to the following policies \n\nrequire-labels:\n "
    " check-team: 'validation error: label team was not found'"
)
RULES: list[tuple[str, str, str]] = [
    (SCC, "1000680000, 1000689999", "set user to a number of the range"),
    (WARDEN, "safe-to-evict=false annotation on workloads", "Autopilot has no exc"),
    (KYVERNO, "label team was not found", "who maintains validate.kyverno.svc-fail"),
    (
        'admission webhook "validation.gatekeeper.sh" denied the request: [psp-caps]'
        " container <b> has a disallowed capability",
        "[psp-caps]",
        "validation.gatekeeper.sh for an exception",
    ),
    (
        "pods \"b-0-x\" is forbidden: ValidatingAdmissionPolicy 'no-root' with binding"
        " 'all' denied request: failed expression: object.spec.x == 1",
        "failed expression: object.spec.x",
        "who maintains no-root",
    ),
    (
        "pods \"b-0-x\" is forbidden: ValidatingAdmissionPolicy 'freeze' with binding"
        " 'all' denied request: no new pods while nodes are replaced, try again later",
        "while nodes are replaced, try again later",
        "who maintains freeze",
    ),
    (
        'pods "b-0" is forbidden: failed quota: q: must specify limits.cpu',
        "must specify limits.cpu",
        "LimitRange give a default",
    ),
    (
        'pods "b-0" is forbidden: violates PodSecurity "restricted:latest":'
        " runAsNonRoot != true",
        '"restricted:latest": runAsNonRoot',
        "pod-security.kubernetes.io/enforce",
    ),
    (
        'pods "b-0" is forbidden: [maximum cpu usage per Container is 1, but limit is'
        " 2, maximum memory usage per Pod is 1Gi, but limit is 4Gi]",
        "maximum cpu usage per Container is 1, but limit is 2",
        "what the LimitRange allows",
    ),
]
"""The text, the rule in it, and a part of the advice."""

LACKS = [
    'pods "b-0" is forbidden: error looking up service account jobs/flux:'
    ' serviceaccount "flux" not found',
    'pods "b-0" is forbidden: no PriorityClass with name high was found',
    'pods "b-0" is forbidden: status unknown for quota: small, resources: pods',
    "the door is closed",
]

HERE = Endpoint("https://api.test", "", lambda: "t")


def answer(
    code: int, message: str, verb: str = "create", kind: Kind = JOB, **details: Any
) -> ProviderError:
    reason = {401: "Unauthorized", 403: "Forbidden", 422: "Invalid"}.get(code, "")
    body = {"kind": "Status", "status": "Failure", "code": code, "reason": reason}
    told = {"name": "b", "kind": kind.plural, **details}
    content = msgspec.json.encode({**body, "message": message, "details": told})
    attempt = ApiCall(HERE, verb, kind, "far", "b")
    return explain(ApiResponse(code, {}, content), attempt)


@pytest.mark.parametrize(("denial", "rule", "advice"), RULES)
def test_a_rule_is_quoted(denial: str, rule: str, advice: str) -> None:
    for verb in ("create", "patch"):
        error = answer(403, denial, verb, POD)
        assert type(error) is SpecRefused
        # A site's policy may let other bursts of the offer in.
        assert error.by_rule is not is_judged(denial)
        assert rule in error.what
        assert advice in error.advice
    # What cannot be deleted is no matter of this object alone.
    assert type(answer(403, denial, "delete", POD)) is Refused


@pytest.mark.parametrize("code", [400, 401, 403, 413, 422])
def test_a_policy_may_choose_the_code_of_its_denial(code: int) -> None:
    policy = (
        "jobs.batch \"b\" is forbidden: ValidatingAdmissionPolicy 'no-root' with"
        " binding 'all' denied request: users cannot be root"
    )
    for text in (WARDEN, KYVERNO, policy):
        assert type(answer(code, text)) is SpecRefused
    assert "no-root" in answer(code, policy).advice
    # A code that asks to try again counts, whoever denied.
    for again in (409, 429, 500, 503, 504):
        assert type(answer(again, KYVERNO)) is Transient


WEBHOOK = (
    "Internal error occurred: failed calling webhook"
    ' "validate.kyverno.svc-fail": failed to call webhook: Post'
    ' "https://kyverno-svc.kyverno.svc:443/validate?timeout=10s": dial tcp'
    " 10.0.0.1:443: connect: connection refused"
)
TIMED_OUT = "Internal error occurred: resource quota evaluation timed out"
MODIFIED = (
    'Operation cannot be fulfilled on resourcequotas "small": the object has been'
    " modified; please apply your changes to the latest version and try again"
)
EXCEEDED = (
    'pods "b" is forbidden: exceeded quota: small, requested: pods=1, used: pods=2,'
    " limited: pods=2"
)


@pytest.mark.parametrize(
    ("code", "message", "kind"),
    [
        (500, WEBHOOK, Transient),
        (500, TIMED_OUT, Transient),
        (409, MODIFIED, Transient),
        (403, EXCEEDED, InsufficientCapacity),
        (403, "go away", SpecRefused),
        (401, "Unauthorized", Refused),
        # What may exist a moment later.
        *((403, denial, Transient) for denial in LACKS[:3]),
    ],
)
def test_the_others(code: int, message: str, kind: type[ProviderError]) -> None:
    error = answer(code, message)
    assert type(error) is kind
    # What nobody knows is no rule for all.
    assert not getattr(error, "by_rule", False)
    assert code == 401 or message[:60] in error.what


def test_a_right_that_lacks_is_told_with_what_a_cloud_says_of_it() -> None:
    rbac = (
        'jobs.batch "b" is forbidden: User "d@p.iam" cannot create resource "jobs" in'
        ' API group "batch" in the namespace "far"'
    )
    error = answer(403, rbac)
    assert type(error) is NoRight
    assert "with https://api.test;" in str(error)
    gke = f'{rbac}: requires one of ["container.jobs.create"] permission(s).'
    assert 'one of ["container.jobs.create"] permission' in answer(403, gke).what
    # An owner whose finalizers may not be set is a right that lacks.
    words = (
        'secrets "b" is forbidden: cannot set blockOwnerDeletion if an ownerReference'
        " refers to a resource you can't set finalizers on: , <nil>"
    )
    error = answer(403, words, kind=SECRET)
    assert type(error) is Refused
    assert "jobs/finalizers" in error.advice
    # Words about a secret are not repeated.
    error = answer(400, f"{KYVERNO} hush-hush", kind=SECRET)
    assert type(error) is SpecRefused
    assert "status 400" in error.what
    assert "hush" not in str(error)


@pytest.mark.parametrize(("denial", "rule", "advice"), RULES)
def test_forbidden_pods_are_refused(denial: str, rule: str, advice: str) -> None:
    words = f"FailedCreate: Error creating: {denial}"
    told = event("Job", "b", words, "1970-01-01T00:16:40Z")
    warnings = warnings_by_object([{**told, "type": "Warning"}])
    seen = look(thing("Job"), warnings=warnings)
    assert (seen.phase, seen.failure) == (Phase.FAILED, Failure.REFUSED)
    assert seen.why.startswith("pods cannot be made: FailedCreate: Error creating: ")
    assert rule in seen.why
    assert advice in seen.why
    assert "not usable by" not in seen.why
    assert "Requested by" not in seen.why
    assert {follower.phase for follower in seen.followers} == {Phase.FAILED}
    # A burst of which something runs has a minute.
    soon = look(thing("Job"), pod(0, **RUNNING), warnings=warnings)
    assert soon.phase is Phase.PENDING
    assert rule in soon.why


@pytest.mark.parametrize("denial", LACKS)
def test_what_does_not_exist_fails_the_burst_after_a_minute(denial: str) -> None:
    words = f"FailedCreate: Error creating: {denial}"
    late = look(thing("Job"), warnings=about("Job", "b", words))
    assert (late.phase, late.failure) == (Phase.FAILED, Failure.OTHER)
    assert late.why == f"for 100 s, pods cannot be made: {words}"
    assert {follower.phase for follower in late.followers} == {Phase.FAILED}
    soon = look(thing("Job"), warnings=about("Job", "b", words, "1970-01-01T00:16:00Z"))
    assert (soon.phase, soon.why) == (Phase.PENDING, f"pods cannot be made: {words}")


def test_a_rule_that_forbids_a_pod_that_is_made_anew_ends_the_burst_later() -> None:
    words = f"FailedCreate: Error creating: {RULES[3][0]}"
    up = pod(0, **RUNNING)
    up["metadata"]["creationTimestamp"] = "1970-01-01T00:01:00Z"
    late = look(thing("Job"), up, warnings=about("Job", "b", words))
    assert (late.phase, late.failure) == (Phase.FAILED, Failure.REFUSED)
    assert late.why.startswith("for 100 s, pods cannot be made: ")
