# SPDX-License-Identifier: MIT
"""A provider around another, for tests in which some of its calls fail."""

from __future__ import annotations

from collections.abc import Sequence

from burst.model.burst import BurstId
from burst.provider import BurstSpec, BurstStatus, Offer, Provider


class WrappedProvider(Provider):
    """Passes the four required methods on; a subclass overrides some of them.

    It has no optional method. A subclass may die in `provision`, for
    `Backend.crashing`.
    """

    def __init__(self, provider: Provider) -> None:
        self.provider = provider

    def offers(self) -> Sequence[Offer]:
        """Return what the other offers."""
        return self.provider.offers()

    def provision(self, spec: BurstSpec) -> None:
        """Have the other make the burst."""
        self.provider.provision(spec)

    def observe(self) -> Sequence[BurstStatus]:
        """Return what the other observes."""
        return self.provider.observe()

    def reap(self, burst_id: BurstId) -> None:
        """Have the other delete the burst."""
        self.provider.reap(burst_id)
