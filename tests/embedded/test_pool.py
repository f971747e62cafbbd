# SPDX-License-Identifier: MIT
"""Which resources a job gets. `test_pool_as_flux` compares what fits with Flux."""

from __future__ import annotations

import pytest
from burst_embedded.pool import ResourcePool

from burst.model.request import parse_request
from burst.model.shape import Shape
from tests.embedded.jobspecs import Wanted, build_jobspec
from tests.embedded.nodes import resources


@pytest.mark.parametrize(
    ("wanted", "second", "third"),
    [
        (Wanted(slots=5), {"core": "0-3"}, {"core": "0"}),
        (Wanted(slots=2, gpus=1), {"core": "0", "gpu": "0"}, {"core": "0", "gpu": "0"}),
        (Wanted(nodes=2), {"core": "0-3", "gpu": "0"}, {"core": "0-3", "gpu": "0"}),
    ],
)
def test_the_freest_node_comes_first(
    wanted: Wanted, second: dict[str, str], third: dict[str, str]
) -> None:
    """Of two nodes of 2 cores, and two of 4 cores and a GPU."""
    own, lent = (Shape(2), ["local"]), (Shape(4, 1), ["burst"])
    pool = ResourcePool(resources(own, own, lent, lent))
    pool.online |= pool.hosts.keys()
    found = pool.allocate(parse_request(build_jobspec(["true"], wanted, {})))
    assert found
    taken = {group.rank: group.children for group in found.groups}
    assert taken == {"2": second, "3": third}
