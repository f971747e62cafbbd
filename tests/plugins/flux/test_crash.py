# SPDX-License-Identifier: MIT
"""kill -9 of the daemon at each step of a burst in another Flux."""

from __future__ import annotations

import pytest

from tests.flux.crash_story import kill_at_each_step
from tests.flux.site import open_site
from tests.flux_instance import FLUX, MISSING
from tests.flux_pool import FluxPool
from tests.plugins.flux.other_flux import OtherInstance

pytestmark = [pytest.mark.flux, pytest.mark.skipif(not FLUX, reason=MISSING)]


def test_a_burst_goes_on_under_the_next_daemon_at_each_step_of_its_life(
    flux_pool: FluxPool, other: OtherInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_site(pool=flux_pool, table=other.table) as site:
        site.offer_provider(monkeypatch)
        burst_id = kill_at_each_step(site)
    names = other.flux("jobs", "-a", "-n", "--format={name}")
    assert names.count(burst_id) == 1
    assert other.jobs() == []
    assert list(other.files.glob("*.flux")) == []
