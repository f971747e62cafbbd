# SPDX-License-Identifier: MIT
import pytest

from burst.core.plan.fit import NodePool, describe_need, merged, nodes_needed
from burst.model.request import ResourceRequest
from burst.model.shape import Shape
from tests.builders import slots, whole


def on_nodes(nodes, per_node, cores=1, gpus=0):
    slot = {"cores_per_slot": cores, "gpus_per_slot": gpus}
    return ResourceRequest(nodes=nodes, slots=nodes * per_node, **slot)


@pytest.mark.parametrize(
    ("request_", "shape", "nodes"),
    [
        (whole(3), Shape(4), 3),
        (whole(3, cores_per_slot=5), Shape(4), 0),
        (whole(3, gpus_per_slot=1), Shape(4), 0),
        (on_nodes(2, 4), Shape(4), 2),
        (on_nodes(2, 5), Shape(4), 0),
        (on_nodes(2, 1, gpus=2), Shape(4, 1), 0),
        (slots(10, 2), Shape(8), 3),
        (slots(8, 2), Shape(8), 2),
        (slots(1, 9), Shape(8), 0),
        (slots(3, 1, 1), Shape(8, 2), 2),
        (slots(3, 1, 1), Shape(8, 0), 0),
    ],
)
def test_counts_the_nodes_that_a_job_needs(request_, shape, nodes):
    assert nodes_needed(request_, shape) == nodes


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        (whole(3), "1 core"),
        (on_nodes(2, 3, 2, 1), "6 cores, 3 GPUs"),
        (slots(10, 2, 1), "2 cores, 1 GPU"),
    ],
)
def test_says_what_a_node_must_have(request_, text):
    assert describe_need(request_) == text


def pool(**free):
    shapes = {int(rank[1:]): shape for rank, shape in free.items()}
    return NodePool(shapes, {rank: Shape(4, 2) for rank in shapes})


def test_takes_whole_nodes_only_where_nothing_runs():
    nodes = pool(r0=Shape(3, 2), r1=Shape(4, 2), r2=Shape(4, 1))

    assert not nodes.take(whole(3))
    assert nodes.take(whole(2))
    assert not nodes.take(whole(1))
    assert nodes


@pytest.mark.parametrize(
    ("free", "asked"),
    [
        (Shape(4, 0), whole(1, gpus_per_slot=1)),
        # Rv1Pool would give it, and says of the same node that it can never be had.
        (Shape(4, 2), whole(1, cores_per_slot=5)),
        (Shape(4, 2), on_nodes(1, 5)),
    ],
)
def test_a_node_with_less_than_a_job_needs_will_not_do(free, asked):
    assert not pool(r0=free).take(asked)


def test_takes_the_emptiest_nodes_first():
    nodes = pool(r0=Shape(2), r1=Shape(4), r2=Shape(3))

    assert nodes.take(on_nodes(1, 4))
    assert nodes.take(on_nodes(1, 3))
    assert nodes.take(on_nodes(1, 2))
    assert not nodes


def test_a_node_that_is_too_small_is_passed_over():
    assert not pool(r0=Shape(4, 0), r1=Shape(2, 2)).take(on_nodes(1, 3, gpus=1))


def test_spreads_slots_over_nodes():
    nodes = pool(r0=Shape(4, 1), r1=Shape(4, 2))

    assert not nodes.take(slots(4, 1, 1))
    assert nodes.take(slots(3, 1, 1))
    assert not nodes.take(slots(1, 1, 1))
    assert nodes.take(slots(5))


def test_takes_only_from_the_nodes_that_are_allowed():
    nodes = pool(r0=Shape(4), r1=Shape(4))

    assert not nodes.take(whole(2), frozenset({1}))
    assert nodes.take(whole(1), frozenset({1}))
    assert not nodes.take(whole(1), frozenset({1}))


def test_nodes_can_be_added():
    nodes = NodePool({}, {})
    assert not nodes

    nodes.add([7], Shape(4))

    assert nodes.take(whole(1))


def whole_nodes(**free):
    shapes = {int(rank[1:]): shape for rank, shape in free.items()}
    whole = {rank: Shape(4, 2) for rank in shapes}
    return NodePool(shapes, whole, whole_nodes=True)


def test_with_whole_nodes_a_job_takes_idle_nodes_and_all_of_each():
    nodes = whole_nodes(r0=Shape(3, 2), r1=Shape(4, 2), r2=Shape(4, 2), r3=Shape(4, 2))

    assert nodes.fit(slots(1)) == {1: Shape(4, 2)}
    assert nodes.take(slots(5))  # four of them on one node
    assert nodes.free == {0: Shape(3, 2), 3: Shape(4, 2)}
    assert not nodes.fit(on_nodes(2, 2))
    assert not nodes.fit(slots(5))
    assert nodes.take(slots(1, 2))
    assert not nodes.take(slots(1))
    assert merged([nodes, nodes]).whole_nodes
