# SPDX-License-Identifier: MIT
"""kill -9 of the daemon at each step of a burst that a site's program makes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.flux.crash_story import kill_at_each_step
from tests.flux.site import open_site
from tests.flux_instance import FLUX, MISSING
from tests.flux_pool import FluxPool
from tests.plugins.command.played import Site

pytestmark = [pytest.mark.flux, pytest.mark.skipif(not FLUX, reason=MISSING)]


def test_a_burst_goes_on_under_the_next_daemon_at_each_step_of_its_life(
    flux_pool: FluxPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played = Site(tmp_path)
    table = {
        "type": "command",
        "program": list(played.settings.program),
        "dir": played.settings.dir,
        "cores": 4,
        "gpus": 1,
        "max_nodes": 4,
    }
    with open_site(pool=flux_pool, table=table) as site:
        site.offer_provider(monkeypatch)
        burst_id = kill_at_each_step(site)
    assert played.nodes(burst_id) == {}
    assert list(played.bursts.iterdir()) == []
    assert list(Path("/tmp").glob(f"{burst_id}-*")) == []
