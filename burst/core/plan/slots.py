# SPDX-License-Identifier: MIT
"""Rank slots: runs of the lead's ranks whose brokers may be absent, leased to bursts.

Ranks are fixed when the lead starts (flux-config-bootstrap(5)), so these are all the
places there are. A burst leases ranks of one slot, from its first free one; what it
leaves of the slot can be leased by others, unless the hosts join through a gateway.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set

import msgspec

from burst.errors import ConfigError
from burst.model.burst import Burst
from burst.model.confinement import LENT
from burst.model.flux_drain import flux_drain
from burst.model.host import dns_label
from burst.model.lead import LeadIdentity
from burst.model.ranks import format_hostlist, parse_hostlist
from burst.model.shape import Shape

# The reason we give when we drain a rank begins with this; only such drains are ours.
DRAIN_TAG = "burst: "
NO_REASON = "no reason given"
_STEM = re.compile(r"(burst-\d+)-\d+\Z")


def ends_with_lease(reason: str) -> bool:
    """Tell whether a drain of a leased rank ends with the lease: ours and Flux's do."""
    return reason.startswith(DRAIN_TAG) or flux_drain(reason) is not None


def drained_by_hand(
    drained: Mapping[int, str], ranks: Iterable[int]
) -> dict[str, list[int]]:
    """Return which of these ranks a person has drained, by the reason given.

    `drained` is that of LeadView. Flux does not tell who drained a rank.
    """
    found: dict[str, list[int]] = {}
    for rank in sorted(drained.keys() & set(ranks)):
        if not ends_with_lease(drained[rank]):
            found.setdefault(drained[rank] or NO_REASON, []).append(rank)
    return found


class RankSlot(msgspec.Struct, frozen=True, kw_only=True):
    """A run of ranks; `hosts[i]` has rank `ranks[i]`."""

    name: str
    hosts: tuple[str, ...]
    ranks: tuple[int, ...]
    shape: Shape
    """What each of its nodes has at least, as R declares it."""
    properties: frozenset[str] = frozenset()
    """The properties that all its ranks have."""
    divisible: bool = True
    """Whether several bursts may have ranks of it. False if some of its hosts join
    through another host, which has to be in the same burst."""

    @property
    def size(self) -> int:
        """How many followers it can take."""
        return len(self.ranks)


def only_for(slot: RankSlot, providers: Set[str]) -> frozenset[str]:
    """Return the only providers that may lease a slot; empty if any provider may.

    Their names are properties of the slot. `providers` are the names of all providers.
    """
    # All ranks that may be lent have this property, also if a provider is called so.
    return slot.properties & (providers - {LENT})


def may_lease(provider: str, kept: Set[str]) -> bool:
    """Tell whether a provider may lease a slot; `kept` is what `only_for` returns."""
    return not kept or provider in kept


def find_slots(
    identity: LeadIdentity, declared: Sequence[str] = ()
) -> tuple[RankSlot, ...]:
    """Return the lead's rank slots, in the order of their ranks.

    `declared` are hostlists from `[lead] slots`; without any, each run of hosts named
    `burst-N-M` with one N is a slot. Raises ConfigError for hosts that the lead does
    not have, that are no run of ranks, or that stand in two slots.
    """
    ranks = {host: rank for rank, host in enumerate(identity.hosts)}
    groups = [_declared(text, ranks) for text in declared] or _by_stem(identity.hosts)
    leased: set[str] = set()
    for group in groups:
        twice = leased.intersection(group)
        if twice:
            raise ConfigError(
                f"lead.slots: {format_hostlist(sorted(twice))} is in two slots"
            )
        leased.update(group)
    through = _joined_through(identity)
    slots = [_slot(group, ranks, identity, through) for group in groups]
    return tuple(sorted(_name_apart(slots), key=lambda slot: slot.ranks))


def is_found_by_name(hosts: Sequence[str], slots: Sequence[Sequence[str]]) -> bool:
    """Tell whether these slots are found in the lead's hosts without declaring them."""
    return _by_stem(hosts) == [tuple(slot) for slot in slots]


