# SPDX-License-Identifier: MIT
"""Tells by the facts of a source alone why a job may not have nodes of it.

`PlanContext.why_not` asks all of these, and what the plan has given and bought so far.
"""

from __future__ import annotations

from burst.core.plan.demands import Demand
from burst.core.plan.fit import describe_need, nodes_needed
from burst.core.plan.offers import ProviderOffer
from burst.core.plan.sources import Portion, Source, new_burst
from burst.model.burst import PRICE_SOURCES
from burst.model.decision import OfferRejection
from burst.model.lead import LeadIdentity
from burst.model.reason import Reason
from burst.model.repeat import MOST_REPEATS
from burst.model.request import BurstMode, BurstPreferences
from burst.model.shape import Shape


def why_for_others(
    demand: Demand, source: Source, *, share_users: bool
) -> OfferRejection | None:
    """Return that a live burst, or one of the plan, is only for other jobs."""
    if not source.nodes:
        return None
    apart = not share_users and bool(source.userids)
    if (
        source.tag != demand.tag
        or source.requester not in (None, demand.userid)
        or (apart and source.userids != {demand.userid})
    ):
        return reject(source, Reason.FOR_OTHERS)
    unknown = demand.preferences.guest and source.guests is None
    if unknown and demand.userid not in source.userids:
        # Nodes that were made for a guest can run its jobs.
        return reject(source, Reason.NO_GUESTS)
    return None


def nodes_wanted(demand: Demand, source: Source, shape: Shape) -> int | OfferRejection:
    """Return how many more nodes of a shape the job needs of an offer, or why none do.

    The shape is that of a rank slot, or of an isolated burst's nodes.
    """
    assert source.candidate is not None
    sold = source.candidate.offer.shape
    if not sold.holds(shape):
        return reject(source, Reason.SHAPE_MISMATCH, has=str(sold), want=str(shape))
    # An isolated burst has all nodes of its job.
    lacks = demand.request if source.isolated else demand.lacks
    need = nodes_needed(lacks, shape)
    if not need:
        small = Reason.OFFER_SMALL if source.isolated else Reason.NODE_SMALL
        want = describe_need(demand.request)
        return reject(source, small, has=str(shape), want=want)
    return need


def burst_mode(
    preferences: BurstPreferences, modes: tuple[BurstMode, ...]
) -> BurstMode | None:
    """Return the mode of an offer's burst for a job; None if the offer lacks that mode.

    `modes` are the modes of the offer.
    """
    if not preferences.mode:
        return modes[0]
    return preferences.mode if preferences.mode in modes else None


def offered(candidate: ProviderOffer, preferences: BurstPreferences) -> Source:
    """Return the source that a new burst of an offer would be for a job."""
    mode = burst_mode(preferences, candidate.offer.modes)
    return new_burst(candidate, mode == "isolated")


def why_unwanted(
    preferences: BurstPreferences, source: Source
) -> OfferRejection | None:
    """Return why a job does not want nodes of a source, None if it does."""
    provider, offer = preferences.provider, preferences.offer
    if provider not in {"", source.provider}:
        return reject(source, Reason.OTHER_PROVIDER, preferred=provider)
    if offer not in {"", source.offer}:
        return reject(source, Reason.OTHER_OFFER, preferred=offer)
    if not preferences.takes(source.provider):
        rule, allowed = preferences.rule, ", ".join(preferences.allowed)
        return reject(source, Reason.RULE_PROVIDER, rule=rule, allowed=allowed)
    return _too_dear(preferences, source) or _why_of_no_use(preferences, source)


def why_not_isolated(
    demand: Demand, source: Source, lead: LeadIdentity, unreadable: str
) -> OfferRejection | None:
    """Return why a job may not have an isolated burst; None if it is none, or it may.

    `unreadable` is the key of an isolated burst's record that cannot be read, which may
    be the burst of any job; empty if all can be. How many nodes there are is not
    checked.
    """
    if not source.isolated:
        return None
    if lead.may_be_guest(demand.userid):
        # The guest's program would have the rights of the owner's user, and could
        # read what that user may read there, such as a munge key.
        return reject(source, Reason.ISOLATED_OF_GUEST)
    if demand.isolated is None:
        return reject(source, Reason.NOT_HELD)
    if unreadable:
        return reject(source, Reason.LOST_RECORD, key=unreadable)
    if demand.rest is not None:
        # The isolated burst would have all its nodes, and the others cost money.
        return reject(source, Reason.HAS_NODES)
    return None


def _too_dear(preferences: BurstPreferences, source: Source) -> OfferRejection | None:
    """Return that a node costs more than the job or its rule pays; None if it does not.

    If both have a highest price, the lower one counts.
    """
    most, allowed = preferences.max_price, preferences.allowed_price
    by_rule = allowed is not None and (most is None or allowed <= most)
    most = allowed if by_rule else most
    if most is None or source.price <= most:
        return None
    priced, rule = PRICE_SOURCES[source.priced_by], preferences.rule
    facts = {"price": source.price, "source": priced, "most": most, "rule": rule}
    why = Reason.RULE_PRICE if by_rule else Reason.PRICE_TOO_HIGH
    return OfferRejection(source.key, why, facts)


def _why_of_no_use(
    preferences: BurstPreferences, source: Source
) -> OfferRejection | None:
    """Return why the job could not run as it has to on nodes of a source."""
    if preferences.guest and source.guests is False:
        # Its nodes would cost money, and the job would fail on them.
        return reject(source, Reason.NO_GUESTS)
    if burst_mode(preferences, source.modes) is None:
        isolated = preferences.mode == "isolated"
        return reject(source, Reason.NOT_ISOLATED if isolated else Reason.NOT_JOINED)
    if source.spot and preferences.losses >= MOST_REPEATS:
        return reject(source, Reason.SPOT, losses=preferences.losses)
    return None


def reject(source: Source, reason: Reason, **facts: object) -> OfferRejection:
    """Return that a source is refused for this reason."""
    return OfferRejection(source.key, reason, facts)


def why_not_worth(demand: Demand, source: Source) -> OfferRejection | None:
    """Return that a live burst is not worth to a job what it takes to keep it."""
    worth = demand.live_worth
    if source.burst is None or worth is None or worth.pays(source.nodes, source.stays):
        return None
    return reject(source, Reason.KEEPING_NOT_WORTH)


def why_not_bought(
    source: Source, portion: Portion, demand: Demand | None
) -> OfferRejection | None:
    """Refuse further nodes that are not offered, or may not be bought for the job."""
    if not portion.pieces:
        return None
    if source.candidate is None:
        return reject(source, Reason.NOT_OFFERED)
    if demand is not None and demand.not_bought is not None:
        return reject(source, Reason.NOT_BOUGHT)
    need, most = max(portion.use.sizes, default=0), source.candidate.offer.max_nodes
    if need > most:
        return reject(source, Reason.FEW_NODES, most=most, need=need)
    return None
