# SPDX-License-Identifier: MIT
"""The cloud in which the fake provider makes bursts, and that provider's settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from burst.model.burst import BurstId
from burst.model.request import BurstMode
from burst.model.shape import Shape
from burst.provider import BurstSpec, BurstStatus, Failure

Key = tuple[str, str, BurstId]
"""The owner, the name of the provider, and the id of a burst."""


class FakeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of the fake provider."""

    max_nodes: int = 4
    """Most nodes of one burst, as the offer says."""
    total: int = 0
    """The offer's `total`."""
    shape: Shape = Shape(1)
    price: float = 0.0
    join_time: float = 0.0
    lifetime: float = 0.0
    spot: bool = False
    """The offer's `spot`; the four settings above are also those of the offer."""
    capacity: int = 1_000_000
    """Most nodes of all bursts in the cloud at one time, whatever the offer says."""
    modes: tuple[BurstMode, ...] = ("joined",)
    """The offer's `modes`."""
    own_images: bool = False
    """The offer's `own_images`."""
    guests: bool = True
    """The offer's `guests`."""
    credentials: str = "good"
    """With any value except `good`, each call raises Refused."""


class ProviderCall(NamedTuple):
    """One call of a provider, whether or not it raised."""

    method: str
    burst_id: str = ""


@dataclass
class FakeBurst:
    """The state of one burst in the fake cloud."""

    spec: BurstSpec
    made: list[str] = field(default_factory=list)
    """Hosts that exist, in the order in which they were made."""
    observed: int = 0
    ends_in: int | None = None
    """Further calls of `reap` or `observe` until it is gone; None before a reap."""
    failed: dict[str, str] = field(default_factory=dict)
    failure: Failure = Failure.OTHER
    reclaimed: set[str] = field(default_factory=set)
    """Hosts whose nodes the cloud took back."""
    evicted: dict[str, str] = field(default_factory=dict)
    """Hosts that the cloud ended and is to start again, and why it ended each."""
    up: int = 0
    """Number of times that an isolated burst was listed with all its followers up."""
    joins: bool = True
    """Whether its followers join the lead."""
    missing: set[str] = field(default_factory=set)
    """Hosts that a growth has not made yet."""
    grown_at: dict[str, int] = field(default_factory=dict)
    """Hosts that a growth has made, and the value of `observed` at that time."""
    leaving: dict[str, int] = field(default_factory=dict)
    """Hosts that a shrink ends, and the calls of `observe` until each is gone."""

    def let_go(self, calls: int = 0) -> None:
        """Let this many calls of `observe` pass for the hosts that a shrink ends."""
        for host, left in list(self.leaving.items()):
            self.leaving[host] = left - calls
            if left - calls <= 0:
                del self.leaving[host]
                self.made = [each for each in self.made if each != host]
                self.grown_at.pop(host, None)
                self.reclaimed.discard(host)
                self.evicted.pop(host, None)


@dataclass
class FakeCloud:
    """All bursts of all providers. It outlives the provider objects."""

    bursts: dict[Key, FakeBurst] = field(default_factory=dict)
    ghosts: dict[Key, tuple[BurstStatus, int]] = field(default_factory=dict)
    """Bursts that are gone, and how many calls of `observe` still list them."""

    name: str = "cloud"

    begun: list[BurstId] = field(default_factory=list)
    """Isolated bursts, once for each start of their program."""

    environment: dict[str, str] = field(default_factory=lambda: {"PATH": "/usr/bin"})
    """The variables of followers."""

    files: dict[str, str] = field(default_factory=dict)
    """The files of followers, by `BURST_ID/NAME`; deleted with their burst."""

    reachable: bool = True
    """While it is False, each call raises Transient and does nothing."""
    stalled: bool = False
    """While it is True, no follower starts, and none that was asked to end does."""
    full: bool = False
    """While it is True, no new burst is made, and none grows."""
    clock: Callable[[], float] | None = None
    """The clock by which followers end at `lease_end`; None if they do not end then."""

    def end_leases(self) -> None:
        """End the followers of each burst whose lease has ended."""
        if self.clock is None:
            return
        now = self.clock()
        for burst in self.bursts.values():
            if burst.spec.lease_end and now >= burst.spec.lease_end:
                burst.failed |= dict.fromkeys(burst.made, "its lease has ended")
                burst.made = []

    def followers(self) -> Mapping[str, BurstId]:
        """Return the hosts that exist, and the burst of each."""
        self.end_leases()
        return {h: key[2] for key, burst in self.bursts.items() for h in burst.made}

    def online(self) -> frozenset[int]:
        """Return the ranks whose followers have joined their lead."""
        self.end_leases()
        return frozenset(
            rank
            for burst in self.bursts.values()
            for host, rank in zip(burst.spec.hosts, burst.spec.ranks, strict=False)
            if burst.joins and host in burst.made and host not in burst.failed
        )

    def remove(self, key: Key) -> None:
        """Delete a burst and its files."""
        del self.bursts[key]
        for path in self.files_of(key[2]):
            del self.files[path]

    def files_of(self, burst_id: BurstId) -> list[str]:
        """Return the paths of a burst's files."""
        return [path for path in self.files if path.startswith(f"{burst_id}/")]

    def count(self, burst_id: BurstId) -> int:
        """Return how many followers a burst has; one made twice counts twice."""
        self.end_leases()
        return sum(len(b.made) for key, b in self.bursts.items() if key[2] == burst_id)
