# SPDX-License-Identifier: MIT
"""Bursts as pods, for plug-in authors: one Job, or one MiniCluster, in any cluster.

Derive the settings from `PodSettings` and the provider from `PodProvider`. The subclass
only has to supply the `Cluster` (`burst.kits.kube`). A provider that also makes the
cluster calls `check_burst` first, and uses `PodBursts` once the cluster exists. Use
`burst.kits.background_command` for programs that run for minutes.
"""

from __future__ import annotations

from burst.kits.pods.names import Tags
from burst.kits.pods.offer_table import OfferTable
from burst.kits.pods.pod_bursts import PodBursts
from burst.kits.pods.pod_provider import (
    PodProvider,
    PodSettingsProvider,
    check_burst,
    offers,
)
from burst.kits.pods.settings import PodSettings
from burst.kits.pods.template.multi_user_table import MultiUserTable

__all__ = [
    "MultiUserTable",
    "OfferTable",
    "PodBursts",
    "PodProvider",
    "PodSettings",
    "PodSettingsProvider",
    "Tags",
    "check_burst",
    "offers",
]
