# SPDX-License-Identifier: MIT
"""What each burst costs: one entry while it lives, one settled row when it is gone.

An entry is opened, and its money reserved, in the transaction that puts the burst on
record, so before its provider is called. It is closed in the transaction that records
INACTIVE, so exactly once. Time is counted in node-seconds, by what each node did.

| kind | time of nodes |
|---|---|
| work | on which a job had cores or GPUs |
| boot | from `provision` until the burst was online |
| idle | online, or being drained, and no job on the node |
| teardown | from the end of use until the provider confirmed that nothing is left |
| never joined | shown as there by the provider, in a burst that was never online |

A node that several jobs share is one node at work; its time is divided among the jobs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from types import MappingProxyType
from typing import Literal

import msgspec

from burst.core.money.money import Money, from_price, price_of, reserve_for, split
from burst.model.burst import BurstId, Lease, PriceSource
from burst.model.jobid import JobId

Phase = Literal["", "boot", "idle", "teardown"]
"""What a node without a job does; empty while nothing is paid for."""
MOST_SHARES = 32
"""How many jobs of a burst are known one by one; of others only the payers are."""
_HOUR_S = 3600
# If a burst outlives what is reserved for it, that grows by this part, and at least for
# so many seconds: each growth is a line in the log and a write to the store.
_GROWS_BY = 0.1
_GROWS_FOR = 600.0


class Payer(msgspec.Struct, frozen=True, array_like=True):
    """For whom money is spent. A field is empty if not known, or if there is none."""

    userid: int | None = None
    """None if the instance owner requested nodes ahead of jobs."""
    bank: str = ""
    queue: str = ""
    rule: str = ""
    """The rule of `[[policy]]` that took the job."""


STANDING = Payer(rule="standing minimum")
"""Pays for bursts of standing minimums, except for the time in which jobs work on them.
No rule of `[[policy]]` can have this name."""
OTHERS = Payer(userid=-1)
"""Payers that are too many to be known one by one; they count towards each budget."""


class Share(msgspec.Struct, frozen=True, array_like=True):
    """What one job of a burst used, or several jobs of one payer."""

    payer: Payer
    job: JobId | None = None
    """None for several jobs, and where no job is known."""
    node_seconds: float = 0.0
    booked: float = 0.0
    """Node-seconds that the job may use on nodes that a standing minimum pays for,
    while it has them."""


class NodeSeconds(msgspec.Struct, frozen=True, array_like=True):
    """What the nodes of a burst did so far."""

    work: float = 0.0
    idle: float = 0.0
    boot: float = 0.0
    teardown: float = 0.0
    shown: float = 0.0
    """The time for which the provider showed nodes as there, whatever they did."""


class Costs(msgspec.Struct, frozen=True, array_like=True):
    """An amount of money, divided by what it was paid for."""

    work: Money = Money(0)
    idle: Money = Money(0)
    boot: Money = Money(0)
    teardown: Money = Money(0)
    never_joined: Money = Money(0)

    @property
    def total(self) -> Money:
        """The sum of all kinds."""
        return Money(sum(msgspec.structs.astuple(self)))

    @property
    def wasted(self) -> Money:
        """The part for time in which no job ran."""
        return Money(self.total - self.work)

    def plus(self, other: Costs) -> Costs:
        """Return the sum, kind by kind."""
        pairs = zip(
            msgspec.structs.astuple(self), msgspec.structs.astuple(other), strict=True
        )
        return Costs(*(Money(one + two) for one, two in pairs))


class Use(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the nodes of a burst are doing now."""

    phase: Phase = ""
    busy: int = 0
    """Nodes on which some job has cores or GPUs."""
    jobs: tuple[tuple[JobId, int], ...] = ()
    """Jobs of the burst that run there, and on how many of its nodes."""
    others: tuple[tuple[Payer, int], ...] = ()
    """On how many nodes `jobs` run that have no share of their own, by payer."""
    shown: int = 0
    """Nodes that the provider shows as there."""
    boot: int = 0
    """Nodes by which an online burst grows, and that are not online yet."""
    teardown: int = 0
    """Nodes by which it shrinks, and on which nothing runs any more."""
    absent: int = 0
    """Nodes that it has by its record, and that are not there yet, or are gone."""


