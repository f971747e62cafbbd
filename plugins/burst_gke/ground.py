# SPDX-License-Identifier: MIT
"""What a burst stands on: a cluster or a node pool, and what GKE did to it."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from burst.provider import Failure, Phase
from burst_gke.failures import Fault


class Ground(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster or a node pool, as GKE sees it now."""

    name: str
    labels: Mapping[str, str] = {}
    phase: Phase
    """RUNNING: pods can be put there."""
    why: str = ""
    failure: Failure = Failure.OTHER
    endpoint: str = ""
    """Address of a cluster's API server, without a scheme; empty if it has none yet."""
    ca: str = ""
    """Certificate of its authority, PEM."""
    pools: tuple[Ground, ...] = ()
    """Of a cluster."""


class Deed(msgspec.Struct, frozen=True, kw_only=True):
    """An operation of GKE's on one cluster or pool."""

    kind: str
    """Such as `create_cluster` or `delete_node_pool`."""
    done: bool
    """At its end, by which nothing is said of how."""
    fault: Fault | None = None
