# SPDX-License-Identifier: MIT
"""Sources of nodes, and why a job may not use one, by the facts of the source alone.

`PlanContext.why_not` asks all of these, and what the plan has given and bought so far.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from burst.core.money.budget import Commitment
from burst.core.plan.demands import Demand
from burst.core.plan.fit import NodePool, describe_need, nodes_needed
from burst.core.plan.limits import FurtherUse
from burst.core.plan.offers import ProviderOffer
from burst.model.burst import PRICE_SOURCES, BurstId, PriceSource, Tag
from burst.model.decision import OfferRejection
from burst.model.jobid import JobId
from burst.model.reason import Reason
from burst.model.repeat import MOST_REPEATS
from burst.model.request import BurstMode, BurstPreferences
from burst.model.shape import Shape


class Source(msgspec.Struct, kw_only=True):
    """Where a job may get nodes from: an offer, or a burst, live or of the plan. It has
    the facts that decide which jobs may.
    """

    provider: str
    offer: str
    """Name of the offer."""
    price: float = 0.0
    """Price for a node and hour."""
    priced_by: PriceSource = "offer"
    guests: bool | None = True
    """Whether jobs of guests can run on the nodes; None where an older record does not
    say it."""
    modes: tuple[BurstMode, ...] = ("joined",)
    spot: bool = False
    """Whether the cloud may take the nodes back."""
    lasts: float
    """For how many seconds jobs can run on it."""
    candidate: ProviderOffer | None = None
    """The offer by which its nodes are bought; None for a live burst that only lends
    what it has, or whose offer is gone."""
    isolated: bool = False
    """Whether a burst of it is isolated."""
    burst: BurstId | None = None
    """The live burst that it is; None for an offer and for a burst of the plan."""
    nodes: int = 0
    """How many nodes the burst has; 0 for an offer."""
    stays: float = 0.0
    """For how many seconds a live burst is kept anyway: by the time limits of its jobs,
    or while it is idle."""
    userids: frozenset[int] = frozenset()
    """The users for whose jobs it is; empty for the jobs of any user."""
    requester: int | None = None
    """The user who requested it and alone may use it, even where users share bursts;
    None if there is no such user."""
    tag: Tag | None = None
    """It takes only jobs with the same tag; None: only jobs without a tag."""
    bought: Commitment | None = None
    """What is reserved for a burst of the plan; None without budgets."""

    @property
    def key(self) -> str:
        """`provider/offer`, as people see it."""
        return f"{self.provider}/{self.offer}"

    def joined_by(self, demand: Demand) -> int:
        """Return how many of its nodes newly count against a job's user."""
        joins = bool(self.userids) and demand.userid not in self.userids
        return self.nodes if joins else 0


def new_burst(candidate: ProviderOffer, isolated: bool = False) -> Source:
    """Return the source that a new burst of an offer would be."""
    return Source(
        provider=candidate.provider,
        offer=candidate.offer.name,
        price=candidate.offer.price,
        priced_by=candidate.priced_by,
        guests=candidate.offer.guests,
        modes=candidate.offer.modes,
        spot=candidate.offer.spot,
        lasts=candidate.run_time,
        candidate=candidate,
        isolated=isolated,
    )


class LiveBurst(msgspec.Struct, kw_only=True):
    """A live burst that may take further jobs, and what they may still have of it."""

    source: Source
    jobs: frozenset[JobId] = frozenset()
    """The jobs that count on it."""
    idle: bool = False
    """Whether nothing runs on it and no job counts on it."""
    pool: NodePool

    @property
    def burst(self) -> BurstId:
        """Its id."""
        assert self.source.burst is not None
        return self.source.burst


class Portion(NamedTuple):
    """What a job would have of a source."""

    use: FurtherUse = FurtherUse()
    """What it uses of the limits; nothing where limits are checked elsewhere."""
    pieces: tuple[tuple[str, int], ...] = ()
    """The rank slot of each burst that is made or grows, empty for none, and how many
    nodes its provider is asked for."""
    before: int = 0
    """How many nodes a burst of the plan that grows has already."""
    later: bool = False
    """Whether it is promised to the job, which gets it once others have ended."""


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
