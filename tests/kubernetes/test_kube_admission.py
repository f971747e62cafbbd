# SPDX-License-Identifier: MIT
"""What a cluster adds to pods, forbids, or keeps waiting, on a real API server."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

import msgspec
import pytest
from burst_kube.provider import KubeProvider

from burst.config import Seconds
from burst.errors import SpecRefused
from burst.kits.kube.kinds import labels_of
from burst.kits.pods import PodBursts
from burst.kits.pods.names import OWNER
from burst.provider import BurstSpec, BurstStatus, Failure, Level, Phase
from tests.kubernetes.admit import refusal
from tests.kubernetes.bursts import (
    Bursts,
    attempt,
    bring_up,
    reap_all,
    wait_for_number,
    wait_status,
)
from tests.kubernetes.controller import Controller
from tests.support.pod_words import pod_words
from tests.support.waiting import wait_until

pytestmark = pytest.mark.kubernetes
DENIED = "users cannot be here"
"""What the policies of these tests say."""


def running(status: BurstStatus) -> bool:
    return status.phase is Phase.RUNNING


def a_minute_later(bursts: Bursts, provider: KubeProvider) -> BurstStatus:
    """Return the status as it would be then, if nothing else happened."""
    return seen_at(bursts, provider, time.time() + 61)


def seen_at(bursts: Bursts, provider: KubeProvider, now: float) -> BurstStatus:
    """Return the status at that time by the clock, of what there is."""
    cluster, tags = provider.bursts().cluster, provider.tags
    settings = msgspec.structs.replace(bursts.settings)
    (status,) = PodBursts(cluster, settings, tags, clock=lambda: now).observe()
    return status


def check_refused(bursts: Bursts, provider: KubeProvider, words: str) -> BurstStatus:
    """Check that pods that a rule forbids fail the burst once an event says so."""
    provider.provision(bursts.spec)
    status = wait_status(provider, lambda seen: words in seen.why)
    assert (status.phase, status.failure) == (Phase.FAILED, Failure.REFUSED)
    reap_all(provider, bursts.spec)
    return status


@contextlib.contextmanager
def policy(
    bursts: Bursts, kinds: str, reason: str, unless: str = "false"
) -> Iterator[str]:
    """Have a ValidatingAdmissionPolicy deny all of a kind in the namespace.

    `unless` is an expression (CEL) of what it lets in.
    """
    name = f"{bursts.namespace}-{kinds}"
    group = "batch" if kinds == "jobs" else ""
    here = {"matchLabels": {"kubernetes.io/metadata.name": bursts.namespace}}
    rule = {"apiGroups": [group], "apiVersions": ["v1"], "operations": ["CREATE"]}
    matches = {
        "namespaceSelector": here,
        "resourceRules": [{**rule, "resources": [kinds]}],
    }
    says = {"expression": unless, "message": DENIED, "reason": reason}
    path = "/apis/admissionregistration.k8s.io/v1"
    meta = {"metadata": {"name": name}}
    made = {"matchConstraints": matches, "validations": [says]}
    bound = {"policyName": name, "validationActions": ["Deny"]}
    both = {
        f"{path}/validatingadmissionpolicies": {**meta, "spec": made},
        f"{path}/validatingadmissionpolicybindings": {**meta, "spec": bound},
    }
    for where, manifest in both.items():
        bursts.api.create(where, manifest)
    try:
        yield name
    finally:
        for where in both:
            bursts.api.delete(f"{where}/{name}")


def test_a_policy_that_denies_the_job(bursts: Bursts) -> None:
    """By whatever code: tests/kits/test_kube_denials.py has the others."""
    provider = bursts.provider()
    with policy(bursts, "jobs", "RequestEntityTooLarge") as name:
        # The API server heeds a new policy within seconds; until then there are Jobs.
        def denied() -> bool:
            error = attempt(lambda: provider.provision(bursts.spec))
            if error is None:
                reap_all(provider, bursts.spec)
            found.append(error)
            return error is not None

        found: list[object] = []
        wait_until(denied, lambda: found)
    error = found[-1]
    assert type(error) is SpecRefused
    assert f"ValidatingAdmissionPolicy '{name}'" in error.what
    assert "denied request: users cannot be here" in error.what
    assert f"ask who maintains {name} for an exception" in error.advice


def test_a_policy_that_denies_the_pods(bursts: Bursts) -> None:
    with policy(bursts, "pods", "Forbidden") as name:
        wait_until(lambda: bool(refuses(bursts)), lambda: name)
        words = "denied request: users cannot be here"
        status = check_refused(bursts, bursts.provider(), words)
    assert f"ask who maintains {name} for an exception" in status.why


def test_policies_that_demand_labels_of_jobs_and_secrets(bursts: Bursts) -> None:
    """A site's labels are on both, and say who pays."""
    key = "example.org/account"
    demand = (
        "has(object.metadata.labels) &&"
        f" object.metadata.labels[?'{key}'].orValue('').startsWith('chem')"
    )
    spec = msgspec.structs.replace(bursts.spec, banks=("bio",))
    labelled = bursts.provider(object_labels={key: "chem & {bank}"})
    with (
        policy(bursts, "jobs", "Forbidden", demand),
        policy(bursts, "secrets", "Forbidden", demand) as name,
    ):
        wait_until(lambda: bool(refuses_secret(bursts)), lambda: name)
        wait_until(lambda: bool(refused_by(bursts, spec)), lambda: name)
        assert DENIED in wrongs(bursts.provider(), bursts)
        assert DENIED not in wrongs(labelled, bursts)
        # Of a burst that was let in before the policies held.
        wait_for_number(bursts, "pods", 0)
        bring_up(labelled, spec)
        for kind in ("jobs", "pods", "configmaps", "secrets"):
            made = [o for o in bursts.objects(kind) if OWNER in labels_of(o)]
            assert made
            assert {labels_of(thing)[key] for thing in made} == {"chem-bio"}
        reap_all(labelled, spec)


