# SPDX-License-Identifier: MIT
"""The command by which a person gets a kubeconfig for a burst's cluster."""

from __future__ import annotations

import shlex

from burst.model.burst import BurstId
from burst_gke.settings import GkeSettings

# Flags of `gcloud container clusters get-credentials`, by `endpoint` of the settings.
_ENDPOINTS = {"default": [], "private": ["--internal-ip"], "dns": ["--dns-endpoint"]}


def get_credentials(settings: GkeSettings, burst_id: BurstId) -> str:
    """Return a command for a shell; gcloud uses the account that is logged in."""
    cluster = settings.cluster or settings.name_of(burst_id)
    return shlex.join(
        [
            *("gcloud", "container", "clusters", "get-credentials", cluster),
            f"--project={settings.project}",
            # A zone or a region.
            f"--location={settings.location}",
            *_ENDPOINTS[settings.endpoint],
        ]
    )
