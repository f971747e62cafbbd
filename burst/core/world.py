# SPDX-License-Identifier: MIT
"""What a tick is told of the world: the lead, the providers, and calls of theirs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec

from burst.core.placement.slots import RankSlot
from burst.core.provider_health import Outcome, ProviderAnswer, Verb
from burst.model.burst import BurstId
from burst.model.lead import LeadIdentity, LeadView
from burst.provider import BurstStatus, Offer

# A burst is taken for gone once it is missing in so many observations in a row: APIs of
# clouds are eventually consistent, and one early answer must not end live bursts.
ABSENT_READS = 3
# While a provider deletes, `reap` is called again, at first after twice this, then
# after twice as long each time, up to _REAP_SLOWEST; in seconds.
_REAP_AGAIN = 0.1
_REAP_SLOWEST = 5.0


class LastCall(msgspec.Struct, frozen=True, kw_only=True):
    """The last call of a provider for one burst, since this daemon started."""

    verb: Verb
    done_at: float = 0.0
    outcome: Outcome = Outcome.PENDING
    note: str = ""
    attempts: int = 1
    """Calls of this method in a row."""
    retry_at: float = 0.0
    """It is not called again before; seconds since the epoch."""


def repeat_at(call: LastCall) -> float:
    """Return when the method may be called again; math.inf while it is being called."""
    if call.outcome is Outcome.PENDING:
        return math.inf
    if call.verb is not Verb.REAP:
        return call.retry_at
    wait = min(_REAP_SLOWEST, _REAP_AGAIN * 2.0 ** min(call.attempts, 10))
    return max(call.retry_at, call.done_at + wait)


class ProviderView(msgspec.Struct, frozen=True, kw_only=True):
    """What a provider answered last, and when."""

    offers: Sequence[Offer] | None = None
    """None as long as it has not answered."""
    statuses: Mapping[BurstId, BurstStatus] = {}
    absent: Mapping[BurstId, int] = {}
    """In how many observations in a row a burst is missing that was provisioned."""
    read_at: float = 0.0
    """When the last good observation began; 0 as long as there was none."""
    trouble: str = ""
    """Why the last observation failed; empty if it did not."""
    no_offers: str = ""
    """Why the last call of `offers` failed; empty if it did not."""


class World(msgspec.Struct, frozen=True, kw_only=True):
    """All that was read. What could not be read is None, and nothing rests on it."""

    identity: LeadIdentity
    slots: Sequence[RankSlot]
    lead: LeadView | None
    trouble: str = ""
    """Why the lead could not be read."""
    providers: Mapping[str, ProviderView] = {}
    """In the order of the settings; only those that are enabled."""
    places: Mapping[str, str] = {}
    """Where each provider makes bursts, as `Lease.place`."""
    calls: Mapping[BurstId, LastCall] = {}
    closing: bool = False
    """Whether the daemon takes all bursts down, and makes none."""
    answered: Sequence[ProviderAnswer] = ()
    """What was answered since the last tick."""


def observe(
    view: ProviderView,
    statuses: Sequence[BurstStatus],
    provisioned: Sequence[BurstId],
    began_at: float,
) -> ProviderView:
    """Return the view after an observation that began then and succeeded.

    `provisioned` are bursts that were provisioned before it began: it must show them.
    """
    found = {status.burst_id: status for status in statuses}
    absent = {
        burst: view.absent.get(burst, 0) + 1
        for burst in provisioned
        if burst not in found
    }
    return ProviderView(
        offers=view.offers,
        no_offers=view.no_offers,
        statuses=found,
        absent=absent,
        read_at=began_at,
    )
