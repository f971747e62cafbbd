# SPDX-License-Identifier: MIT
"""The planner: which provider, which rank slot, how many bursts, for which jobs.

Jobs that ask for the same are tried once: what failed for one fails for the next, as
nothing becomes free while a plan is made. So the time grows with the jobs, not with
jobs times offers times slots.
"""

from __future__ import annotations

from collections.abc import Iterable

from burst.config import PlanSettings
from burst.core.isolated.placement import Apart, mode_of
from burst.core.placement.demand import Pool, describe_need, nodes_needed
from burst.core.placement.leased_slots import Live
from burst.core.placement.offers import Market, Priced
from burst.core.placement.plan import Demand, Opened, Plan, Room
from burst.core.placement.preferences import suits, unwished
from burst.core.placement.reservation import Reservations
from burst.core.placement.run_time import Terms
from burst.core.placement.slot_index import Ground, Kind, Piece
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
        ground: Ground,
        market: Market,
        apart: Apart,
        live: Live,
        settings: PlanSettings,
    ) -> None:
        self._ground = ground
        self._market = market
        self._usage = apart.usage
        self._rooms = live.rooms
        self._settings = settings
        self._apart = apart
        self._opened: list[Opened] = []
        self._growing: list[Opened] = []
        self._last: dict[_Key, Opened] = {}
        self._dead: dict[_Key, Decision] = {}
        self._verdicts: dict[JobId | None, Decision] = {}
        self._assignments: dict[JobId, BurstId] = {}
        self._caps: dict[str, int] = {}
        self._tried: set[str] = set()
        self._ending: set[BurstId] = set()
        self._terms = Terms(market, [room.lasts for room in live.rooms])
        self._kept = Reservations(ground, market, self._terms, self._usage, live)
        for priced in market.known:
            cap = max(self._caps.get(priced.provider, 0), priced.offer.max_nodes)
            self._caps[priced.provider] = cap

    def make(self, demands: Iterable[Demand], owner: str, now: float) -> Plan:
        """Place all demands and return the plan. Deterministic."""
        for demand in demands:
            self._place(demand)
        proposals = [opened.propose(owner, now) for opened in self._opened]
        proposals += self._apart.propose(owner, now)
        for proposal in proposals:
            lease = proposal.lease
            facts = {
                "nodes": lease.nodes,
                "offer": f"{lease.provider}/{lease.offer}",
                "burst": lease.id,
            }
            verdict = Decision(Reason.PROPOSED, facts)
            jobs: list[JobId | None] = [*proposal.jobs] or [None]
            for job in jobs:
                self._verdicts.setdefault(job, verdict)
        return Plan(
            proposals=tuple(proposals),
            assignments=self._assignments,
            ending=frozenset(self._ending),
            reserved=self._kept.made,
            decisions=self._verdicts,
        )

    def _place(self, demand: Demand) -> None:
        held = demand.isolated is not None
        brief = bool(self._kept.made) and self._kept.is_brief(demand)
        beside = demand.coming, held, self._terms.rank(demand), brief
        key = (demand.request, demand.wish, demand.userid, *beside)
        dead = self._dead.get(key)
        if dead is None:
            isolated = demand.wish.mode == "isolated"
            alone = demand.job is None or demand.coming or isolated
            if not alone and (self._reuse(demand) or self._join(demand, key)):
                return
            dead = self._open_lent(demand, key) if brief else self._open(demand, key)
            if dead is None:
                return
            reserved = self._reserve(demand, dead)
            if reserved:
                dead = reserved
            else:
                self._dead[key] = dead
        self._verdicts[demand.job] = dead

    def _open_lent(self, demand: Demand, key: _Key) -> Decision | None:
        """As `_open`, for a job that may have kept slots that are free."""
        self._kept.lend()
        dead = self._open(demand, key)
        self._kept.keep()
        return dead

    def _reserve(self, demand: Demand, verdict: Decision) -> Decision | None:
        """Keep slots for the first job that is refused; idle bursts make way."""
        spread = self._may_spread(demand)
        reserved = self._kept.reserve(demand, verdict, spread, self._opened)
        if reserved:
            assigned = self._assignments.values()
            idle = {room.burst for room in self._rooms if self._kept.must_go(room)}
            self._ending |= idle.difference(assigned)
        return reserved

    def _reuse(self, demand: Demand) -> bool:
        """Give the job to a live burst that has room for it now."""
        for room in self._rooms:
            if not self._may_have(demand, room):
                continue
            if room.lasts < self._terms.needed(demand):
                self._make_way(demand, room)
            elif room.pool.take(demand.request, self._admitted(demand)):
                self._count(demand.userid, room)
                self._kept.join(demand, room)
                assert demand.job is not None
                self._assignments[demand.job] = room.burst
                verdict = Decision(Reason.ASSIGNED, {"burst": room.burst})
                self._verdicts[demand.job] = verdict
                return True
        return False

    def _may_have(self, demand: Demand, room: Room) -> bool:
        """Tell whether a live burst, if large enough, may be used for the job."""
        if not room.pool or room.burst in self._ending:
            return False
        kept = not self._kept.may_use(demand, room)
        if kept or not self._may_share(demand, room.userids):
            return False
        joins = bool(room.userids) and demand.userid not in room.userids
        over = self._usage.refuse_user("", room.nodes, demand.userid) if joins else None
        return over is None and suits(demand.wish, room.provider, room.price)

    def _count(self, userid: int | None, room: Room) -> None:
        """Count a live burst against a user who joins it."""
        if room.userids and userid is not None and userid not in room.userids:
            self._usage.add_user(room.nodes, userid)
            room.userids |= {userid}

    def _make_way(self, demand: Demand, room: Room) -> None:
        """End an idle burst that would do for a job, but not for long enough.

        Where Flux is to start the job by itself, it might start it there; and the job
        may need the rank slot.
        """
        unused = room.idle and room.burst not in self._assignments.values()
        served = self._terms.needed(demand) <= self._terms.longest(demand.wish)
        if unused and served and room.pool.take(demand.request, self._admitted(demand)):
            self._ending.add(room.burst)

    def _join(self, demand: Demand, key: _Key) -> bool:
        """Give the job to a burst of this plan, which may grow for it."""
        if not self._settings.share:
            return False
        last = self._last.get(key)
        if last and self._add(last, demand):
            return True
        # What is full stays full while a plan is made.
        self._growing = [opened for opened in self._growing if not opened.full]
        for opened in self._growing[: -_LOOK_BACK - 1 : -1]:
            if opened is not last and self._add(opened, demand):
                self._last[key] = opened
                return True
        return False

    def _may_join(self, opened: Opened, demand: Demand) -> bool:
        """Tell whether a burst of this plan, if large enough, may be used for a job."""
        offer = opened.priced.offer
        if not suits(demand.wish, opened.priced.provider, offer.price):
            return False
        lasts = self._terms.refuse(opened.priced.key, demand) is None
        return lasts and self._may_share(demand, frozenset(opened.userids))

    def _could_join_first(self, opened: Opened) -> bool:
        """Tell whether the job that slots are kept for would fit a burst of this plan.

        Then it waits for nodes that the burst has, and not for it to go: others delay
        it no longer by further nodes.
        """
        first = self._kept.demand
        assert first is not None
        need = nodes_needed(first.request, opened.slot.shape)
        room = self._ground.usable(opened.slot, first.request.constraint)
        fits = 0 < need <= min(opened.nodes, room) and not first.coming
        return fits and self._may_join(opened, first)

    def _add(self, opened: Opened, demand: Demand) -> bool:
        priced = opened.priced
        if not self._may_join(opened, demand):
            return False
        new = demand.userid not in opened.userids
        bears = opened.nodes if new else 0
        key = opened.priced.key
        if self._usage.refuse_user(key, bears, demand.userid):
            return False
        admitted = self._admitted(demand)
        kept = opened.slot.name in self._kept.slots
        kept = kept and not self._kept.is_brief(demand)
        if kept or not opened.pool.take(demand.request, admitted):
            nodes = nodes_needed(demand.request, opened.slot.shape)
            size = opened.nodes + nodes
            room = self._ground.usable(opened.slot, demand.request.constraint)
            refused = self._market.refused(priced, opened.slot.name, size)
            if not nodes or size > min(opened.most, room) or refused:
                return False
            if kept and not self._could_join_first(opened):
                return False
            # Whoever it is made for bears what it grows by.
            more = dict.fromkeys((*opened.userids, demand.userid), nodes)
            more[demand.userid] = bears + nodes
            if self._usage.refuse(key, (size,), nodes) or any(
                self._usage.refuse_user(key, each, user) for user, each in more.items()
            ):
                return False
            opened.grow(nodes)
            self._usage.add(nodes, 0, opened.userids)
            opened.pool.take(demand.request, admitted)
            bears = opened.nodes if new else 0
        self._usage.add_user(bears, demand.userid)
        opened.add(demand)
        return True

    def _open(self, demand: Demand, key: _Key) -> Decision | None:
        """Make one burst or several for the job; return why not, None if it did."""
        refusals: list[OfferRejection] = []
        for priced in self._market.offers:
            refusal = self._try(priced, demand, key)
            if refusal is None:
                self._tried.add(priced.provider)
                return None
            refusals.append(refusal)
        modes = {mode_of(demand.wish, known.offer) for known in self._market.known}
        isolated = "isolated" in modes
        if not self._ground and not isolated:
            return Decision(Reason.NO_SLOTS)
        refusals.extend(self._market.refusals)
        if not refusals:
            return Decision(Reason.NO_OFFERS)
        never = None if isolated else self._never(demand)
        if never:
            return Decision(*never, tuple(refusals))
        return Decision(Reason.TURNED_DOWN, {}, tuple(refusals))

    def _never(self, demand: Demand) -> tuple[Reason, dict[str, object]] | None:
        """Return why nothing could ever serve a demand, None if something could."""
        request, wish = demand.request, demand.wish.provider
        limit = self._usage.never(self._ground.least(request), demand.userid)
        if limit:
            return Reason.OVER_LIMIT, limit
        if self._market.unread & ({wish} if wish else self._market.unread):
            # A job that is failed for what one more answer would show is lost.
            return None
        too_long = self._terms.never(demand)
        if too_long:
            return Reason.TOO_LONG, too_long
        caps = {n: cap for n, cap in self._caps.items() if wish in {"", n}}
        never = self._ground.never(request, caps, self._may_spread(demand))
        if not caps or not never:
            return None
        reason, facts = never
        facts["want"] = describe_need(request)
        if reason is Reason.TOO_LARGE and max(caps.values()) >= self._ground.least(
            request
        ):
            # A lead can get further rank slots, a provider no further nodes.
            reason = Reason.NO_ROOM
        return reason, facts

    def _try(self, priced: Priced, demand: Demand, key: _Key) -> OfferRejection | None:
        refused = unwished(demand.wish, priced)
        if refused:
            return refused
        if priced.provider in self._tried & self._market.on_trial:
            facts = {"provider": priced.provider}
            return OfferRejection(priced.key, Reason.ON_TRIAL, facts)
        too_short = self._terms.refuse(priced.key, demand)
        if too_short:
            return too_short
        if mode_of(demand.wish, priced.offer) == "isolated":
            return self._apart.take(priced, demand, self._market)
        refusal: OfferRejection | None = None
        for kind in self._ground.kinds(priced.provider):
            pieces = self._pieces(priced, demand, kind)
            if isinstance(pieces, OfferRejection):
                refusal = pieces
                continue
            sizes = tuple(nodes for _, nodes in pieces)
            too_much = self._usage.refuse(
                priced.key, sizes, 0
            ) or self._usage.refuse_user(priced.key, sum(sizes), demand.userid)
            if too_much is None:
                self._take(priced, demand, kind, pieces)
                self._last[key] = self._opened[-1]
                return None
            refusal = too_much
        return refusal or self._kept.busy_or_kept(priced.key)

    def _pieces(
        self, priced: Priced, demand: Demand, kind: Kind
    ) -> list[Piece] | OfferRejection:
        shape, request, offer = kind[0], demand.request, priced.offer
        if not offer.shape.holds(shape):
            facts: dict[str, object] = {"has": str(offer.shape), "want": str(shape)}
            return OfferRejection(priced.key, Reason.SHAPE_MISMATCH, facts)
        need = nodes_needed(request, shape)
        if not need:
            facts = {"has": str(shape), "want": describe_need(request)}
            return OfferRejection(priced.key, Reason.NODE_SMALL, facts)
        need -= demand.coming
        most = int(min(offer.max_nodes, self._usage.largest_burst))
        found = None
        if need <= most:
            found = self._one(priced, kind, need, request.constraint)
            if found and not _too_much(found):
                return found
        if self._may_spread(demand):
            piece = self._market.piece(priced, most)
            pieces = self._ground.several(kind, need, request.constraint, piece)
            if pieces:
                refusals = (self._market.refused(priced, s.name, n) for s, n in pieces)
                return next(filter(None, refusals), pieces)
            if piece < most:
                found = self._market.refused(priced, "", need)
        return found or self._too_few(priced, demand, kind, need)

    def _too_few(
        self, priced: Priced, demand: Demand, kind: Kind, need: int
    ) -> OfferRejection:
        """Return what keeps a job from so many nodes of an offer, in such slots."""
        most, limit = priced.offer.max_nodes, self._usage.largest_burst
        if need > most and not self._may_spread(demand):
            facts: dict[str, object] = {"most": most, "need": need}
            return OfferRejection(priced.key, Reason.FEW_NODES, facts)
        if need > limit and limit < most:
            facts = {"limit": limit, "need": need}
            return OfferRejection(priced.key, Reason.LIMIT_BURST, facts)
        largest = self._ground.most(kind, demand.request.constraint)
        facts = {"most": largest, "need": need}
        return OfferRejection(priced.key, Reason.SLOTS_SMALL, facts)

    def _one(
        self, priced: Priced, kind: Kind, nodes: int, constraint: str
    ) -> list[Piece] | OfferRejection | None:
        """Return the smallest slot that would do, or why those that would do not."""
        refused = None
        for slot in self._ground.fitting(kind, nodes, constraint):
            refused = self._market.refused(priced, slot.name, nodes)
            if refused is None:
                return [(slot, nodes)]
        return refused

    def _take(
        self, priced: Priced, demand: Demand, kind: Kind, pieces: list[Piece]
    ) -> None:
        for slot, nodes in pieces:
            opened = Opened(priced, slot)
            opened.grow(nodes)
            opened.add(demand)
            # Whether the job's share fits is known; of several pieces it takes all.
            if not opened.pool.take(demand.request):
                opened.most, opened.pool = 0, Pool({}, {})
            self._opened.append(opened)
            self._growing.append(opened)
            self._ground.take(kind, slot)
            self._usage.add(nodes, 1, opened.userids)

    def _may_spread(self, demand: Demand) -> bool:
        return self._settings.spread and demand.wish.where != "together"

    def _may_share(self, demand: Demand, userids: frozenset[int]) -> bool:
        return self._settings.share_users or not userids or userids == {demand.userid}

    def _admitted(self, demand: Demand) -> frozenset[int] | None:
        constraint = demand.request.constraint
        return self._ground.admitted(constraint) if constraint else None


def _too_much(found: list[Piece] | OfferRejection) -> bool:
    """Tell whether there is no capacity for one burst; for smaller ones there may."""
    return isinstance(found, OfferRejection) and found.reason is Reason.OFFER_COOLDOWN
