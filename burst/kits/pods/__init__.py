# SPDX-License-Identifier: MIT
"""Bursts as pods, for plug-in authors: one Job, or one MiniCluster, in any cluster.

`PodSettings` are the keys of its table to derive from, `PodProvider` all of a
provider but getting a `Cluster` (`burst.kits.kube`), which is where clouds and engines
differ. Where the cluster itself is made on request, `check_burst` comes before it and
`PodBursts` after; `burst.kits.background_command` is for programs that take minutes.
"""

from __future__ import annotations

from burst.kits.pods.bursts import Bursts, PodProvider, check_burst
from burst.kits.pods.miniclusters import PodBursts
from burst.kits.pods.names import Tags
from burst.kits.pods.settings import (
    OfferTable,
    PodSettings,
    Toleration,
    offers,
)

__all__ = [
    "Bursts",
    "OfferTable",
    "PodBursts",
    "PodProvider",
    "PodSettings",
    "Tags",
    "Toleration",
    "check_burst",
    "offers",
]
