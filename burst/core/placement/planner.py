# SPDX-License-Identifier: MIT
"""The planner: which provider, which rank slot, how many bursts, for which jobs.

Jobs that ask for the same are tried once: what failed for one fails for the next, as
nothing becomes free while a plan is made. So the time grows with the jobs, not with
jobs times offers times slots.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import msgspec

from burst.config import PlanSettings
from burst.core.isolated.placement import IsolatedPlacement
from burst.core.placement.demand import describe_need, nodes_needed
from burst.core.placement.leased_slots import LiveBursts
from burst.core.placement.live_nodes import LiveNodes
from burst.core.placement.offers import OfferCatalog
from burst.core.placement.plan import Demand, Plan, Proposal
from burst.core.placement.planned_bursts import DemandKey, PlannedBursts
from burst.core.placement.preferences import OfferSorter, WantedOffer
from burst.core.placement.reservation import SlotReservations
from burst.core.placement.run_time import RunTimes
from burst.core.placement.slot_choice import SlotChooser
from burst.core.placement.slot_index import SlotIndex
from burst.core.placement.trials import PlanTrials
from burst.model.burst import PRICE_SOURCES, Lease
from burst.model.decision import Decision, OfferRejection
from burst.model.jobid import JobId
from burst.model.lead import LeadIdentity
from burst.model.reason import Reason


class Planner:
    """Makes one plan. Place demands in the order in which they are to be served."""

    def __init__(
        self,
        index: SlotIndex,
        catalog: OfferCatalog,
        isolated_placement: IsolatedPlacement,
        live: LiveBursts,
        settings: PlanSettings,
    ) -> None:
        self._index = index
        self._catalog = catalog
        self._usage = isolated_placement.usage
        self._settings = settings
        self._trials = PlanTrials(catalog)
        self._slots = SlotChooser(index, self._trials, self._usage)
        self._isolated = isolated_placement
        self._refused: dict[DemandKey, Decision] = {}
        self._decisions: dict[JobId | None, Decision] = {}
        self._least_behind = math.inf
        self._run_times = RunTimes(
            catalog, [capacity.lasts for capacity in live.capacities]
        )
        self._reservations = SlotReservations(
            index, self._trials, self._run_times, self._usage, live
        )
        self._live = LiveNodes(
            live, index, self._run_times, self._reservations, settings
        )
        self._planned = PlannedBursts(
            index, self._trials, self._run_times, self._reservations, settings
        )
        self._sorter = OfferSorter(catalog)

    def make(self, demands: Iterable[Demand], lead: LeadIdentity, now: float) -> Plan:
        """Place all demands and return the plan. Deterministic."""
        ordered = list(demands)
        if self._live.any:
            for demand, least in zip(ordered, _least_behind(ordered), strict=True):
                self._least_behind = least
                self._place(demand)
        else:
            for demand in ordered:
                self._place(demand)
        proposals = [planned.propose(lead, now) for planned in self._planned.made]
        proposals += self._isolated.propose(lead.owner, now)
        for proposal in proposals:
            decision = _decide_proposed(proposal)
            jobs: list[JobId | None] = [*proposal.jobs] or [None]
            for job in jobs:
                self._decisions.setdefault(job, decision)
        return Plan(
            proposals=tuple(proposals),
            assignments=self._live.assignments,
            combined=self._live.combined,
            overtaken=self._reservations.overtaken,
            ending=frozenset(self._live.ending),
            awaited=self._live.awaited,
            reservation=self._reservations.made,
            decisions=self._decisions,
        )

    def _place(self, demand: Demand) -> None:
        """Place one demand where it costs least.

        That is on a live burst, then on a burst of this plan, then on a new one. Where
        it fits on none, rank slots are reserved for it, or it is refused.
        """
        brief = bool(self._reservations.made) and self._reservations.is_brief(demand)
        key = self._key(demand, brief)
        refused = self._refused.get(key)
        others = _may_use_other_bursts(demand)
        if refused:
            # A live burst that is not worth it to one job may be to another.
            if not (others and demand.live_worth and self._reuse(demand)):
                self._decisions[demand.job] = demand.not_worth or refused
            return
        if others and (self._reuse(demand) or self._planned.join(demand, key)):
            return
        if brief:
            # Until the other slots are free it may have those that are kept.
            self._reservations.lend()
        refused = self._combine_or_open(demand, key)
        if brief:
            self._reservations.withhold()
        if refused is None:
            return
        if demand.not_worth:
            self._decisions[demand.job] = demand.not_worth
            return
        reserved = self._reserve(demand, refused)
        if reserved is None:
            self._refused[key] = refused
        self._decisions[demand.job] = reserved or refused

    def _key(self, demand: Demand, brief: bool) -> DemandKey:
        """Return what demands have in common for which the plan has the same answer."""
        return (
            demand.request,
            demand.preferences,
            demand.userid,
            demand.coming,
            demand.isolated is not None,
            self._run_times.rank(demand),
            brief,
            *self._usage.purchases.key(demand),
        )

    def _reserve(self, demand: Demand, decision: Decision) -> Decision | None:
        """Keep slots for the first job that is refused; idle bursts make way."""
        spread = self._may_spread(demand)
        reserved = self._reservations.reserve(
            demand, decision, spread, self._planned.made
        )
        if reserved:
            self._live.make_way_for_first(demand)
        return reserved

    def _reuse(self, demand: Demand) -> bool:
        """Give the job to a live burst that has room for it now."""
        burst = self._live.reuse(demand)
        if burst is None:
            return False
        self._decisions[demand.job] = Decision(Reason.ASSIGNED, {"burst": burst})
        return True

    def _combine_or_open(self, demand: Demand, key: DemandKey) -> Decision | None:
        """Give a job idle nodes of several live bursts, new bursts, or some of both.

        Return why not, None if it did. What is idle and would serve a job behind it by
        itself is left to that, if the job can have new bursts instead.
        """
        spread = self._live.any and _may_combine(demand) and self._may_spread(demand)
        shares = self._live.idle_nodes(demand) if spread else []
        if not shares:
            return demand.not_worth or self._open(demand, key)
        idle = sum(len(ranks) for _, ranks in shares)
        rest = msgspec.structs.replace(demand, coming=demand.coming + idle)
        whole = nodes_needed(demand.request, shares[0][0].pool.shape) <= rest.coming
        if whole and self._live.buys(demand, shares):
            facts = {"burst": ", ".join(capacity.burst for capacity, _ in shares)}
            self._decisions[demand.job] = Decision(Reason.ASSIGNED, facts)
            self._live.give(demand, shares)
            return None
        if whole or demand.not_worth:
            return demand.not_worth or self._open(demand, key)
        if self._least_behind <= idle and self._open(demand, key) is None:
            return None
        before = self._usage.purchases.mark()
        if not self._live.buys(demand, shares):
            return self._open(demand, key)
        # Its user bears all nodes of a burst that the job joins, beside the new ones.
        bears = self._live.nodes_borne(demand, shares)
        self._usage.add_user(bears, demand.userid)
        refused = self._open(rest, key)
        self._usage.add_user(-bears, demand.userid)
        if refused is None:
            self._live.give(demand, shares)
        else:
            self._usage.purchases.go_back(before)
        return refused

    def _open(self, demand: Demand, key: DemandKey) -> Decision | None:
        """Make one burst or several for the job; return why not, None if it did."""
        refusals: list[OfferRejection] = []
        wanted = self._sorter.wanted(demand.preferences)
        needed = self._run_times.needed(demand)
        for offer in wanted.offers:
            refusal = offer.unwanted or self._try(offer, demand, key, needed)
            if refusal is None:
                return None
            refusals.append(refusal)
        isolated = wanted.some_isolated
        if not self._index and not isolated:
            return Decision(Reason.NO_SLOTS)
        refusals.extend(self._catalog.refusals)
        if not refusals:
            return Decision(Reason.NO_OFFERS)
        never = None if isolated else self._never(demand)
        if never:
            return Decision(*never, tuple(refusals))
        return Decision(Reason.TURNED_DOWN, {}, tuple(refusals))

    def _never(self, demand: Demand) -> tuple[Reason, dict[str, object]] | None:
        """Return why nothing could ever serve a demand, None if something could."""
        request, wanted = demand.request, self._sorter.wanted(demand.preferences)
        least = self._index.least_nodes(request)
        limit = self._usage.why_never(least, demand.userid)
        if limit:
            return Reason.OVER_LIMIT, limit
        if wanted.unread:
            # A job that is failed for what one more answer would show is lost.
            return None
        too_long = self._run_times.why_never(demand)
        if too_long:
            return Reason.TOO_LONG, too_long
        caps = wanted.most_nodes
        never = self._index.why_never(request, caps, self._may_spread(demand))
        if not caps or not never:
            return None
        reason, facts = never
        facts["want"] = describe_need(request)
        if reason is Reason.TOO_LARGE and max(caps.values()) >= least:
            # A lead can get further rank slots, a provider no further nodes.
            reason = Reason.NO_ROOM
        return reason, facts

    def _try(
        self, wanted: WantedOffer, demand: Demand, key: DemandKey, needed: float
    ) -> OfferRejection | None:
        """Take an offer that a job may have; return why not, None if it was taken.

        `needed` is for how many seconds a burst has to last for the job.
        """
        candidate = wanted.candidate
        tried = self._trials.why_tried(candidate)
        if tried:
            return tried
        if candidate.run_time < needed:
            return self._run_times.why_too_short(candidate, demand)
        if wanted.isolated:
            return self._isolated.take(candidate, demand, self._trials)
        refusal: OfferRejection | None = None
        for slot_class in self._index.free_classes(candidate.provider):
            shares = self._slots.choose(
                candidate, demand, slot_class, self._may_spread(demand)
            )
            if isinstance(shares, OfferRejection):
                refusal = shares
                continue
            sizes = tuple(nodes for _, nodes in shares)
            nodes = sum(sizes)
            too_much = (
                self._usage.refuse(candidate.key, sizes, 0)
                or self._usage.refuse_user(candidate.key, nodes, demand.userid)
                or self._usage.purchases.refuse(candidate, demand, nodes)
            )
            if too_much is None:
                for slot, _ in shares:
                    self._index.take(slot)
                self._planned.open(candidate, demand, key, shares)
                return None
            refusal = too_much
        return refusal or self._reservations.busy_or_kept(candidate.key)

    def _may_spread(self, demand: Demand) -> bool:
        return self._settings.spread and demand.preferences.where != "together"


def _least_behind(demands: Sequence[Demand]) -> list[float]:
    """Return for each demand the least `_least_nodes` of all those behind it."""
    least = [math.inf]
    for demand in reversed(demands):
        least.append(min(least[-1], _least_nodes(demand)))
    return least[-2::-1]


def _decide_proposed(proposal: Proposal) -> Decision:
    """Return the decision on the jobs that a burst is made for."""
    lease = proposal.lease
    facts = {
        "nodes": lease.nodes,
        "offer": f"{lease.provider}/{lease.offer}",
        "burst": lease.id,
        "price": _price_words(lease),
    }
    return Decision(Reason.PROPOSED, facts)


def _price_words(lease: Lease) -> str:
    """Return what a node of a burst costs, and where that comes from; or nothing."""
    words = []
    if lease.price:
        source = PRICE_SOURCES[lease.priced_by]
        words.append(f"at {lease.price:g} for a node and hour {source}")
    if lease.fee:
        words.append(f"with a fee of {lease.fee:g} for the burst and hour")
    return "".join(f", {each}" for each in words)


def _least_nodes(demand: Demand) -> float:
    """Return on how few idle nodes the job of a demand might start."""
    return (demand.request.nodes or 1) if demand.job is not None else math.inf


def _may_combine(demand: Demand) -> bool:
    """Tell whether a demand may be served by idle nodes of several bursts."""
    return demand.job is not None and demand.preferences.mode != "isolated"


def _may_use_other_bursts(demand: Demand) -> bool:
    """Tell whether a demand may be served by a burst that is made for another."""
    isolated = demand.preferences.mode == "isolated"
    return demand.job is not None and not demand.coming and not isolated
