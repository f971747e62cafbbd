# SPDX-License-Identifier: MIT
"""What a burst stands on: a cluster or a node pool, and what GKE did to it."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from burst.errors import Refused
from burst.provider import Failure, Phase
from burst_gke.failures import CloudFailure


class GkeResource(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster or a node pool, as GKE sees it now."""

    name: str
    labels: Mapping[str, str] = {}
    phase: Phase
    """RUNNING: pods can be put there."""
    why: str = ""
    failure: Failure = Failure.OTHER
    endpoint: str = ""
    """Address of a cluster's API server, without a scheme; empty if it has none yet."""
    private_endpoint: str = ""
    """The same as its network knows it; empty if it does not."""
    dns_endpoint: str = ""
    """Its name in the DNS, by which Google lets in who may, from anywhere."""
    ca: str = ""
    """Certificate of its authority, PEM."""
    pools: tuple[GkeResource, ...] = ()
    """Of a cluster."""

    def reach(self, by: str) -> tuple[str, str]:
        """Return the API server's URL by that setting, and its authority.

        By its name it has a certificate that everybody's system trusts, and the
        authority is empty. Raises Refused where the cluster has no such address.
        """
        found = {
            "default": self.endpoint,
            "private": self.private_endpoint,
            "dns": self.dns_endpoint,
        }[by]
        if not found:
            raise Refused(
                f"cluster {self.name} has no {by} endpoint",
                "set endpoint otherwise, or give it one: gcloud container clusters"
                " update has flags for that",
            )
        return f"https://{found}", "" if by == "dns" else self.ca


class GkeOperation(msgspec.Struct, frozen=True, kw_only=True):
    """An operation of GKE's on one cluster or pool."""

    kind: str
    """Such as `create_cluster` or `delete_node_pool`."""
    done: bool
    """At its end, by which nothing is said of how."""
    fault: CloudFailure | None = None
