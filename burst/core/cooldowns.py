# SPDX-License-Identifier: MIT
"""Sets aside offers and kinds of bursts that failed, for a while."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from burst.config import LimitSettings, ProviderTable
from burst.core.provider_health import (
    MOST_TIMES,
    FailureKind,
    FailureRecord,
    Health,
    failures_by_now,
    refused_again,
    row_key,
)
from burst.model.backoff import backoff
from burst.model.burst import Lease
from burst.model.event import cut

# The most refused specs that are remembered of a provider.
_MOST_SPECS = 100
# The longest reason why an offer was set aside, in characters; the rest is cut.
_LONGEST_WHY = 200
LONGEST_RULE = 600
"""The longest reason why a spec was refused, in characters: the text of a policy comes
last in it."""
_DIGEST = 12


def cool_down(
    health: Health, offer: str, limits: LimitSettings, now: float, nodes: int = 0
) -> Health:
    """Set aside an offer for a while; twice as long each time it fails again.

    To make and delete the same cluster again and again would cost money without use.
    `nodes` is the size of a burst for which there was no capacity, 0 for other
    failures: a smaller burst may still be possible. Failures are counted anew for a
    smaller size, and once a time as long as the longest pause has passed since the
    last pause. Failures of requests from before the offer was set aside are not
    counted.
    """
    known = health.row(FailureKind.OFFER, offer)
    if known is not None and nodes < known.nodes:
        known = None
    if known is not None and known.covers(nodes, now):
        nodes = known.nodes
    failures = failures_by_now(known, now, limits.cooldown * MOST_TIMES)
    entry = FailureRecord(failures, now + _pause(limits.cooldown, failures), nodes)
    return health.noting(FailureKind.OFFER, offer, entry)


def explain(health: Health, offer: str, why: str) -> Health:
    """Note why an offer was set aside just now."""
    row = health.rows[row_key(FailureKind.OFFER, offer)]
    row = msgspec.structs.replace(row, why=cut(why, _LONGEST_WHY))
    return health.noting(FailureKind.OFFER, offer, row)


def pause_reclaimed(
    health: Health, lease: Lease, limits: LimitSettings, now: float
) -> Health:
    """Set aside an offer, for bursts of this size or larger, for one cooldown.

    The cloud took nodes back before the burst was online: it has none to spare now, and
    another attempt at once would cost money without use. This does not count as a
    failure, so the pause does not grow.
    """
    known = health.row(FailureKind.OFFER, lease.offer) or FailureRecord(0)
    until = now + limits.cooldown
    if known.until >= until and known.nodes <= lease.nodes:
        return health
    entry = FailureRecord(known.failures, until, lease.nodes)
    return health.noting(FailureKind.OFFER, lease.offer, entry)


def count_unusable(
    health: Health, offer: str, why: str, limits: LimitSettings, now: float
) -> Health:
    """Count a burst that came online and could run no job.

    The second such burst in a row, and each after it, sets the offer aside; twice as
    long each time. A burst that comes online does not reset the count, as only online
    bursts can fail like this.
    """
    known = health.row(FailureKind.UNUSABLE, offer)
    failures = failures_by_now(known, now, limits.cooldown * MOST_TIMES)
    until = now + _pause(limits.cooldown, failures - 1) if failures > 1 else 0.0
    entry = FailureRecord(failures, until, why=why, at=now)
    return health.noting(FailureKind.UNUSABLE, offer, entry)


def forgive(health: Health, lease: Lease) -> Health:
    """Forget failures of an offer and of equal bursts after such a burst came online.

    A lack of capacity for a larger burst is not forgotten. This also ends the trial of
    the provider.
    """
    own = (spec_key(lease.offer, lease.slot, lease.nodes), spec_key(lease.offer))
    health = health.without(FailureKind.SPEC, *own)
    aside = health.row(FailureKind.OFFER, lease.offer)
    if aside is not None and aside.nodes <= lease.nodes:
        health = health.without(FailureKind.OFFER, lease.offer)
    return msgspec.structs.replace(health, trial=False)


def regain_capacity(health: Health, lease: Lease, now: float) -> Health:
    """Allow larger bursts of an offer without capacity, as a burst of it has gone.

    The nodes of that burst are available besides those that were available before.
    Still larger bursts wait for the end of the cooldown.
    """
    known = health.row(FailureKind.OFFER, lease.offer)
    if known is None or not known.nodes or known.until <= now:
        return health
    entry = msgspec.structs.replace(known, nodes=known.nodes + lease.nodes)
    return health.noting(FailureKind.OFFER, lease.offer, entry)


def spec_key(offer: str, slot: str = "", nodes: int = 0) -> str:
    """Return the key of a kind of bursts: those that differ only in their ids.

    Without slot and size it is the key of all bursts of an offer.
    """
    return f"{offer}/{slot}/{nodes}"


def refused_specs(health: Health, offer: str) -> list[dict[str, Any]]:
    """Return the kinds of bursts of an offer that are set aside, ready for JSON.

    `until`, in seconds since the epoch, may be in the past. An entry without slot and
    size is for all bursts of the offer.
    """
    found = []
    for key, spec in health.rows_of(FailureKind.SPEC).items():
        name, slot, nodes = key.rsplit("/", 2)
        if name == offer:
            told = {"slot": slot, "nodes": int(nodes), "until": spec.until}
            found.append({**told, "why": spec.why})
    return found


def refuse_spec(
    health: Health, lease: Lease, why: str, limits: LimitSettings, now: float
) -> Health:
    """Set aside a kind of bursts; twice as long each time it is refused again.

    Not for isolated bursts: the refusal may be due to the program, which is the job's.
    """
    if lease.isolated:
        return health
    key = spec_key(lease.offer, lease.slot, lease.nodes)
    return _refuse(health, key, why, limits, now)


def refuse_offer(
    health: Health, lease: Lease, why: str, limits: LimitSettings, now: float
) -> Health:
    """Set aside all bursts of an offer, as `refuse_spec`: a rule forbids its nodes.

    Not for a burst with an image of its own: the rule may forbid only the image.
    """
    if lease.isolated or lease.image:
        return health
    return _refuse(health, spec_key(lease.offer), why, limits, now)


def forget_other_table(health: Health, table: ProviderTable) -> Health:
    """Forget the failures of a provider if its table in the settings has changed.

    What failed with the old table, such as a wrong key, may work with the new one.
    """
    if health.is_default:
        return Health()
    encoded = msgspec.json.encode(table, order="deterministic", enc_hook=str)
    digest = hashlib.sha256(encoded).hexdigest()[:_DIGEST]
    if health.table in ("", digest):
        return msgspec.structs.replace(health, table=digest)
    return Health()


def _refuse(
    health: Health, key: str, why: str, limits: LimitSettings, now: float
) -> Health:
    known = health.row(FailureKind.SPEC, key)
    entry = refused_again(known, cut(why, LONGEST_RULE), limits, now)
    others = health.without(FailureKind.SPEC, key)
    oldest = [*others.rows_of(FailureKind.SPEC)][: 1 - _MOST_SPECS]
    others = others.without(FailureKind.SPEC, *oldest)
    return others.noting(FailureKind.SPEC, key, entry)


def _pause(first: float, failures: int) -> float:
    return backoff(first, failures, longest=first * MOST_TIMES)
