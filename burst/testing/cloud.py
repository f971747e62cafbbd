# SPDX-License-Identifier: MIT
"""The world of the fake provider: what exists in it, and what a site sets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from burst.model.burst import BurstId
from burst.model.request import BurstMode
from burst.model.shape import Shape
from burst.provider import BurstSpec, BurstStatus, Failure

Key = tuple[str, str, BurstId]
"""Owner, name of the provider, id."""


class FakeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What a site would set."""

    max_nodes: int = 4
    """In one burst; the offer says so."""
    shape: Shape = Shape(1)
    price: float = 0.0
    join_time: float = 0.0
    lifetime: float = 0.0
    capacity: int = 1_000_000
    """Nodes at a time, of all bursts of this cloud. No offer says so."""
    modes: tuple[BurstMode, ...] = ("joined",)
    """What the offer says."""
    credentials: str = "good"
    """With any other word each call raises Refused."""


class ProviderCall(NamedTuple):
    """One call that a provider got, whether or not it raised."""

    method: str
    burst_id: str = ""


@dataclass
class FakeBurst:
    """What exists of one burst."""

    spec: BurstSpec
    made: list[str] = field(default_factory=list)
    """Hosts, in the order in which they were made."""
    observed: int = 0
    ends_in: int | None = None
    """Further calls until it is gone; None before the first reap."""
    failed: dict[str, str] = field(default_factory=dict)
    failure: Failure = Failure.OTHER
    up: int = 0
    """Calls of `observe` since all its followers run."""
    joins: bool = True
    """Whether what was made joins the lead."""


@dataclass
class FakeCloud:
    """What exists, whoever made it. It outlives the providers that work in it."""

    bursts: dict[Key, FakeBurst] = field(default_factory=dict)
    ghosts: dict[Key, tuple[BurstStatus, int]] = field(default_factory=dict)
    """What is gone, and for how many calls of `observe` it is listed all the same."""

    name: str = "cloud"

    begun: list[BurstId] = field(default_factory=list)
    """Isolated bursts whose program was begun, each time that it was."""

    files: dict[str, str] = field(default_factory=dict)
    """What followers are given to read, by `BURST_ID/NAME`; gone with their burst."""

    reachable: bool = True
    """While it is not, each call raises Transient and does nothing."""
    stalled: bool = False
    """While it is, no follower starts."""
    full: bool = False
    """While it is, nothing new is made."""

    def followers(self) -> Mapping[str, BurstId]:
        """Return the hosts that exist, and the burst of each."""
        return {h: key[2] for key, burst in self.bursts.items() for h in burst.made}

    def online(self) -> frozenset[int]:
        """Return the ranks whose followers have joined their lead."""
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
        """Return how many followers exist under an id, made twice counted twice."""
        return sum(len(b.made) for key, b in self.bursts.items() if key[2] == burst_id)
