# SPDX-License-Identifier: MIT
"""What fits where, as the planner has it, against Flux's own Rv1Pool."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from burst.core.plan.constraints import Constraints
from burst.core.plan.fit import NodePool, nodes_needed
from burst.flux.node_set import parse_nodes
from burst.model.lead import Bootstrap, LeadIdentity
from burst.model.ranks import format_idset
from burst.model.request import parse_request
from burst.model.resource_set import resource_set
from burst.model.shape import Shape
from tests.conftest import COUNTS
from tests.embedded.oracle import (
    CONSTRAINTS,
    MOST_NODES,
    POOLS,
    SHAPES,
    Node,
    Oracle,
    as_r,
    open_oracle,
)
from tests.flux_instance import flux_bindings

pytestmark = pytest.mark.flux

COUNTED = "jobspecs that the planner and Rv1Pool agree on"


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    with open_oracle() as oracle:
        yield oracle


def as_identity(resources: dict[str, Any], size: int) -> LeadIdentity:
    """Return what the daemon reads of a lead with this R."""
    nodes = parse_nodes(resources)
    return LeadIdentity(
        kind="flux",
        version="0.88.0",
        uri="",
        owner="",
        hosts=tuple(f"n{rank}" for rank in range(size)),
        shapes=tuple(nodes.shape(rank) for rank in range(size)),
        properties=resource_set(resources).properties,
        bootstrap=Bootstrap(hosts=()),
        endpoint="",
        certificate="",
    )


class Asked(msgspec.Struct, frozen=True):
    """What a user types: -N, -n, -c, -g, -x and --requires; 0 for what he does not."""

    nodes: int
    tasks: int
    cores: int
    gpus: int
    exclusive: bool
    constraint: dict[str, Any] | None

    @property
    def whole_nodes(self) -> bool:
        """Whether it is for nodes of its own; -N alone is."""
        return bool(self.nodes) and (self.exclusive or not self.tasks)

    def jobspec(self, least: int) -> dict[str, Any]:
        """Return what Flux's own Python makes of it.

        `least` cores is the smallest node of the pool. Whole nodes are asked for with
        slots that fit there: see the test of those that do not.
        """
        spec = flux_bindings().job.JobspecV1.from_command(
            ["true"],
            # As flux submit has it: -N alone is a task on each whole node.
            num_tasks=max(self.tasks, self.nodes, 1),
            num_nodes=self.nodes or None,
            cores_per_task=min(self.cores, least) if self.whole_nodes else self.cores,
            gpus_per_task=self.gpus or None,
            exclusive=self.whole_nodes,
        )
        if self.constraint is not None:
            spec.setattr("system.constraints", self.constraint)
        found: dict[str, Any] = json.loads(spec.dumps())
        return found


ASKED = st.builds(
    Asked,
    nodes=st.integers(0, 4),
    tasks=st.integers(0, 9),
    cores=st.integers(1, 4),
    gpus=st.integers(0, 2),
    exclusive=st.booleans(),
    constraint=st.none() | CONSTRAINTS,
)


@settings(max_examples=500, deadline=None)
@given(
    POOLS,
    st.frozensets(st.integers(0, MOST_NODES - 1)),
    st.lists(ASKED, min_size=1, max_size=4),
)
def test_jobs_fit_on_what_is_up_where_flux_finds_that_they_do(
    oracle: Oracle, nodes: list[Node], up: frozenset[int], jobs: list[Asked]
) -> None:
    least = min(node.shape.cores for node in nodes)
    jobspecs = [job.jobspec(least) for job in jobs]
    resources = as_r(nodes)
    identity = as_identity(resources, len(nodes))
    up &= frozenset(range(len(nodes)))
    expected = oracle.fits(resources, format_idset(up), jobspecs)
    whole = dict(enumerate(identity.shapes))
    now = NodePool({rank: whole[rank] for rank in up}, whole)
    constraints = Constraints(identity)
    for jobspec, fits in zip(jobspecs, expected, strict=True):
        request = parse_request(jobspec)
        admitted = constraints.admitted(request.constraint)
        assert now.take(request, admitted) is bool(fits), jobspec
        ever = NodePool(whole, whole).take(request, admitted)
        assert ever is (fits is not None), jobspec
        COUNTS[COUNTED] += 1


@settings(max_examples=500, deadline=None)
@given(SHAPES, ASKED)
def test_as_many_nodes_are_needed_as_flux_needs(
    oracle: Oracle, shape: Shape, job: Asked
) -> None:
    job = msgspec.structs.replace(job, constraint=None)
    jobspec = job.jobspec(shape.cores)
    need = nodes_needed(parse_request(jobspec), shape)
    most = max(need, 2 * MOST_NODES)
    resources = as_r([Node(shape)] * most)

    def fits(nodes: int) -> Any:
        (answer,) = oracle.fits(resources, format_idset(range(nodes)), [jobspec])
        return answer

    if need:
        assert fits(need)
        assert fits(need - 1) is False
    else:
        assert fits(most) is None
    COUNTS[COUNTED] += 1


def test_the_planner_does_not_count_on_whole_nodes_that_are_too_small(
    oracle: Oracle,
) -> None:
    """Flux does so by chance: it gives them if they are idle, else it refuses the job.

    Rv1Pool looks at the size of a slot only to say that a job can never run. The
    planner takes the jobspec at its word: no node that is smaller than a slot.
    """
    job = Asked(nodes=1, tasks=0, cores=4, gpus=0, exclusive=True, constraint=None)
    jobspec = job.jobspec(least=4)
    small = as_r([Node(Shape(2))])
    assert oracle.fits(small, "0", [jobspec, jobspec]) == [True, None]
    assert nodes_needed(parse_request(jobspec), Shape(2)) == 0
