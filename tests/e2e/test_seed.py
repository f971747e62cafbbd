# SPDX-License-Identifier: MIT
"""The lead in a pod, its daemon beside it, brokers elsewhere: real Flux, manifests/.

All that is done with the lead is `flux submit`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.seed import Seed, planted, run_experiment
from tests.kubernetes.access import GivenCluster
from tests.support.fluxlead import needs_flux

pytestmark = [pytest.mark.e2e, needs_flux]


def test_submitting_is_all_that_is_done(cluster: GivenCluster, tmp_path: Path) -> None:
    """The experiment that this project grew from, whole."""
    with planted(Seed, cluster, tmp_path) as seed:
        seed.apply()
        run_experiment(seed)
        # The daemon does not keep the lead's Job from being complete.
        seed.flux("shutdown", "--quiet")
        done = ("wait", "job/lead", "--for=condition=Complete", "--timeout=60s")
        seed.cluster.kubectl(*done, "-n", seed.near)
