# SPDX-License-Identifier: MIT
"""The planner: which provider, which rank slot, how many bursts, for which jobs.

Jobs that ask for the same are tried once: what failed for one fails for the next, as
nothing becomes free while a plan is made. So the time grows with the jobs, not with
jobs times offers times slots.
"""

from __future__ import annotations

from collections.abc import Iterable

from burst.config import PlanSettings
from burst.core.isolated.placement import IsolatedPlacement, burst_mode
from burst.core.placement.demand import NodePool, describe_need, nodes_needed
from burst.core.placement.leased_slots import LiveBursts
from burst.core.placement.offers import OfferCatalog, ProviderOffer
from burst.core.placement.plan import BurstCapacity, Demand, Plan, PlannedBurst
from burst.core.placement.preferences import accepts, why_unwanted
from burst.core.placement.reservation import SlotReservations
from burst.core.placement.run_time import RunTimes
from burst.core.placement.slot_choice import SlotChooser
from burst.core.placement.slot_index import SlotClass, SlotIndex, SlotShare
from burst.model.burst import BurstId
from burst.model.decision import Decision, OfferRejection
from burst.model.jobid import JobId
from burst.model.reason import Reason

# How many bursts with room are looked at before a job gets one of its own.
_LOOK_BACK = 64
_Key = tuple[object, ...]


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
        self._capacities = live.capacities
        self._settings = settings
        self._slots = SlotChooser(index, catalog, self._usage)
        self._isolated = isolated_placement
        self._planned: list[PlannedBurst] = []
        self._growing: list[PlannedBurst] = []
        self._last: dict[_Key, PlannedBurst] = {}
        self._refused: dict[_Key, Decision] = {}
        self._decisions: dict[JobId | None, Decision] = {}
        self._assignments: dict[JobId, BurstId] = {}
        self._caps: dict[str, int] = {}
        self._tried: set[str] = set()
        self._ending: set[BurstId] = set()
        self._run_times = RunTimes(
            catalog, [capacity.lasts for capacity in live.capacities]
        )
        self._reservations = SlotReservations(
            index, catalog, self._run_times, self._usage, live
        )
        for candidate in catalog.known:
            cap = max(self._caps.get(candidate.provider, 0), candidate.offer.max_nodes)
            self._caps[candidate.provider] = cap

    def make(self, demands: Iterable[Demand], owner: str, now: float) -> Plan:
        """Place all demands and return the plan. Deterministic."""
        for demand in demands:
            self._place(demand)
        proposals = [planned.propose(owner, now) for planned in self._planned]
        proposals += self._isolated.propose(owner, now)
        for proposal in proposals:
            lease = proposal.lease
            facts = {
                "nodes": lease.nodes,
                "offer": f"{lease.provider}/{lease.offer}",
                "burst": lease.id,
            }
            decision = Decision(Reason.PROPOSED, facts)
            jobs: list[JobId | None] = [*proposal.jobs] or [None]
            for job in jobs:
                self._decisions.setdefault(job, decision)
        return Plan(
            proposals=tuple(proposals),
            assignments=self._assignments,
            ending=frozenset(self._ending),
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
        if refused:
            self._decisions[demand.job] = refused
            return
        if _may_use_other_bursts(demand) and (
            self._reuse(demand) or self._join(demand, key)
        ):
            return
        if brief:
            # Until the other slots are free it may have those that are kept.
            self._reservations.lend()
            refused = self._open(demand, key)
            self._reservations.withhold()
        else:
            refused = self._open(demand, key)
        if refused is None:
            return
        reserved = self._reserve(demand, refused)
        if reserved is None:
            self._refused[key] = refused
        self._decisions[demand.job] = reserved or refused

    def _key(self, demand: Demand, brief: bool) -> _Key:
        """Return what demands have in common for which the plan has the same answer."""
        return (
            demand.request,
            demand.preferences,
            demand.userid,
            demand.coming,
            demand.isolated is not None,
            self._run_times.rank(demand),
            brief,
        )

    def _reserve(self, demand: Demand, decision: Decision) -> Decision | None:
        """Keep slots for the first job that is refused; idle bursts make way."""
        spread = self._may_spread(demand)
        reserved = self._reservations.reserve(demand, decision, spread, self._planned)
        if reserved:
            assigned = self._assignments.values()
            idle = {
                capacity.burst
                for capacity in self._capacities
                if self._reservations.must_go(capacity)
            }
            self._ending |= idle.difference(assigned)
        return reserved

    def _reuse(self, demand: Demand) -> bool:
        """Give the job to a live burst that has room for it now."""
        for capacity in self._capacities:
            if not self._may_have(demand, capacity):
                continue
            if capacity.lasts < self._run_times.needed(demand):
                self._make_way(demand, capacity)
            elif capacity.pool.take(demand.request, self._admitted(demand)):
                self._count(demand.userid, capacity)
                self._reservations.join(demand, capacity)
                assert demand.job is not None
                self._assignments[demand.job] = capacity.burst
                decision = Decision(Reason.ASSIGNED, {"burst": capacity.burst})
                self._decisions[demand.job] = decision
                return True
        return False

    def _may_have(self, demand: Demand, capacity: BurstCapacity) -> bool:
        """Tell whether a live burst, if large enough, may be used for the job."""
        if not capacity.pool or capacity.burst in self._ending:
            return False
        kept = not self._reservations.may_use(demand, capacity)
        if kept or not self._may_share(demand, capacity.userids):
            return False
        joins = bool(capacity.userids) and demand.userid not in capacity.userids
        over = (
            self._usage.refuse_user("", capacity.nodes, demand.userid)
            if joins
            else None
        )
        return over is None and accepts(
            demand.preferences, capacity.provider, capacity.price
        )

    def _count(self, userid: int | None, capacity: BurstCapacity) -> None:
        """Count a live burst against a user who joins it."""
        if capacity.userids and userid is not None and userid not in capacity.userids:
            self._usage.add_user(capacity.nodes, userid)
            capacity.userids |= {userid}

    def _make_way(self, demand: Demand, capacity: BurstCapacity) -> None:
        """End an idle burst that would do for a job, but not for long enough.

        Where Flux is to start the job by itself, it might start it there; and the job
        may need the rank slot.
        """
        unused = capacity.idle and capacity.burst not in self._assignments.values()
        served = self._run_times.needed(demand) <= self._run_times.longest_offered(
            demand.preferences
        )
        if (
            unused
            and served
            and capacity.pool.take(demand.request, self._admitted(demand))
        ):
            self._ending.add(capacity.burst)

    def _join(self, demand: Demand, key: _Key) -> bool:
        """Give the job to a burst of this plan, which may grow for it."""
        if not self._settings.share:
            return False
        last = self._last.get(key)
        if last and self._add(last, demand):
            return True
        # What is full stays full while a plan is made.
        self._growing = [planned for planned in self._growing if not planned.full]
        for planned in self._growing[: -_LOOK_BACK - 1 : -1]:
            if planned is not last and self._add(planned, demand):
                self._last[key] = planned
                return True
        return False

    def _may_join(self, planned: PlannedBurst, demand: Demand) -> bool:
        """Tell whether a burst of this plan, if large enough, may be used for a job."""
        offer = planned.provider_offer.offer
        if not accepts(
            demand.preferences, planned.provider_offer.provider, offer.price
        ):
            return False
        lasts = self._run_times.why_too_short(planned.provider_offer, demand) is None
        return lasts and self._may_share(demand, frozenset(planned.userids))

    def _could_join_first(self, planned: PlannedBurst) -> bool:
        """Tell whether the job that slots are kept for would fit a burst of this plan.

        Then it waits for nodes that the burst has, and not for it to go: others delay
        it no longer by further nodes.
        """
        first = self._reservations.demand
        assert first is not None
        need = nodes_needed(first.request, planned.slot.shape)
        capacity = self._index.usable(planned.slot, first.request.constraint)
        fits = 0 < need <= min(planned.nodes, capacity) and not first.coming
        return fits and self._may_join(planned, first)

    def _add(self, planned: PlannedBurst, demand: Demand) -> bool:
        """Give a job to a burst of this plan; tell whether it got it."""
        if not self._may_join(planned, demand):
            return False
        new = demand.userid not in planned.userids
        bears = planned.nodes if new else 0
        if self._usage.refuse_user(planned.provider_offer.key, bears, demand.userid):
            return False
        admitted = self._admitted(demand)
        kept = planned.slot.name in self._reservations.slots
        kept = kept and not self._reservations.is_brief(demand)
        if kept or not planned.pool.take(demand.request, admitted):
            if kept and not self._could_join_first(planned):
                return False
            if not self._grow(planned, demand, bears):
                return False
            planned.pool.take(demand.request, admitted)
            bears = planned.nodes if new else 0
        self._usage.add_user(bears, demand.userid)
        planned.add(demand)
        return True

    def _grow(self, planned: PlannedBurst, demand: Demand, bears: int) -> bool:
        """Have a burst of this plan grow for a job; tell whether it did.

        `bears` is how many of the nodes that it has count anew against the job's user.
        """
        offer, slot = planned.provider_offer, planned.slot
        nodes = nodes_needed(demand.request, slot.shape)
        size = planned.nodes + nodes
        usable = self._index.usable(slot, demand.request.constraint)
        if not nodes or size > min(planned.most, usable):
            return False
        if self._catalog.why_refused(offer, slot.name, size):
            return False
        # Whoever it is made for bears what it grows by.
        more = dict.fromkeys((*planned.userids, demand.userid), nodes)
        more[demand.userid] = bears + nodes
        if self._usage.refuse(offer.key, (size,), nodes) or any(
            self._usage.refuse_user(offer.key, each, user)
            for user, each in more.items()
        ):
            return False
        planned.grow(nodes)
        self._usage.add(nodes, 0, planned.userids)
        return True

    def _open(self, demand: Demand, key: _Key) -> Decision | None:
        """Make one burst or several for the job; return why not, None if it did."""
        refusals: list[OfferRejection] = []
        for candidate in self._catalog.offers:
            refusal = self._try(candidate, demand, key)
            if refusal is None:
                self._tried.add(candidate.provider)
                return None
            refusals.append(refusal)
        modes = {
            burst_mode(demand.preferences, known.offer) for known in self._catalog.known
        }
        isolated = "isolated" in modes
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
        request, preferences = demand.request, demand.preferences.provider
        limit = self._usage.why_never(self._index.least_nodes(request), demand.userid)
        if limit:
            return Reason.OVER_LIMIT, limit
        if self._catalog.unread & (
            {preferences} if preferences else self._catalog.unread
        ):
            # A job that is failed for what one more answer would show is lost.
            return None
        too_long = self._run_times.why_never(demand)
        if too_long:
            return Reason.TOO_LONG, too_long
        caps = {n: cap for n, cap in self._caps.items() if preferences in {"", n}}
        never = self._index.why_never(request, caps, self._may_spread(demand))
        if not caps or not never:
            return None
        reason, facts = never
        facts["want"] = describe_need(request)
        if reason is Reason.TOO_LARGE and max(caps.values()) >= self._index.least_nodes(
            request
        ):
            # A lead can get further rank slots, a provider no further nodes.
            reason = Reason.NO_ROOM
        return reason, facts

    def _try(
        self, candidate: ProviderOffer, demand: Demand, key: _Key
    ) -> OfferRejection | None:
        refused = why_unwanted(demand.preferences, candidate)
        if refused:
            return refused
        if candidate.provider in self._tried & self._catalog.on_trial:
            facts = {"provider": candidate.provider}
            return OfferRejection(candidate.key, Reason.ON_TRIAL, facts)
        too_short = self._run_times.why_too_short(candidate, demand)
        if too_short:
            return too_short
        if burst_mode(demand.preferences, candidate.offer) == "isolated":
            return self._isolated.take(candidate, demand, self._catalog)
        refusal: OfferRejection | None = None
        for slot_class in self._index.free_classes(candidate.provider):
            shares = self._slots.choose(
                candidate, demand, slot_class, self._may_spread(demand)
            )
            if isinstance(shares, OfferRejection):
                refusal = shares
                continue
            sizes = tuple(nodes for _, nodes in shares)
            too_much = self._usage.refuse(
                candidate.key, sizes, 0
            ) or self._usage.refuse_user(candidate.key, sum(sizes), demand.userid)
            if too_much is None:
                self._take(candidate, demand, slot_class, shares)
                self._last[key] = self._planned[-1]
                return None
            refusal = too_much
        return refusal or self._reservations.busy_or_kept(candidate.key)

    def _take(
        self,
        candidate: ProviderOffer,
        demand: Demand,
        slot_class: SlotClass,
        shares: list[SlotShare],
    ) -> None:
        for slot, nodes in shares:
            planned = PlannedBurst(candidate, slot)
            planned.grow(nodes)
            planned.add(demand)
            # Whether the job's share fits is known; of several bursts it takes all.
            if not planned.pool.take(demand.request):
                planned.most, planned.pool = 0, NodePool({}, {})
            self._planned.append(planned)
            self._growing.append(planned)
            self._index.take(slot_class, slot)
            self._usage.add(nodes, 1, planned.userids)

    def _may_spread(self, demand: Demand) -> bool:
        return self._settings.spread and demand.preferences.where != "together"

    def _may_share(self, demand: Demand, userids: frozenset[int]) -> bool:
        return self._settings.share_users or not userids or userids == {demand.userid}

    def _admitted(self, demand: Demand) -> frozenset[int] | None:
        constraint = demand.request.constraint
        return self._index.admitted(constraint) if constraint else None


def _may_use_other_bursts(demand: Demand) -> bool:
    """Tell whether a demand may be served by a burst that is made for another."""
    isolated = demand.preferences.mode == "isolated"
    return demand.job is not None and not demand.coming and not isolated
