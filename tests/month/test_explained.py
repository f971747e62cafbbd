# SPDX-License-Identifier: MIT
"""What the month takes for the end that a job should have had."""

from __future__ import annotations

import msgspec
import pytest

from tests.month.jobs import Ended, Killing, is_explained
from tests.month.month import Size
from tests.month.sizes import check_sizes

GONE = Ended(
    id=1,
    result="FAILED",
    note="exec node failure on burst-0-1 (rank 3)",
    began=1000.0,
    ended=1010.0,
    hosts=frozenset({"burst-0-0", "burst-0-1"}),
)
FEW = {"burst": 12, "settled": 6, "ledger": 2}
SMALL = Size(rss=50_000_000, records=FEW, bytes=40_000, largest=3_000)


def but(job: Ended, **changes: object) -> Ended:
    return msgspec.structs.replace(job, **changes)


def test_a_job_that_completed_needs_no_explanation() -> None:
    assert is_explained(but(GONE, result="COMPLETED", note=""), [])


@pytest.mark.parametrize("what", ["burst-0-1", "lead"])
def test_a_job_may_end_with_its_follower_or_its_lead(what: str) -> None:
    assert is_explained(GONE, [Killing(what, 1005.0)])


@pytest.mark.parametrize(
    ("job", "killing"),
    [
        (GONE, Killing("burst-1-0", 1005.0)),
        (GONE, Killing("daemon", 1005.0)),
        (GONE, Killing("burst-0-1", 900.0)),
        (GONE, Killing("burst-0-1", 1100.0)),
        (but(GONE, result="CANCELED"), Killing("burst-0-1", 1005.0)),
        (but(GONE, note="burst no offer"), Killing("burst-0-1", 1005.0)),
    ],
)
def test_any_other_end_is_not_explained(job: Ended, killing: Killing) -> None:
    assert not is_explained(job, [killing])


@pytest.mark.parametrize(
    "last",
    [
        Size(rss=50_000_000, records=FEW, bytes=400_000, largest=70_000),
        Size(rss=50_000_000, records={"burst": 150}, bytes=40_000, largest=3_000),
        Size(rss=50_000_000, records={"job": 1700}, bytes=40_000, largest=3_000),
        Size(rss=50_000_000, records={"settled": 1100}, bytes=40_000, largest=3_000),
        Size(rss=50_000_000, records=FEW, bytes=900_000, largest=60_000),
        Size(rss=90_000_000, records=FEW, bytes=40_000, largest=3_000),
    ],
)
def test_a_store_or_a_daemon_that_grew_is_found(last: Size) -> None:
    check_sizes([SMALL, SMALL], [SMALL])
    with pytest.raises(AssertionError):
        check_sizes([SMALL, last], [SMALL, last])
