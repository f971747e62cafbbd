# SPDX-License-Identifier: MIT
"""An ensemble on real Flux with the local provider."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.flux.site import Site
from tests.flux_instance import FLUX, MISSING
from tests.support.ensemble_story import run_to_its_end

pytestmark = [pytest.mark.flux, pytest.mark.skipif(not FLUX, reason=MISSING)]


def test_members_grow_run_their_jobs_and_end(site: Site, tmp_path: Path) -> None:
    with site.cli.daemon():
        found = run_to_its_end(site.cli, tmp_path)
        assert found["largest"] == 3
        members = found["row"]["members"]
        assert "6 jobs have succeeded" in members["md"]["member"]["why"]
        assert "2 jobs have failed" in members["post"]["member"]["why"]
        names = site.flux("jobs", "-a", "-n", "-o", "{name} {result} {nodelist}")
        steps = [line.split() for line in names.splitlines() if ".md.step." in line]
        assert len(steps) == 6, "each job once"
        slot = members["md"]["member"]["slot"].split("[")[0]
        assert all(nodes.startswith(slot) for _, _, nodes in steps)
        site.check_that_nothing_is_left()
