# SPDX-License-Identifier: MIT
"""Bursts as pods, for plug-in authors: one Job, or one MiniCluster, in any cluster.

`MiniClusterSettings` are the keys of its table to derive from, `offers` what they sell,
`MiniClusters` the rest of a provider; its module shows a plug-in whole. Where cloud or
engine is what differs, only getting a `Cluster` (`burst.kits.kube`) is left to write.
"""

from __future__ import annotations

from burst.kits.minicluster.miniclusters import MiniClusters
from burst.kits.minicluster.names import Tags
from burst.kits.minicluster.settings import (
    MiniClusterSettings,
    OfferTable,
    Toleration,
    offers,
)

__all__ = [
    "MiniClusterSettings",
    "MiniClusters",
    "OfferTable",
    "Tags",
    "Toleration",
    "offers",
]
