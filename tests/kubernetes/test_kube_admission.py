# SPDX-License-Identifier: MIT
"""What a cluster adds to pods, forbids, or keeps waiting, on a real API server."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import msgspec
import pytest
from burst_kube.provider import KubeProvider

from burst.config import Seconds
from burst.errors import SpecRefused
from burst.kits.kube.kinds import labels_of
from burst.kits.pods.names import OWNER
from burst.provider import BurstSpec, Failure, Level, Phase
from tests.kubernetes.bursts import (
    Bursts,
    bring_up,
    reap_all,
    wait_for_number,
    wait_status,
)
from tests.kubernetes.controller import Controller
from tests.support.waiting import wait_until

pytestmark = pytest.mark.kubernetes
DENIED = "users cannot be here"
"""What the policies of these tests say."""


@contextlib.contextmanager
def policy(bursts: Bursts, kinds: str, unless: str) -> Iterator[str]:
    """Have a ValidatingAdmissionPolicy deny a kind in the namespace.

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
    says = {"expression": unless, "message": DENIED, "reason": "Forbidden"}
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
        policy(bursts, "jobs", demand) as name,
        policy(bursts, "secrets", demand),
    ):
        wait_until(lambda: bool(refuses_secret(bursts)), lambda: name)
        wait_until(lambda: refused_by(bursts, spec) is not None, lambda: name)
        error = refused_by(bursts, spec)
        assert error is not None
        assert f"ValidatingAdmissionPolicy '{name}'" in error.what
        assert f"denied request: {DENIED}" in error.what
        assert f"ask who maintains {name} for an exception" in error.advice
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


def refused_by(bursts: Bursts, spec: BurstSpec) -> SpecRefused | None:
    """Return why a burst without labels is refused, and None if it is not."""
    provider = bursts.provider()
    try:
        provider.provision(spec)
    except SpecRefused as error:
        return error
    reap_all(provider, spec)
    return None


def refuses_secret(bursts: Bursts) -> str:
    """Return why a Secret without labels would be denied; empty if it would not."""
    made = ("create", "secret", "generic", "tried", "--dry-run=server")
    try:
        bursts.lab.kubectl(*made, "-n", bursts.namespace)
    except RuntimeError as error:
        return str(error)
    return ""


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
    wait_status(provider, lambda seen: seen.phase is Phase.RUNNING)
    reap_all(provider, bursts.spec)
