# SPDX-License-Identifier: MIT
"""Tags by which a provider finds again what it has made in a cloud, whoever asks.

Kubernetes' labels have kits of their own (`burst.kits.pods`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from burst.model.burst import BurstId
from burst.provider import OwnedBurst


class ResourceTags(msgspec.Struct, frozen=True):
    """The keys of the tags."""

    owner: str
    provider: str
    burst: str
    lease_end: str
    """Of seconds since the epoch; a thing may have no such tag."""

    def owned(self, tags: Mapping[str, str]) -> OwnedBurst | None:
        """Return of which burst a thing with these tags is; None if it is of none."""
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
        """Return of which burst of this owner and provider it is; None if of none."""
        found = self.owned(tags)
        ours = found and (found.owner, found.provider) == (owner, provider)
        return found.burst_id if found and ours else None


def distinct(bursts: Iterable[OwnedBurst | None]) -> list[OwnedBurst]:
    """Return each burst once, in order; of several the last."""
    found = {(b.owner, b.provider, b.burst_id): b for b in bursts if b is not None}
    return [found[key] for key in sorted(found)]


def parse_seconds(text: str) -> float:
    """Return seconds that a tag or an annotation has; 0 if it has none.

    Somebody may have edited it.
    """
    try:
        return float(text)
    except ValueError:
        return 0.0
