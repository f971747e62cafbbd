# SPDX-License-Identifier: MIT
"""The embedded lead allocates as Flux does: compared with Flux's own Rv1Pool."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from burst_embedded.pool import Infeasible, ResourcePool
from hypothesis import given, settings
from hypothesis import strategies as st

from burst.model.ranks import format_idset
from burst.model.request import parse_request
from burst.model.resource_set import resource_set
from tests.embedded.jobspecs import Wanted, build_jobspec
from tests.embedded.oracle import CONSTRAINTS, POOLS, Node, Oracle, as_r, open_oracle

pytestmark = pytest.mark.flux


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    with open_oracle() as oracle:
        yield oracle


def jobspecs() -> st.SearchStrategy[dict[str, Any]]:
    def build(
        wanted: Wanted, exclusive: bool, constraint: dict[str, Any] | None
    ) -> dict[str, Any]:
        each = Wanted(
            nodes=wanted.nodes,
            slots=wanted.slots * (wanted.nodes or 1),
            cores=wanted.cores,
            gpus=wanted.gpus,
        )
        system = {"constraints": constraint} if constraint else {}
        jobspec = build_jobspec(["true"], each, system)
        if exclusive:
            jobspec["resources"][0]["exclusive"] = True
        return jobspec

    wanted = st.builds(
        Wanted,
        nodes=st.integers(0, 4),
        slots=st.integers(0, 4),
        cores=st.integers(1, 4),
        gpus=st.integers(0, 2),
    )
    return st.builds(build, wanted, st.booleans(), st.none() | CONSTRAINTS)


def answer(pool: ResourcePool, jobspec: dict[str, Any]) -> Any:
    try:
        found = pool.allocate(parse_request(jobspec))
    except Infeasible:
        return "infeasible"
    return found and {
        str(group.rank): [sorted(group.ids("core")), sorted(group.ids("gpu"))]
        for group in found.groups
    }


@settings(max_examples=300, deadline=None)
@given(
    POOLS,
    st.frozensets(st.integers(0, 4)),
    st.lists(jobspecs(), min_size=1, max_size=6),
)
def test_the_same_jobs_get_the_same(
    oracle: Oracle, nodes: list[Node], up: frozenset[int], jobs: list[Any]
) -> None:
    up &= frozenset(range(len(nodes)))
    expected = oracle.answers(as_r(nodes), format_idset(up), jobs)
    pool = ResourcePool(resource_set(as_r(nodes)))
    pool.online |= up
    assert [answer(pool, jobspec) for jobspec in jobs] == expected
