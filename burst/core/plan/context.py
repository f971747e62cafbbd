# SPDX-License-Identifier: MIT
"""The inputs of one plan, and which of them each job may have, also by their time."""

from __future__ import annotations

import bisect
import math
from collections.abc import Mapping, Sequence
from functools import cache, cached_property

import msgspec

from burst.config import PlanSettings
from burst.core.plan.catalog import OfferCatalog
from burst.core.plan.constraints import Constraints
from burst.core.plan.demands import Demand
from burst.core.plan.limits import Usage
from burst.core.plan.offers import ProviderOffer
from burst.core.plan.rank_table import RankTable
from burst.core.plan.slot_ranks import SlotClass, by_need
from burst.core.plan.sources import (
    LiveBurst,
    Portion,
    Source,
    nodes_wanted,
    offered,
    reject,
    why_for_others,
    why_not_bought,
    why_not_worth,
    why_unwanted,
)
from burst.model.decision import OfferRejection
from burst.model.fsd import format_fsd
from burst.model.jobid import JobId
from burst.model.lead import LeadIdentity
from burst.model.reason import Reason
from burst.model.request import BurstPreferences


class PlanContext(msgspec.Struct, kw_only=True, dict=True):
    """The inputs of one plan. Making the plan changes the table, the usage, the
    failures and the pools of bursts.

    `why_not` is asked about everything that a job may get: a new burst that joins, an
    isolated one, one of the plan, a live one, further nodes of a live one, and
    promises. It does not check which ranks are free.
    """

    now: float
    identity: LeadIdentity
    catalog: OfferCatalog
    table: RankTable
    """All ranks of all slots."""
    usage: Usage
    """What is in use of limits and budgets; it grows as the plan is made."""
    live: Sequence[LiveBurst] = ()
    settings: PlanSettings = PlanSettings()
    unreadable: str = ""
    """Key of an isolated burst's record that cannot be read, which may be the burst of
    any job; empty if all can be."""
    overtaken: Mapping[JobId, int] = {}
    """By waiting job: how many of the nodes that it waits for earlier plans gave to
    other jobs; see `LiveNodes.overtaken`."""
    whole_nodes: bool = False
    """Whether the scheduler gives each job whole nodes."""

    @cached_property
    def constraints(self) -> Constraints:
        """Tells which ranks the constraints of jobs admit."""
        return Constraints(self.identity)

    @cached_property
    def run_times(self) -> RunTimes:
        """Tells how long bursts have to last for jobs, and which do."""
        return RunTimes(self)

    def admitted(self, demand: Demand) -> frozenset[int] | None:
        """Return the ranks that a job may have by its constraint; None for any."""
        return self.constraints.admitted_to(demand.request)

    def until(self, candidate: ProviderOffer, demand: Demand) -> float:
        """Return the latest time at which a job will have ended on a new burst."""
        return demand.end(self.now + candidate.offer.join_time)

    def may_spread(self, demand: Demand) -> bool:
        """Tell whether a job may have several bursts."""
        return self.settings.spread and demand.preferences.where != "together"

    def most_of(self, source: Source) -> int:
        """Return the most nodes that one burst of an offer may have."""
        assert source.candidate is not None
        return int(min(source.candidate.most, self.usage.largest_burst))

    def nodes(self, demand: Demand, source: Source) -> int:
        """Return how many nodes of an offer a job needs; 0 if it never gets so many."""
        assert source.candidate is not None
        most, total = self.most_of(source), source.candidate.offer.total or math.inf
        admitted, spread = self.admitted(demand), self.may_spread(demand)
        for kind, need in self.needs(demand, source):
            if isinstance(need, OfferRejection):
                continue
            ever = most
            if not source.isolated:
                ever = self.table.capacity(kind, admitted, most, spread=spread)
            if need <= min(ever, total):
                return need
        return 0

    def needs(
        self, demand: Demand, source: Source
    ) -> list[tuple[SlotClass, int | OfferRejection]]:
        """Return how many nodes a job needs of an offer in each kind of slots, or why
        none of them serve it; in the order of `by_need`.

        An isolated burst needs no slots: all its nodes are as the offer has them.
        """
        assert source.candidate is not None
        if source.isolated:
            shape = source.candidate.offer.shape
            return [((shape, frozenset()), nodes_wanted(demand, source, shape))]
        kinds = by_need(demand.lacks, self.table.classes(source.provider))
        return [(kind, nodes_wanted(demand, source, kind[0])) for kind in kinds]

    def could_have(self, demand: Demand, candidate: ProviderOffer) -> bool:
        """Tell whether a job could have all its nodes of an offer at some time."""
        source = offered(candidate, demand.preferences)
        unwanted = why_unwanted(demand.preferences, source)
        if unwanted or self._why_not_isolated(demand, source):
            return False
        return self.nodes(demand, source) > 0

    def why_not(
        self, demand: Demand, source: Source, portion: Portion | None = None
    ) -> OfferRejection | None:
        """Return why a job may not have nodes of a source; None if it may.

        The first reason counts. Without `portion` only the source itself is judged, not
        how much of it the job gets.
        """
        return (
            why_for_others(demand, source, share_users=self.settings.share_users)
            or why_unwanted(demand.preferences, source)
            or why_not_worth(demand, source)
            or self._not_tried(source)
            or self._too_short(demand, source)
            or self._why_not_isolated(demand, source)
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
            why_not_bought(source, portion, demand)
            or self._fails(source, portion)
            # It may last longer than a limit, which passes as other bursts end.
            or self._over_budget(source, portion, demand)
            or self.usage.why_not(portion.use)
        )

    def _not_tried(self, source: Source) -> OfferRejection | None:
        """Refuse a new burst of an offer that failed and is not tried now."""
        if source.candidate is None or source.nodes:
            return None
        return self.catalog.failures.why_not(source.candidate)

    def _why_not_isolated(
        self, demand: Demand, source: Source
    ) -> OfferRejection | None:
        """Return why a job may not have an isolated burst; None for others.

        How many nodes there are is not checked.
        """
        if not source.isolated:
            return None
        if self.identity.may_be_guest(demand.userid):
            # The guest's program would have the rights of the owner's user, and could
            # read what that user may read there, such as a munge key.
            return reject(source, Reason.ISOLATED_OF_GUEST)
        if demand.isolated is None:
            return reject(source, Reason.NOT_HELD)
        if self.unreadable:
            return reject(source, Reason.LOST_RECORD, key=self.unreadable)
        if demand.rest is not None:
            # The isolated burst would have all its nodes, and the others cost money.
            return reject(source, Reason.HAS_NODES)
        return None

    def _too_short(self, demand: Demand, source: Source) -> OfferRejection | None:
        # No job gets a burst that cannot be online before its lead ends.
        lasts = source.lasts > 0 or demand.job is None
        if lasts and source.lasts >= self.run_times.needed(demand):
            return None
        # Without the job's time limit: other jobs of its kind share the reason.
        most = format_fsd(source.lasts)
        return reject(source, Reason.LEASE_SHORT, most=most)

    def _fails(self, source: Source, portion: Portion) -> OfferRejection | None:
        candidate, failures = source.candidate, self.catalog.failures
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
            return reject(source, Reason.ON_TRIAL, what=source.key)
        return None

    def _over_budget(
        self, source: Source, portion: Portion, demand: Demand | None
    ) -> OfferRejection | None:
        purchases = self.usage.purchases
        if not purchases.limited:
            return None
        nodes = sum(nodes for _, nodes in portion.pieces)
        if source.burst is not None and nodes:
            return purchases.refuse_growth(source.burst, source.key, nodes)
        assert demand is not None  # only growth is asked for without a job or a request
        if source.burst is not None:
            return purchases.refuse_use(demand, source.burst, source.key)
        assert source.candidate is not None
        nodes = nodes or source.nodes
        return purchases.refuse(
            source.candidate, demand, nodes, source.bought, later=portion.later
        )


