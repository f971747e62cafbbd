# SPDX-License-Identifier: MIT
"""Bursts in the namespace of manifests/far: restricted, and with a quota.

A real API server admits the pods; that they run is played.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from burst_kube.provider import KubeProvider

from burst.kits.pods import OfferTable
from burst.kits.pods.diagnose.probe_job import render_probe
from burst.kits.pods.names import Tags
from burst.model.burst import BurstId
from burst.model.finding import Finding, Level
from burst.provider import Failure, Phase
from burst.testing import isolate
from tests.kubernetes.admit import refusal
from tests.kubernetes.bursts import (
    Bursts,
    bring_up,
    reap_all,
    resize_all,
    sized,
    wait_status,
    with_guests,
)
from tests.kubernetes.kustomize import MANIFESTS, build

pytestmark = pytest.mark.kubernetes


@pytest.fixture
def restricted(bursts: Bursts, tmp_path: Path) -> Bursts:
    """The namespace is that of manifests/far, with the quota."""
    part = os.path.relpath(MANIFESTS / "parts" / "quota", tmp_path.resolve())
    fields = {"namespace": bursts.namespace, "components": [part]}
    built = build(bursts.lab, tmp_path, "far", **fields)
    bursts.lab.kubectl("apply", "-f", built)
    path = f"/api/v1/namespaces/{bursts.namespace}/resourcequotas/burst"

    def holds() -> bool:
        return "used" in (bursts.api.get(path) or {}).get("status", {})

    bursts.lab.wait_for("the quota", holds)
    # Admission learns of both a moment later.
    spec = {"type": "NodePort", "ports": [{"port": 80}]}
    port = {"metadata": {"name": "tried"}, "spec": spec}
    services = f"/api/v1/namespaces/{bursts.namespace}/services"
    bursts.lab.wait_for("its limits", lambda: bursts.api.refusal(services, port))
    loose = {"spec": {"containers": [{"name": "a", "image": "b"}]}}

    def is_restricted() -> bool:
        return "violates" in refusal(bursts.lab, bursts.namespace, loose)

    bursts.lab.wait_for("the standard", is_restricted)
    return bursts


MORE: list[dict[str, Any]] = [
    {"hostNetwork": True},  # past all network policies
    {"hostPID": True},
    {"volumes": [{"name": "root", "hostPath": {"path": "/"}}]},
    {"securityContext": {"runAsUser": 0, "runAsNonRoot": False}},
]
"""Of a pod: what is no part of the standard."""


def test_the_probe_and_the_cronjob_that_deletes_what_expired_run_there_and_no_others(
    restricted: Bursts,
) -> None:
    """Whoever may create Jobs gets no pods there that are allowed more."""
    path = f"/api/v1/namespaces/{restricted.namespace}/serviceaccounts"
    restricted.api.create(path, {"metadata": {"name": "burst-gc"}})
    cronjob = yaml.safe_load((MANIFESTS / "gc" / "cronjob.yaml").read_text())
    tags = Tags(restricted.lead.owner, "here")
    probe = render_probe("burst-probe-1", restricted.lead, restricted.settings, tags)

    def why_not(template: dict[str, Any]) -> str:
        return refusal(restricted.lab, restricted.namespace, template)

    assert why_not(cronjob["spec"]["jobTemplate"]["spec"]["template"]) == ""
    template = probe["spec"]["template"]
    assert why_not(template) == ""
    for more in MORE:
        changed = {**template, "spec": {**template["spec"], **more}}
        assert "violates PodSecurity" in why_not(changed), more


def test_followers_of_many_users_are_denied_in_words_until_baseline_lets_them_in(
    restricted: Bursts, tmp_path: Path
) -> None:
    lead, words = with_guests(restricted.lead, tmp_path)
    restricted.spec = msgspec.structs.replace(restricted.spec, lead=lead)
    provider = restricted.provider(**words)
    (told,) = noted(provider)
    assert 'Pod Security Standard "restricted:latest"' in told.what
    label = "pod-security.kubernetes.io/enforce=baseline"
    key = 'multi_user and security = "baseline"'
    assert f"remove {key}, or label it {label}" in told.advice
    provider.provision(restricted.spec)
    denied = 'violates PodSecurity "restricted:latest"'
    status = wait_status(provider, lambda seen: denied in seen.why)
    assert (status.phase, status.failure) == (Phase.FAILED, Failure.REFUSED)
    reap_all(provider, restricted.spec)
    command = ("label", "namespace", restricted.namespace, "--overwrite", label)
    restricted.lab.kubectl(*command)
    bring_up(provider, restricted.spec)
    reap_all(provider, restricted.spec)


def noted(provider: KubeProvider) -> list[Finding]:
    """Return what the doctor says of pods that are denied.

    Whoever may create pods, as an administrator, is told that they are, too.
    """
    found = provider.examine(None)
    assert not [
        each
        for each in found
        if each.level is Level.WRONG and "violates PodSecurity" not in each.what
    ]
    return [each for each in found if "Pod Security Standard" in each.what]


def test_all_kinds_of_bursts_run_there_up_to_the_quota_and_nothing_is_opened(
    restricted: Bursts,
) -> None:
    """Joined ones grow; isolated ones, and followers with Flux of a view, run too."""
    provider = restricted.provider()
    one, two = sized(restricted, "burst-0-0"), sized(restricted, "burst-0-[0-1]")
    bring_up(provider, one)
    resize_all(provider, two)
    reap_all(provider, two)
    name = BurstId("burst-iso-0a1b2c")
    isolated = isolate(msgspec.structs.replace(restricted.spec, burst_id=name))
    bring_up(provider, isolated)
    reap_all(provider, isolated)
    view = restricted.provider(view="local.test/flux-view:v0.88.0")
    found = view.examine(restricted.lead)
    accepted = "the API server accepts the Job and the pods of nodes"
    standard = "pods comply with the Pod Security Standard restricted"
    assert {accepted, standard} <= {f.what for f in found}
    bring_up(view, restricted.spec)
    reap_all(view, restricted.spec)
    large = {"nodes": OfferTable(cores=1, max_nodes=4, cpu="20")}
    provider = restricted.provider(offers=large)
    provider.provision(restricted.spec)
    status = wait_status(provider, lambda seen: "exceeded quota" in seen.why)
    assert status.phase is Phase.PENDING
    assert "requests.cpu" in status.why
    reap_all(provider, restricted.spec)
    for kind in ("nodeport", "loadbalancer"):
        command = ("create", "service", kind, f"open-{kind}", "--tcp=80:80")
        with pytest.raises(RuntimeError, match="exceeded quota"):
            restricted.lab.kubectl(*command, "-n", restricted.namespace)
