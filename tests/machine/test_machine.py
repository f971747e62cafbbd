# SPDX-License-Identifier: MIT
"""What never happens, whatever happens: the interleavings of the first seeds.

A seed that failed in `make soak` and is mended becomes a test in `test_replays.py`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from tests.conftest import COUNTS
from tests.machine.explore import explore

# In parts, so that several workers of pytest-xdist have a share.
PARTS = 8
SEEDS = 5_200


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Keep pytest from collecting what a thousand daemons say."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


# With coverage it would take twice as long; each line has a test that is nearer to it.
@pytest.mark.no_cover
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("part", range(PARTS))
def test_no_invariant_breaks(part: int) -> None:
    for seed in range(part, SEEDS, PARTS):
        failure = explore(seed)
        COUNTS["interleavings of users, faults and crashes"] += 1
        assert failure is None, failure.show()