class PaidBurst(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the entry of a burst and its settled row have in common."""

    burst: BurstId
    provider: str
    offer: str
    nodes: int
    price: Money
    """Price for a node and hour."""
    fee: Money = Money(0)
    """Fee for an hour of the burst, however many nodes it has."""
    priced_by: PriceSource = "offer"
    made: float
    reserved: Money
    """Money that is reserved, including all by which it has grown."""
    grown: Money = Money(0)
    """By how much `reserved` has grown because the burst outlived it."""
    shares: tuple[Share, ...]
    """At least one."""

    @property
    def payers(self) -> frozenset[Payer]:
        """All payers that the burst is for."""
        return frozenset(share.payer for share in self.shares)

    def is_for(self, userid: int | None) -> bool:
        """Tell whether a user pays a part of what it costs; None is for all users."""
        return userid is None or userid in {payer.userid for payer in self.payers}


class Entry(PaidBurst, frozen=True, kw_only=True, omit_defaults=True):
    """A burst that may still cost money."""

    until: float
    """Until when money is reserved for the burst."""
    at: float
    """Until when its time is counted."""
    use: Use = Use()
    """What its nodes do since `at`."""
    spent: NodeSeconds = NodeSeconds()
    joined: bool = False
    """Whether it was ever online."""
    lived: float | None = None
    """For how many seconds the burst was there up to `at`, for its fee; None as long
    as it has had as many nodes as when it was made."""


class SettledBurst(PaidBurst, frozen=True, kw_only=True, omit_defaults=True):
    """What a burst has cost, once nothing of it is left."""

    ended: float
    costs: Costs
    reclaimed: bool = False
    """Whether it ended as the cloud took nodes of it back."""


def open_entry(
    lease: Lease, until: float, shares: Mapping[JobId, Payer], now: float
) -> Entry:
    """Return the entry of a burst that is about to be put on record.

    Money is reserved for all its nodes from now on until `until`.
    """
    found = [Share(payer, job) for job, payer in shares.items()]
    if not found:
        requested = STANDING if lease.standing else Payer()
        found = [Share(Payer(user)) for user in lease.userids] or [Share(requested)]
    price, fee = from_price(lease.price), from_price(lease.fee)
    return Entry(
        burst=lease.id,
        provider=lease.provider,
        offer=lease.offer,
        nodes=lease.nodes,
        price=price,
        fee=fee,
        priced_by=lease.priced_by,
        made=now,
        until=until,
        reserved=reserve_for(lease.nodes, until - now, price, fee),
        shares=_bounded(tuple(found)),
        at=now,
    )


def extend(
    entry: Entry,
    until: float,
    jobs: Mapping[JobId, Payer],
    booked: Mapping[JobId, float] = MappingProxyType({}),
) -> Entry:
    """Return the entry for further jobs, with money reserved at least until `until`.

    `booked` is the `Share.booked` of each job.
    """
    known = {share.job for share in entry.shares}
    new = tuple(
        Share(payer, job, booked=booked.get(job, 0.0))
        for job, payer in jobs.items()
        if job not in known
    )
    if not new and until <= entry.until:
        return entry
    shares = entry.shares
    if shares == (Share(Payer()),):
        shares = ()  # nodes that were requested ahead of jobs are these jobs' from now
    until = max(until, entry.until)
    reserved = reserve_for(entry.nodes, until - entry.made, entry.price, entry.fee)
    if entry.lived is not None:
        longer = until - entry.until
        more = reserve_for(entry.nodes, longer, entry.price, entry.fee)
        reserved = Money(entry.reserved + more)
    return msgspec.structs.replace(
        entry,
        until=until,
        reserved=max(entry.reserved, reserved),
        shares=_bounded(shares + new),
    )


def count(entry: Entry, use: Use, now: float, *, joined: bool) -> Entry:
    """Return the entry with its time counted, if its nodes do something else now."""
    joined = joined or entry.joined
    if (use, joined) == (entry.use, entry.joined):
        return entry
    return msgspec.structs.replace(counted(entry, now), use=use, joined=joined)


def resize(entry: Entry, nodes: int, now: float) -> Entry:
    """Return the entry of a burst that has so many nodes from now on.

    What is reserved is what it has cost up to now, and what it may cost until `until`.
    """
    entry = counted(entry, now)
    lived = entry.lived
    if lived is None:
        lived = _sum(entry.spent) / entry.nodes
    entry = msgspec.structs.replace(entry, lived=lived)
    rest = max(0.0, entry.until - now)
    more = reserve_for(abs(nodes - entry.nodes), rest, entry.price)
    reserved = entry.reserved + more
    if nodes < entry.nodes:
        kept = reserve_for(nodes, rest, entry.price, entry.fee)
        # A micro-unit more, as what it has cost is rounded to the nearest.
        reserved = min(entry.reserved, _paid(entry, _sum(entry.spent)) + 1 + kept)
    return msgspec.structs.replace(entry, nodes=nodes, reserved=Money(reserved))


def outlive(entry: Entry, now: float) -> Entry:
    """Return the entry with more reserved, if the burst outlives what was reserved.

    Nothing is ended because of that: running jobs continue to their end.
    """
    if now <= entry.until:
        return entry
    more = max(_GROWS_FOR, _GROWS_BY * (entry.until - entry.made))
    longer = now + more - entry.until
    grows = reserve_for(entry.nodes, longer, entry.price, entry.fee)
    return msgspec.structs.replace(
        entry,
        until=now + more,
        reserved=Money(entry.reserved + grows),
        grown=Money(entry.grown + grows),
    )


def settle(entry: Entry, now: float, *, reclaimed: bool = False) -> SettledBurst:
    """Return what the burst has cost, now that nothing of it is left.

    A burst that was never online cost money while its provider showed nodes as there:
    it may have made nothing at all.
    """
    entry = counted(entry, now)
    spent = entry.spent
    if entry.joined:
        kinds = [spent.work, spent.idle, spent.boot, spent.teardown, 0.0]
    else:
        kinds = [spent.work, 0.0, 0.0, 0.0, max(0.0, spent.shown - spent.work)]
    total = _paid(entry, sum(kinds))
    costs = Costs(*split(total, kinds)) if total else Costs()
    late = max(0, total - entry.reserved)
    common = {name: getattr(entry, name) for name in PaidBurst.__struct_fields__}
    common["reserved"] = Money(entry.reserved + late)
    common["grown"] = Money(entry.grown + late)
    return SettledBurst(**common, ended=now, costs=costs, reclaimed=reclaimed)


def by_payer(shares: Sequence[Share], costs: Costs) -> dict[Payer, Costs]:
    """Divide an amount among the payers, as `by_share` does."""
    found: dict[Payer, Costs] = {}
    for share, part in by_share(shares, costs):
        found[share.payer] = found.get(share.payer, Costs()).plus(part)
    return found


def by_share(shares: Sequence[Share], costs: Costs) -> list[tuple[Share, Costs]]:
    """Divide an amount among shares by the time that their jobs had nodes.

    The parts are equal if no job had any. Their sum is the amount. A standing minimum
    gets all that is not work, as the nodes would be there without the jobs.
    """
    weights = [share.node_seconds for share in shares]
    if not any(weights):
        weights = [1.0] * len(shares)
    rest = [float(share.payer == STANDING) for share in shares]
    if not any(rest):
        rest = weights
    work, *others = msgspec.structs.astuple(costs)
    kinds = [split(work, weights), *(split(kind, rest) for kind in others)]
    parts = (Costs(*part) for part in zip(*kinds, strict=True))
    return list(zip(shares, parts, strict=True))


def _sum(spent: NodeSeconds) -> float:
    return spent.work + spent.idle + spent.boot + spent.teardown


def _paid(entry: Entry, node_seconds: float) -> Money:
    """Return what so many node-seconds of a burst cost, with its fee."""
    if entry.lived is None:
        return price_of(node_seconds, entry.price, entry.fee, entry.nodes)
    # The fee is for the time of the burst, whatever number of nodes it had then.
    price = Fraction(node_seconds) * entry.price + Fraction(entry.lived) * entry.fee
    return Money(round(price / _HOUR_S))


def counted(entry: Entry, now: float) -> Entry:
    """Return the entry with its time counted until now; never less than before."""
    seconds = max(0.0, now - entry.at)
    use, spent = entry.use, entry.spent
    kinds = {"work": spent.work + use.busy * seconds}
    if use.phase:
        rest = entry.nodes - use.busy - use.boot - use.teardown - use.absent
        kinds |= {
            "idle": spent.idle,
            "boot": spent.boot + use.boot * seconds,
            "teardown": spent.teardown + use.teardown * seconds,
        }
        kinds[use.phase] += max(0, rest) * seconds
    kinds["shown"] = spent.shown + use.shown * seconds
    nodes, others = dict(use.jobs), dict(use.others)
    # Each of several jobs that share a node has a part of its time.
    part = min(1.0, use.busy / (sum(nodes.values()) or 1)) * seconds

    def with_use(share: Share) -> Share:
        job, payer = share.job, share.payer
        on = others.get(payer, 0) if job is None else nodes.get(job, 0)
        used = share.node_seconds + on * part
        return msgspec.structs.replace(share, node_seconds=used) if on else share

    lived = entry.lived
    if lived is not None and use.phase:
        lived += seconds
    return msgspec.structs.replace(
        entry,
        at=max(now, entry.at),
        lived=lived,
        spent=msgspec.structs.replace(spent, **kinds),
        shares=tuple(map(with_use, entry.shares)),
    )


def others_of(
    entry: Entry, jobs: Iterable[tuple[JobId, int]], payers: Mapping[JobId, Payer]
) -> tuple[tuple[Payer, int], ...]:
    """Return `Use.others`; `payers` has those jobs that have no share of their own."""
    merged = {share.payer for share in entry.shares if share.job is None}
    found: dict[Payer, int] = {}
    for job, nodes in jobs:
        if job in payers:
            payer = payers[job] if payers[job] in merged else OTHERS
            found[payer] = found.get(payer, 0) + nodes
    return tuple(found.items())


def _bounded(shares: tuple[Share, ...]) -> tuple[Share, ...]:
    """Return the shares; if there are too many, merge the oldest of each payer."""
    if len(shares) <= MOST_SHARES:
        return shares
    half = MOST_SHARES // 2
    merged: dict[Payer, float] = {}
    for share in shares[:-half]:
        payer = share.payer
        if payer not in merged and len(merged) >= half - 1:
            payer = OTHERS
        merged[payer] = merged.get(payer, 0.0) + share.node_seconds
    sums = (Share(payer, None, seconds) for payer, seconds in merged.items())
    return (*sums, *shares[-half:])
