# SPDX-License-Identifier: MIT
"""Grants a service account the Roles of manifests/."""

from __future__ import annotations

from pathlib import Path

from burst_kube.provider import KubeProvider

from burst.model.finding import Level
from tests.kubernetes.bursts import Bursts
from tests.support.waiting import wait_until

MANIFESTS = Path(__file__).parents[2] / "manifests"


def grant(bursts: Bursts, provider: KubeProvider) -> None:
    """Give the account what form job needs, and wait until that took effect."""
    _bind(bursts, "burst-daemon", "role/role.yaml")
    _wait(provider)


def grant_operator(bursts: Bursts, provider: KubeProvider) -> None:
    """Give it what a provider with form operator needs besides."""
    _bind(bursts, "burst-daemon-miniclusters", "parts/miniclusters/role.yaml")
    _wait(provider)


def _bind(bursts: Bursts, role: str, path: str) -> None:
    namespace = ("-n", bursts.namespace)
    bursts.lab.kubectl("apply", *namespace, "-f", MANIFESTS / path)
    who = f"--serviceaccount={bursts.namespace}:default"
    binding = ("create", "rolebinding", f"{role}-default", f"--role={role}", who)
    bursts.lab.kubectl(*binding, *namespace)


def _wait(provider: KubeProvider) -> None:
    def enough() -> bool:
        return all(
            finding.level is not Level.WRONG for finding in provider.examine(None)
        )

    wait_until(enough, lambda: provider.examine(None))