class RunTimes:
    """How long bursts have to last for the jobs of one plan, and how long they do."""

    def __init__(self, context: PlanContext) -> None:
        self._context = context
        by_time = sorted(context.catalog.known, key=lambda each: -each.run_time)
        self._longest_first = by_time
        live = (each.source.lasts for each in context.live)
        self._lasts = sorted({*live, *(each.run_time for each in by_time)})
        self._longest: dict[object, float] = {}
        self._may_have = cache(self._offers_of)

    def needed(self, demand: Demand) -> float:
        """Return for how many seconds a burst has to last for a job.

        A job without a time limit goes where leases never end, if there is such an
        offer that it could have. If all those leases end, half of the longest one has
        to be left.
        """
        if demand.duration or demand.job is None:
            return demand.duration
        longest = self._longest_offered(demand)
        return longest if math.isinf(longest) else longest / 2

    def rank(self, demand: Demand) -> int:
        """Return a number that is equal for jobs that the same bursts last for."""
        return bisect.bisect_left(self._lasts, self.needed(demand))

    def why_never(self, demand: Demand) -> dict[str, object] | None:
        """Return why no offer could ever last for a job, as facts; None if one may.

        Also None if it may have no offer at all: then time is not the reason. The end
        of the lead itself does not count: it comes nearer while a job waits, and may be
        put off.
        """
        lasts = [each.longest for each in self._may_have(demand.preferences)]
        if max(lasts, default=math.inf) >= demand.duration:
            return None
        return {"most": format_fsd(max(lasts))}

    def _longest_offered(self, demand: Demand) -> float:
        """Return how many seconds the longest offer lasts that a job could have.

        If it could have none, all offers of its providers tell how long bursts last.
        """
        offers = self._may_have(demand.preferences)
        longest = offers[0].run_time if offers else 0.0
        if not offers or offers[-1].run_time == longest:
            return longest
        key = (
            demand.preferences,
            demand.request,
            demand.rest,
            demand.isolated is None,
            demand.userid,
        )
        found = self._longest.get(key)
        if found is None:
            could = (each for each in offers if self._context.could_have(demand, each))
            found = next((each.run_time for each in could), longest)
            self._longest[key] = found
        return found

    def _offers_of(self, preferences: BurstPreferences) -> Sequence[ProviderOffer]:
        """Return the offers of the providers that a job may have, the longest first."""
        offers = self._longest_first
        return [each for each in offers if preferences.takes(each.provider)]
