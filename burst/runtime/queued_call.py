# SPDX-License-Identifier: MIT
"""One call of a provider, as it waits and is made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from burst.core.provider_health import Verb
from burst.errors import SpecRefused
from burst.model.burst import BurstId
from burst.provider import BurstSpec, Provider
from burst.provider_answers import check_offers, check_statuses


class QueuedCall(msgspec.Struct, frozen=True, kw_only=True):
    """One call of a provider's method."""

    provider: str
    verb: Verb
    burst: BurstId | None = None
    orphan: bool = False
    """Whether the burst is an orphan, which no record explains."""
    force: bool = False
    """For `reap`: a person wants it not to wait for a host that does not answer."""
    spec: BurstSpec | SpecRefused | None = None
    """For `provision` and `resize`; SpecRefused, which the call then raises, if no spec
    could be made."""
    generation: int = 0
    """Number of the provider object: a reload that replaces it raises the number."""
    providers: Mapping[str, Provider]
    """By name. Read when the call runs: a call that waited for another is for the
    provider that the settings name by then."""

    def run(self) -> Any:
        """Call the method. Raises BadAnswer, and what the method raises."""
        provider = self.providers[self.provider]
        match self.verb:
            case Verb.OFFERS:
                return read_offers(provider)
            case Verb.OBSERVE:
                return read_statuses(provider)
            case Verb.PROVISION:
                if isinstance(self.spec, SpecRefused):
                    raise self.spec
                assert self.spec is not None
                provider.provision(self.spec)
            case Verb.RESIZE:
                assert isinstance(self.spec, BurstSpec)
                if not provider.has("resize"):
                    raise SpecRefused(f"{self.provider} cannot resize bursts")
                provider.resize(self.spec)
            case Verb.REAP:
                assert self.burst is not None
                if self.force and provider.has("force_reap"):
                    provider.force_reap(self.burst)
                else:
                    provider.reap(self.burst)
        return None


def read_offers(provider: Provider) -> Any:
    """Return the checked offers. Raises BadAnswer, and what `offers` raises."""
    return check_offers(provider.offers())


def read_statuses(provider: Provider) -> Any:
    """Return the checked statuses. Raises BadAnswer, and what `observe` raises."""
    return check_statuses(provider.observe())
