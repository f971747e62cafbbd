# SPDX-License-Identifier: MIT
"""Tells whether a job may have nodes of an offer or of a burst, and why not.

`Eligibility.why_not` is asked about everything that a job may get: a new burst that
joins, an isolated one, one of the plan, a live one, further nodes of a live one, and
promises. It does not check which ranks are free.
"""

from __future__ import annotations

from typing import NamedTuple

from burst.core.plan.catalog import OfferCatalog
from burst.core.plan.demands import Demand
from burst.core.plan.fit import describe_need, nodes_needed
from burst.core.plan.limits import Usage
from burst.core.plan.run_time import RunTimes
from burst.core.plan.sources import Portion, Source
from burst.model.burst import PRICE_SOURCES
from burst.model.decision import OfferRejection
from burst.model.fsd import format_fsd
from burst.model.lead import LeadIdentity
from burst.model.reason import Reason
from burst.model.repeat import MOST_REPEATS
from burst.model.request import BurstMode, BurstPreferences
from burst.model.shape import Shape


class IsolatedFacts(NamedTuple):
    """What decides whether a job may have an isolated burst."""

    identity: LeadIdentity
    unreadable: str = ""
    """The key of an isolated burst's record that cannot be read, empty if all can be.
    It may be the burst of any job, so no isolated burst is made for a job meanwhile."""


class Eligibility:
    """Tells which jobs may have nodes of which sources, in one plan."""

    def __init__(
        self,
        catalog: OfferCatalog,
        usage: Usage,
        isolated: IsolatedFacts,
        *,
        share_users: bool,
        run_times: RunTimes | None = None,
    ) -> None:
        self.catalog, self.failures = catalog, catalog.failures
        self.usage = usage
        self.run_times = run_times or RunTimes(catalog)
        self.isolated = isolated
        self._share_users = share_users

    def why_not(
        self, demand: Demand, source: Source, portion: Portion | None = None
    ) -> OfferRejection | None:
        """Return why a job may not have nodes of a source; None if it may.

        The first reason counts. Without `portion` only the source itself is judged, not
        how much of it the job gets.
        """
        return (
            self._of_others(demand, source)
            or why_unwanted(demand.preferences, source)
            or _not_worth(demand, source)
            or self._not_tried(source)
            or self._too_short(demand, source)
            or why_not_isolated(demand, source, self.isolated)
            or (
                None
                if portion is None
                else self.why_not_so_much(source, portion, demand)
            )
        )

    def why_not_so_much(
        self, source: Source, portion: Portion, demand: Demand | None = None
    ) -> OfferRejection | None:
        """Return why so much of a source may not be given to anybody; None if it may.

        `demand` is None if a burst grows without a job that asks for it.
        """
        return (
            _not_bought(source, portion, demand)
            or self._fails(source, portion)
            # It may last longer than a limit, which passes as other bursts end.
            or self._over_budget(source, portion, demand)
            or self.usage.why_not(portion.use)
        )

    def _of_others(self, demand: Demand, source: Source) -> OfferRejection | None:
        """Refuse a live burst, or one of the plan, that is only for other jobs."""
        if not source.nodes:
            return None
        apart = not self._share_users and bool(source.userids)
        if (
            source.tag != demand.tag
            or source.requester not in (None, demand.userid)
            or (apart and source.userids != {demand.userid})
        ):
            return _reject(source, Reason.FOR_OTHERS)
        unknown = demand.preferences.guest and source.guests is None
        if unknown and demand.userid not in source.userids:
            # Nodes that were made for a guest can run its jobs.
            return _reject(source, Reason.NO_GUESTS)
        return None

    def _not_tried(self, source: Source) -> OfferRejection | None:
        """Refuse a new burst of an offer that failed and is not tried now."""
        if source.candidate is None or source.nodes:
            return None
        return self.failures.why_not(source.candidate)

    def _too_short(self, demand: Demand, source: Source) -> OfferRejection | None:
        # No job gets a burst that cannot be online before its lead ends.
        lasts = source.lasts > 0 or demand.job is None
        if lasts and source.lasts >= self.run_times.needed(demand):
            return None
        # Without the job's time limit: other jobs of its kind share the reason.
        most = format_fsd(source.lasts)
        return _reject(source, Reason.LEASE_SHORT, most=most)

    def _fails(self, source: Source, portion: Portion) -> OfferRejection | None:
        candidate, failures = source.candidate, self.failures
        if candidate is None or not portion.pieces:
            return None
        for slot, nodes in portion.pieces:
            rejection = failures.why_not(candidate, slot, nodes, portion.before)
            if rejection is not None:
                return rejection
        # A growth does not show whether the offer works. A new burst does, once its
        # nodes are online.
        grows = source.burst is not None and failures.awaits_trial(candidate)
        if grows or (portion.later and failures.tries(candidate.provider)):
            return _reject(source, Reason.ON_TRIAL, what=source.key)
        return None

    def _over_budget(
        self, source: Source, portion: Portion, demand: Demand | None
    ) -> OfferRejection | None:
        purchases = self.usage.purchases
        nodes = sum(nodes for _, nodes in portion.pieces)
        if source.burst is not None and nodes:
            return purchases.refuse_growth(source.burst, source.key, nodes)
        assert demand is not None  # only growth is asked for without a job or a request
        if source.burst is not None:
            return purchases.refuse_use(demand, source.burst, source.key)
        assert source.candidate is not None
        nodes = nodes or source.nodes
        return purchases.refuse(source.candidate, demand, nodes, source.bought)