def wrongs(provider: KubeProvider, bursts: Bursts) -> str:
    """Return what the doctor finds wrong."""
    found = provider.examine(bursts.lead)
    return "".join(str(each) for each in found if each.level is Level.WRONG)


def refused_by(bursts: Bursts, spec: BurstSpec) -> str:
    """Return why a burst without labels is refused; empty if it is not."""
    provider = bursts.provider()
    try:
        provider.provision(spec)
    except SpecRefused as error:
        return error.what
    reap_all(provider, spec)
    return ""


def refuses_secret(bursts: Bursts) -> str:
    """Return why a Secret without labels would be denied; empty if it would not."""
    made = ("create", "secret", "generic", "tried", "--dry-run=server")
    try:
        bursts.lab.kubectl(*made, "-n", bursts.namespace)
    except RuntimeError as error:
        return str(error)
    return ""


def refuses(bursts: Bursts) -> str:
    """Return why a pod would be denied; empty if it would not."""
    container = {"name": "a", "image": "b"}
    spec = {"containers": [container], "restartPolicy": "Never"}
    return refusal(bursts.lab, bursts.namespace, {"spec": spec})


def test_what_does_not_exist_fails_the_burst_after_a_minute_unless_it_is_made(
    bursts: Bursts,
) -> None:
    provider = bursts.provider(pod=pod_words(serviceAccountName="late"))
    made = time.time()
    provider.provision(bursts.spec)
    words = 'serviceaccount "late" not found'
    wait_status(provider, lambda s: words in s.why)
    begun = seen_at(bursts, provider, made + 30)
    assert (begun.phase, words in begun.why) == (Phase.PENDING, True)
    later = a_minute_later(bursts, provider)
    assert (later.phase, later.failure) == (Phase.FAILED, Failure.OTHER)
    assert words in later.why
    path = f"/api/v1/namespaces/{bursts.namespace}/serviceaccounts"
    bursts.api.create(path, {"metadata": {"name": "late"}})
    wait_status(provider, running)
    assert a_minute_later(bursts, provider).phase is Phase.RUNNING


def test_a_job_that_kueue_suspends_is_queued(bursts: Bursts) -> None:
    """Kueue suspends Jobs, those that run as well, and starts them; here the test."""
    path = bursts.job(bursts.spec.burst_id)
    provider = bursts.provider()
    provider.provision(bursts.spec)
    bursts.api.patch(path, {"spec": {"suspend": True}})
    status = wait_status(provider, lambda seen: "is queued" in seen.why)
    assert status.phase is Phase.PENDING
    kueue = Controller(bursts.api, bursts.namespace, "kueue-workload-controller")
    workload = {"name": f"job-{bursts.spec.burst_id}-5f2c1", "uid": "1"}
    about = {"kind": "Workload", "metadata": workload}
    evicted = "Preempted to accommodate a workload (UID: 16739dd5)"
    kueue.tell(about, "EvictedDueToPreempted", evicted)
    # A pod that still ends says so, and not yet by whom it is stopped.
    status = wait_status(
        provider,
        lambda seen: evicted in seen.why and all(f.reclaimed for f in seen.followers),
    )
    assert "Kueue has evicted it" in status.why
    provider.provision(bursts.spec)
    assert bursts.api.get(path)["spec"]["suspend"] is True
    impatient = bursts.provider(schedule=Seconds(0))
    late = wait_status(impatient, lambda seen: seen.phase is Phase.FAILED)
    assert late.failure is Failure.CAPACITY
    bursts.api.patch(path, {"spec": {"suspend": False}})
    wait_status(provider, running)
    reap_all(provider, bursts.spec)
