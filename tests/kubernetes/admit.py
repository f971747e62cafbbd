# SPDX-License-Identifier: MIT
"""Asks the API server whether it would admit a pod, which is not made."""

from __future__ import annotations

import contextlib
import copy
from typing import Any

from tests.kubelab.cluster import Cluster
from tests.kubernetes.api import Api
from tests.support.waiting import wait_until


def refusal(cluster: Cluster, namespace: str, template: dict[str, Any]) -> str:
    """Return why the pod of a Job's template is not admitted; empty if it is."""
    meta = {**template.get("metadata", {}), "name": "tried"}
    pod = {"metadata": meta, "spec": template["spec"]}
    with contextlib.closing(Api(cluster)) as api:
        return api.refusal(f"/api/v1/namespaces/{namespace}/pods", pod)


def check_restricted(
    cluster: Cluster, namespace: str, template: dict[str, Any]
) -> None:
    """Check that the pod keeps to the restricted standard, which is enforced there.

    Admission learns of a namespace's labels late: with less it is not admitted.
    """
    less = copy.deepcopy(template)
    del less["spec"]["containers"][0]["securityContext"]
    words = 'violates PodSecurity "restricted'
    wait_until(
        lambda: words in refusal(cluster, namespace, less),
        lambda: refusal(cluster, namespace, less),
    )
    assert refusal(cluster, namespace, template) == ""
