# SPDX-License-Identifier: MIT
"""Resources: fit, allocation. `test_pool_as_flux` compares with Flux."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from burst_embedded.pool import Infeasible, ResourcePool, summary

from burst.model.request import ResourceRequest, parse_request
from burst.model.shape import Shape
from tests.embedded.jobspecs import Wanted, build_jobspec
from tests.embedded.nodes import resources


def request(
    constraint: dict[str, Any] | None = None, *, exclusive: bool = False, **wanted: int
) -> ResourceRequest:
    """Return what `flux submit` with these options asks for."""
    system = {"constraints": constraint} if constraint else {}
    jobspec = build_jobspec(["true"], Wanted(**wanted), system)
    found = parse_request(jobspec)
    return msgspec.structs.replace(found, exclusive=exclusive or found.exclusive)


@pytest.fixture
def pool() -> ResourcePool:
    """Two nodes of 2 cores, four of 4 cores and 1 GPU; all up."""
    own, lent = (Shape(2), ["local"]), (Shape(4, 1), ["burst"])
    pool = ResourcePool(resources(own, own, lent, lent, lent, lent))
    pool.online |= pool.hosts.keys()
    return pool


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        (request(slots=1), "rank2/core[0]"),
        (request(slots=5), "rank2/core[0-3] rank3/core[0]"),
        (request(slots=2, cores=3), "rank2/core[0-2] rank3/core[0-2]"),
        (request(slots=2, gpus=1), "rank2/core[0],gpu[0] rank3/core[0],gpu[0]"),
        (request(nodes=2), "rank2/core[0-3],gpu[0] rank3/core[0-3],gpu[0]"),
        (request(nodes=2, slots=4), "rank2/core[0-1] rank3/core[0-1]"),
    ],
)
def test_the_freest_node_comes_first(
    pool: ResourcePool, wanted: ResourceRequest, text: str
) -> None:
    found = pool.allocate(wanted)
    assert found
    assert summary(found) == text


def test_what_is_taken_is_not_free_until_it_is_released(pool: ResourcePool) -> None:
    before = pool.free_shapes()
    found = pool.allocate(request({"properties": ["burst"]}, nodes=4))
    assert found
    assert pool.allocated() == {2, 3, 4, 5}
    assert pool.free_shapes()[2] == Shape(0, 0)
    assert pool.allocate(request({"properties": ["burst"]}, slots=1)) is None
    assert pool.allocate(request({"properties": ["local"]}, slots=1))
    pool.release(found)
    assert {rank: pool.free_shapes()[rank] for rank in (2, 3)} == {
        rank: before[rank] for rank in (2, 3)
    }


def test_ranks_that_are_down_or_drained_are_not_used(pool: ResourcePool) -> None:
    pool.online -= {2, 3}
    pool.drained[4] = "burst: idle"
    found = pool.allocate(request(slots=1, cores=4))
    assert found is not None
    assert found.ranks == {5}
    assert pool.allocate(request(slots=1, cores=4)) is None


@pytest.mark.parametrize(
    "wanted",
    [
        request(nodes=7),
        request(nodes=5, slots=15),
        request(nodes=1, slots=2, gpus=1),
        request(slots=21),
        request(slots=5, gpus=1),
    ],
)
def test_what_never_fits_is_infeasible(
    pool: ResourcePool, wanted: ResourceRequest
) -> None:
    pool.online.clear()
    with pytest.raises(Infeasible, match="unsatisfiable request: no ranks could ever"):
        pool.allocate(wanted)


def test_what_is_down_may_come_and_is_feasible(pool: ResourcePool) -> None:
    pool.online.clear()
    assert pool.allocate(request(nodes=6)) is None
