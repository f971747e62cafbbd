# SPDX-License-Identifier: MIT
"""What the steps of an ensemble keep.

A step takes the record and returns the next one, which is written before any of the
step's intents is done.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from burst_ensemble.core.intents import JobRef
from burst_ensemble.core.statistics import GroupStatistics


class Trouble(msgspec.Struct, frozen=True, kw_only=True):
    """Why a member's algorithm is not asked: it raised, or was too slow."""

    what: str
    first: float
    """When it began."""
    until: float
    """It is asked again from then on; the member stays as it is before."""


class MemberRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of a member. Times are seconds since the epoch."""

    started: float
    nodes: int = 0
    """How many it is to have."""
    grown: float | None = None
    shrunk: float | None = None
    memory: Mapping[str, Mapping[str, Any]] = {}
    """What each algorithm remembers, by its name."""
    submitted: Mapping[str, int] = {}
    """Jobs that were given out of its own groups; the next gets this number."""
    unconfirmed: tuple[JobRef, ...] = ()
    """Jobs that are on record and may not be submitted yet."""
    commands: int = 0
    """Commands that were asked for so far."""
    unconfirmed_commands: tuple[tuple[int, str], ...] = ()
    statistics: Mapping[str, GroupStatistics] = {}
    """By group."""
    read_until: float = 0.0
    """Timestamp of the last event that is counted in `statistics`."""
    spent: float = 0.0
    """As it was read last."""
    paid: int = 0
    """Nodes that were paid as it was read last, those that are given back, too."""
    trouble: Trouble | None = None
    limited: str = ""
    """Which limit leaves it fewer nodes than it wants; empty if none does."""
    why: str = ""
    """Of the last change, or of the end."""
    ended: float | None = None
    """When it was decided that it ends, for good."""


class EnsembleRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of an ensemble."""

    name: str
    started: float
    members: Mapping[str, MemberRecord] = {}
    shared: Mapping[str, int] = {}
    """Jobs that were given out of groups that all members share."""
    ended: float | None = None
    why: str = ""
    """Of the end."""
