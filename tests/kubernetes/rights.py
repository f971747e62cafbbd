# SPDX-License-Identifier: MIT
"""Grants a service account the Role of manifests/."""

from __future__ import annotations

from pathlib import Path

from burst_kube import KubeProvider

from burst.model.finding import Level
from tests.kubernetes.bursts import Bursts
from tests.support.waiting import wait_until

ROLE = Path(__file__).parents[2] / "manifests" / "role" / "role.yaml"


def grant(bursts: Bursts, provider: KubeProvider) -> None:
    """Give the account the Role of manifests/, and wait until that took effect."""
    namespace = ("-n", bursts.namespace)
    bursts.lab.kubectl("apply", *namespace, "-f", ROLE)
    who = f"--serviceaccount={bursts.namespace}:default"
    binding = ("create", "rolebinding", "burst", "--role=burst-daemon", who)
    bursts.lab.kubectl(*binding, *namespace)

    def enough() -> bool:
        return all(
            finding.level is not Level.WRONG for finding in provider.examine(None)
        )

    wait_until(enough, lambda: provider.examine(None))
