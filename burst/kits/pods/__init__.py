# SPDX-License-Identifier: MIT
"""Bursts as pods, for plug-in authors: one Job, or one MiniCluster, in any cluster.

`MiniClusterSettings` are the keys of its table to derive from, `PodProvider` all of a
provider but getting a `Cluster` (`burst.kits.kube`), which is where clouds and engines
differ. Where the cluster itself is made on request, `check_burst` comes before it and
`MiniClusters` after; `burst.kits.background_command` is for programs that take minutes.
"""

from __future__ import annotations

from burst.kits.pods.bursts import Bursts, PodProvider, check_burst
from burst.kits.pods.miniclusters import MiniClusters
from burst.kits.pods.names import Tags
from burst.kits.pods.settings import (
    MiniClusterSettings,
    OfferTable,
    Toleration,
    offers,
)

__all__ = [
    "Bursts",
    "MiniClusterSettings",
    "MiniClusters",
    "OfferTable",
    "PodProvider",
    "Tags",
    "Toleration",
    "check_burst",
    "offers",
]
