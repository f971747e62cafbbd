# SPDX-License-Identifier: MIT
"""2,000 burst jobs in one asynchronous batch: what the scheduler gets of them.

Half are larger than the instance, half small but for lent nodes only, which never come.
"""

from __future__ import annotations

import pytest

from benchmarks.blocking import RACING, bench
from tests.conftest import COUNTS
from tests.flux_instance import FLUX, MISSING

pytestmark = [
    pytest.mark.flux,
    pytest.mark.skipif(not FLUX, reason=MISSING),
    pytest.mark.timeout(240),
]


@pytest.mark.parametrize("mode", ["queue", "scheduler", "hold-burst"])
def test_of_a_batch_none_is_denied_and_none_started_on_own_nodes(mode: str) -> None:
    with bench(mode) as place:
        found = place.race()
    assert found.jobs == RACING
    assert (found.denied, found.started) == (0, 0)


def test_by_attribute_alone_what_is_not_lost_is_held() -> None:
    """How many are lost depends on the machine, and is printed at the end of a run."""
    with bench("hold") as place:
        found = place.race()
    COUNTS["burst jobs denied, of 1,000 submitted by attribute alone"] = found.denied
    COUNTS["burst jobs started here, of 1,000 by attribute alone"] = found.started
    assert found.denied + found.held >= RACING // 2
