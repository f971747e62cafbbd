# SPDX-License-Identifier: MIT
"""A real API server accepts the pods of examples, in a restricted namespace."""

from __future__ import annotations

from pathlib import Path

import pytest
from burst_kube.provider import KubeSettings

from burst.config import convert, load
from burst.model.finding import Level
from tests.kubernetes.bursts import Bursts

pytestmark = pytest.mark.kubernetes
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.mark.parametrize(
    "name", ["kube/burst.toml", "kube/application.toml", "service/burst.toml"]
)
def test_its_pods_are_accepted(bursts: Bursts, name: str) -> None:
    standard = {"pod-security.kubernetes.io/enforce": "restricted"}
    path = f"/api/v1/namespaces/{bursts.namespace}"
    bursts.api.patch(path, {"metadata": {"labels": standard}})
    table = load(EXAMPLES / name).providers["far"]
    settings = convert(KubeSettings, table.options, "providers.far")
    # In the test's namespace, for any user but root.
    here = {
        "kubeconfig": str(bursts.lab.kubeconfig),
        "context": "",
        "namespace": bursts.namespace,
        "user": 1000,
    }
    given = {key: getattr(settings, key) for key in settings.__struct_fields__}
    found = bursts.provider(**{**given, **here}).examine(None)
    assert [f.what for f in found if f.level is Level.WRONG] == []
    assert any("accepts the Job and the pods of" in f.what for f in found)