def slot_holders(
    slots: Sequence[RankSlot], bursts: Iterable[Burst], unread: Iterable[str] = ()
) -> dict[str, str]:
    """Return who has which slot, by the slot's name: a burst's id, or a record's key.

    A lease keeps its ranks and hosts if slots are declared anew, so these decide, not
    the slot's name. `unread` are keys of burst records that cannot be read. Their ranks
    are not known, but a burst's id begins with the name of its slot, which the slot's
    hosts bear: it has all slots with such hosts, or all slots if no host bears it.
    """
    ranks: dict[int, str] = {}
    hosts: dict[str, str] = {}
    for burst in bursts:
        if burst.live:
            ranks |= dict.fromkeys(burst.lease.ranks, burst.id)
            hosts |= dict.fromkeys(burst.lease.hosts, burst.id)
    for key in unread:
        alike = hosts_named_after(_slot_name(key), slots)
        kept = alike or [host for slot in slots for host in slot.hosts]
        hosts = {**dict.fromkeys(kept, key), **hosts}
    found: dict[str, str] = {}
    for slot in slots:
        if not ranks.keys().isdisjoint(slot.ranks):
            found[slot.name] = next(ranks[r] for r in slot.ranks if r in ranks)
        elif not hosts.keys().isdisjoint(slot.hosts):
            found[slot.name] = next(hosts[h] for h in slot.hosts if h in hosts)
    return found


def readable_slots(slots: Sequence[RankSlot], unread: Iterable[str]) -> list[RankSlot]:
    """Return the slots that no burst with an unreadable record may have."""
    stuck = slot_holders(slots, (), unread)
    return [slot for slot in slots if slot.name not in stuck]


def hosts_named_after(name: str, slots: Iterable[RankSlot]) -> list[str]:
    """Return the hosts of the slots declared now that bear the name of an earlier slot.

    Slots may have been declared anew since; a slot's name is what its hosts share.
    """
    if not name:
        return []
    named = re.compile(re.escape(name) + r"(-?\d+)?")
    hosts = [host for slot in slots for host in slot.hosts]
    return [host for host in hosts if named.fullmatch(dns_label(host, "slot"))]


def _slot_name(key: str) -> str:
    """Return the slot of a burst's record, as its key has it: `burst/SLOT-HASH`."""
    return key.removeprefix("burst/").rpartition("-")[0]


def _declared(text: str, ranks: dict[str, int]) -> tuple[str, ...]:
    try:
        hosts = parse_hostlist(text)
    except ValueError as error:
        raise ConfigError(f"lead.slots: {error}") from error
    unknown = [host for host in hosts if host not in ranks]
    if unknown or not hosts:
        raise ConfigError(
            f"lead.slots: {format_hostlist(unknown) or repr(text)} is not in the"
            " lead's hosts",
            "ranks are fixed when the lead starts: declare the hosts by `burst"
            " lead add-slot`, and restart it",
        )
    numbers = [ranks[host] for host in hosts]
    if numbers != list(range(numbers[0], numbers[0] + len(numbers))):
        raise ConfigError(
            f"lead.slots: {text} is not a run of ranks in the lead's own order",
            "declare one slot for each run",
        )
    return hosts


def _by_stem(hosts: Sequence[str]) -> list[tuple[str, ...]]:
    groups: list[list[str]] = []
    last = ""
    for host in hosts:
        match = _STEM.match(host)
        stem = match[1] if match else ""
        if stem and stem == last:
            groups[-1].append(host)
        elif stem:
            groups.append([host])
        last = stem
    return [tuple(group) for group in groups]


def _joined_through(identity: LeadIdentity) -> frozenset[str]:
    """Return the hosts that join through another one, their gateway."""
    entries = (entry for entry in identity.bootstrap.hosts if entry.parent)
    return frozenset(host for e in entries for host in parse_hostlist(e.host))


def _slot(
    hosts: tuple[str, ...],
    ranks: dict[str, int],
    identity: LeadIdentity,
    through: frozenset[str],
) -> RankSlot:
    numbers = tuple(ranks[host] for host in hosts)
    shapes = [identity.shapes[rank] for rank in numbers]
    return RankSlot(
        name=_name(hosts),
        hosts=hosts,
        ranks=numbers,
        shape=Shape(min(s.cores for s in shapes), min(s.gpus for s in shapes)),
        properties=frozenset(
            name
            for name, having in identity.properties.items()
            if having.issuperset(numbers)
        ),
        divisible=through.isdisjoint(hosts),
    )


def _name(hosts: tuple[str, ...]) -> str:
    """Return a DNS label: the part that all names share, else the first host."""
    stems = {host.rstrip("0123456789").rstrip("-") for host in hosts}
    return dns_label(stems.pop() if len(stems) == 1 else hosts[0], "slot")


def _name_apart(slots: Sequence[RankSlot]) -> list[RankSlot]:
    """Name slots that would share a name after their first host instead."""
    names = Counter(slot.name for slot in slots)
    return [
        msgspec.structs.replace(slot, name=dns_label(slot.hosts[0], "slot"))
        if names[slot.name] > 1
        else slot
        for slot in slots
    ]
