# SPDX-License-Identifier: MIT
"""What algorithms see of members."""

from __future__ import annotations

import pytest
from burst_ensemble.core.controller import new_record
from burst_ensemble.core.views import make_views

from tests.plugins.ensemble.core.ensembles import NOW, ensemble, member, reading


@pytest.mark.parametrize(("mode", "up", "free"), [("joined", 2, 1), ("isolated", 5, 4)])
def test_nodes_that_isolated_bursts_may_yet_have_are_free(mode, up, free) -> None:
    spec = ensemble(member("m", mode=mode))
    record = new_record(spec, NOW).with_member("m", nodes=5)
    (found,) = make_views(spec, record, {"m": reading(2, 1)}).values()
    assert (found.nodes, found.nodes_paid) == (5, 2)
    assert (found.nodes_up, found.nodes_free) == (up, free)
