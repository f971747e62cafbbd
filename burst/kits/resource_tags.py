# SPDX-License-Identifier: MIT
"""Tags by which any daemon finds what a provider has made in a cloud.

For labels of Kubernetes, see `burst.kits.pods`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from burst.model.burst import BurstId
from burst.provider import OwnedBurst


class ResourceTags(msgspec.Struct, frozen=True):
    """The keys of the tags on a provider's resources in a cloud."""

    owner: str
    provider: str
    burst: str
    lease_end: str
    """The key of the tag with the end of the lease, in seconds since the epoch; a
    resource may lack this tag."""

    def owned(self, tags: Mapping[str, str]) -> OwnedBurst | None:
        """Return the burst of a resource with these tags; None if it is of no burst."""
        owner, provider, burst = (
            tags.get(key, "") for key in (self.owner, self.provider, self.burst)
        )
        if not (owner and provider and burst):
            return None
        return OwnedBurst(
            owner=owner,
            provider=provider,
            burst_id=BurstId(burst),
            lease_end=parse_seconds(tags.get(self.lease_end, "")),
        )

    def burst_of(
        self, tags: Mapping[str, str], owner: str, provider: str
    ) -> BurstId | None:
        """Return the id of the resource's burst if this owner and provider made it."""
        found = self.owned(tags)
        ours = found and (found.owner, found.provider) == (owner, provider)
        return found.burst_id if found and ours else None


def distinct(bursts: Iterable[OwnedBurst | None]) -> list[OwnedBurst]:
    """Return each burst once, in order; of several entries the last one."""
    found = {(b.owner, b.provider, b.burst_id): b for b in bursts if b is not None}
    return [found[key] for key in sorted(found)]


def parse_seconds(text: str) -> float:
    """Return the seconds in a tag or an annotation; 0 if it is no number.

    Somebody may have edited it.
    """
    try:
        return float(text)
    except ValueError:
        return 0.0
