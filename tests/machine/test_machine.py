# SPDX-License-Identifier: MIT
"""What never happens, whatever happens: interleavings of the same seeds each time.

So a change is judged by what it changes, and not by the luck of a draw; `make soak`
looks for new seeds. What breaks is printed with its seed, and as a replay; once mended,
that becomes a test in `test_replays.py`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

import pytest

from tests.conftest import COUNTS
from tests.machine.explore import explore

# In parts, so that several workers of pytest-xdist have a share.
PARTS = 8
FEW = range(1_000)
"""The seeds of `make test`."""
MANY = range(1_000, 6_000)
"""The seeds of `make e2e`."""


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Keep pytest from collecting what a thousand daemons say."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def run(seeds: Sequence[int]) -> None:
    for seed in seeds:
        failure = explore(seed)
        COUNTS["interleavings of users, faults and crashes"] += 1
        assert failure is None, failure.show()


# With coverage it would take twice as long; each line has a test that is nearer to it.
@pytest.mark.no_cover
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("part", range(PARTS))
def test_no_invariant_breaks(part: int) -> None:
    run(FEW[part::PARTS])


@pytest.mark.machine
@pytest.mark.no_cover
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("part", range(PARTS))
def test_no_invariant_breaks_in_five_thousand(part: int) -> None:
    run(MANY[part::PARTS])