def nodes_wanted(demand: Demand, source: Source, shape: Shape) -> int | OfferRejection:
    """Return how many more nodes of a shape the job needs of an offer, or why none do.

    The shape is that of a rank slot, or of an isolated burst's nodes.
    """
    assert source.candidate is not None
    sold = source.candidate.offer.shape
    if not sold.holds(shape):
        return _reject(source, Reason.SHAPE_MISMATCH, has=str(sold), want=str(shape))
    # An isolated burst has all nodes of its job.
    lacks = demand.request if source.isolated else demand.lacks
    need = nodes_needed(lacks, shape)
    if not need:
        small = Reason.OFFER_SMALL if source.isolated else Reason.NODE_SMALL
        want = describe_need(demand.request)
        return _reject(source, small, has=str(shape), want=want)
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


def why_unwanted(
    preferences: BurstPreferences, source: Source
) -> OfferRejection | None:
    """Return why a job does not want nodes of a source, None if it does."""
    provider, offer = preferences.provider, preferences.offer
    if provider not in {"", source.provider}:
        return _reject(source, Reason.OTHER_PROVIDER, preferred=provider)
    if offer not in {"", source.offer}:
        return _reject(source, Reason.OTHER_OFFER, preferred=offer)
    if not preferences.takes(source.provider):
        rule, allowed = preferences.rule, ", ".join(preferences.allowed)
        return _reject(source, Reason.RULE_PROVIDER, rule=rule, allowed=allowed)
    return _too_dear(preferences, source) or _why_of_no_use(preferences, source)


def why_not_isolated(
    demand: Demand, source: Source, facts: IsolatedFacts
) -> OfferRejection | None:
    """Return why a job may not have an isolated burst; None if it is none, or it may.

    How many nodes there are is not checked.
    """
    if not source.isolated:
        return None
    if facts.identity.may_be_guest(demand.userid):
        # The guest's program would have the rights of the owner's user, and could
        # read what that user may read there, such as a munge key.
        return _reject(source, Reason.ISOLATED_OF_GUEST)
    if demand.isolated is None:
        return _reject(source, Reason.NOT_HELD)
    if facts.unreadable:
        return _reject(source, Reason.LOST_RECORD, key=facts.unreadable)
    if demand.rest is not None:
        # The isolated burst would have all its nodes, and the others cost money.
        return _reject(source, Reason.HAS_NODES)
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
        return _reject(source, Reason.NO_GUESTS)
    if burst_mode(preferences, source.modes) is None:
        isolated = preferences.mode == "isolated"
        return _reject(source, Reason.NOT_ISOLATED if isolated else Reason.NOT_JOINED)
    if source.spot and preferences.losses >= MOST_REPEATS:
        return _reject(source, Reason.SPOT, losses=preferences.losses)
    return None


def _reject(source: Source, reason: Reason, **facts: object) -> OfferRejection:
    return OfferRejection(source.key, reason, facts)


def _not_worth(demand: Demand, source: Source) -> OfferRejection | None:
    worth = demand.live_worth
    if source.burst is None or worth is None or worth.pays(source.nodes, source.stays):
        return None
    return _reject(source, Reason.KEEPING_NOT_WORTH)


def _not_bought(
    source: Source, portion: Portion, demand: Demand | None
) -> OfferRejection | None:
    """Refuse further nodes that are not offered, or may not be bought for the job."""
    if not portion.pieces:
        return None
    if source.candidate is None:
        return _reject(source, Reason.NOT_OFFERED)
    if demand is not None and demand.not_bought is not None:
        return _reject(source, Reason.NOT_BOUGHT)
    need, most = max(portion.use.sizes, default=0), source.candidate.offer.max_nodes
    if need > most:
        return _reject(source, Reason.FEW_NODES, most=most, need=need)
    return None
