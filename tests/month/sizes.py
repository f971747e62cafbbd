# SPDX-License-Identifier: MIT
"""How large records and memory may be at the end of a month."""

from __future__ import annotations

from burst.core.money.accounts import KEPT_SETTLED
from burst.core.tick import KEPT_ENDED
from burst.model.burst import KEPT_JOBS
from tests.month.month import Size

# A record of a burst, however many jobs it had.
LARGEST_RECORD = 64 * 1024


# An allocator gives back what it can; a leak of a job would be far more.
RSS_GROWTH = 1.4


RECORD = 4096
"""More than a record has here on average, in bytes."""

FEW = 40
"""More than there are of a kind of which none is kept for its number: providers, holds,
and days."""


def check_sizes(sizes: list[Size], one_daemons: list[Size]) -> None:
    """Fail if records grow with the jobs there were, or the memory of one daemon."""
    last = sizes[-1]
    assert all(size.largest < LARGEST_RECORD for size in sizes), sizes
    kept = {
        "burst": KEPT_ENDED,
        "job": KEPT_ENDED * KEPT_JOBS,
        "settled": KEPT_SETTLED,
    }
    for kind, count in last.records.items():
        assert count <= kept.get(kind, 0) + FEW, last
    assert last.bytes <= sum(last.records.values()) * RECORD, last
    # The first of a daemon that has done some work, as that loads what it needs.
    rss = [size.rss for size in one_daemons]
    assert rss[-1] <= RSS_GROWTH * rss[0], one_daemons
