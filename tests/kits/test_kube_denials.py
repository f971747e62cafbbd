# SPDX-License-Identifier: MIT
"""Which error a Status of the API server is, where admission or RBAC denies."""

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
from tests.kits.admission_texts import KYVERNO, LACKS, RULES, WARDEN

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
def test_a_rule_refuses_this_object_and_is_quoted(
    denial: str, rule: str, advice: str
) -> None:
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


@pytest.mark.parametrize("code", [409, 429, 500, 503, 504])
def test_a_code_that_asks_to_try_again_counts_whoever_denied(code: int) -> None:
    assert type(answer(code, KYVERNO)) is Transient


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


def test_an_owner_whose_finalizers_may_not_be_set_is_a_right_that_lacks() -> None:
    words = (
        'secrets "b" is forbidden: cannot set blockOwnerDeletion if an ownerReference'
        " refers to a resource you can't set finalizers on: , <nil>"
    )
    error = answer(403, words, kind=SECRET)
    assert type(error) is Refused
    assert "jobs/finalizers" in error.advice


def test_words_about_a_secret_are_not_repeated() -> None:
    error = answer(400, f"{KYVERNO} hush-hush", kind=SECRET)
    assert type(error) is SpecRefused
    assert "status 400" in error.what
    assert "hush" not in str(error)
