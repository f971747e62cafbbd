# SPDX-License-Identifier: MIT
"""The certificate's secret key is in the Secret, and nowhere else at all."""

from __future__ import annotations

import base64
import json
import logging
from pathlib import Path

import msgspec
import pytest

from burst.kits import certificate
from burst.provider import Phase
from tests.kubernetes.bursts import Bursts, reap_all, wait_status
from tests.kubernetes.proxy import Proxy

pytestmark = pytest.mark.kubernetes


def everything(bursts: Bursts) -> str:
    """Return all that the API server has of the namespace, Secrets apart."""
    words = ("api-resources", "--namespaced", "--verbs=list", "-o", "name")
    # It fails if a group comes or goes meanwhile, as those of test_kube_install do.
    named = bursts.lab.kubectl(*words, check=False).split()
    kinds = {k for k in named if k != "secrets" and not k.endswith(".example.com")}
    assert {"pods", "configmaps", "jobs.batch"} <= kinds
    every = ("get", ",".join(kinds), "-n", bursts.namespace, "-o", "json")
    return str(bursts.lab.kubectl(*every, "--show-managed-fields"))


def forms_of(bursts: Bursts) -> list[str]:
    """Return the secret key as text, as JSON has it, and within what base64 makes."""
    found = certificate.read(Path(bursts.lead.certificate))
    secret = found.secret.decode()
    whole = certificate.format_certificate(found).encode()
    encoded = [base64.b64encode(piece).decode() for piece in (found.secret, whole)]
    return [secret, json.dumps(secret)[1:-1], *encoded]


def test_it_is_found_nowhere_else(
    bursts: Bursts, proxy: Proxy, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    provider = bursts.provider(kubeconfig=str(proxy.kubeconfig))
    provider.provision(bursts.spec)
    status = wait_status(provider, lambda status: status.phase is Phase.RUNNING)
    texts = {
        "objects": everything(bursts),
        "requests": repr(proxy.seen),
        "log": caplog.text,
        "status": repr(status) + msgspec.json.encode(status).decode(),
        "examination": repr(provider.examine(bursts.lead)),
    }
    assert bursts.spec.burst_id in texts["objects"]
    for secret in forms_of(bursts):
        assert [where for where, text in texts.items() if secret in text] == []
    # It is there, for its owner alone: this test would find it.
    (kept,) = bursts.objects("secrets")
    assert any(secret in json.dumps(kept) for secret in forms_of(bursts))
    reap_all(provider, bursts.spec)
