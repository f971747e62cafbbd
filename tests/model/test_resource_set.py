# SPDX-License-Identifier: MIT
"""R of RFC 20 is read as it is written."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from burst.model.resource_set import (
    EMPTY,
    ResourceGroup,
    ResourceNode,
    decode_resource_set,
    group_of,
    resource_set,
    shape_of,
)
from burst.model.shape import Shape

LITE = [
    {"rank": "0-1", "children": {"core": "0-3"}},
    {"rank": "3", "children": {"core": "2,5", "gpu": "1"}},
]
WRITTEN = {
    "version": 1,
    "execution": {
        "R_lite": LITE,
        "starttime": 5.0,
        "expiration": 65.0,
        "nodelist": ["n[0-1]", "x"],
        "properties": {"big": "3", "none": ""},
    },
}

SHAPES = st.builds(Shape, st.integers(1, 300), st.integers(0, 9))
BLOCKS = st.lists(
    st.tuples(st.integers(1, 40), SHAPES, st.sets(st.sampled_from("abc"))), max_size=5
)


def test_r_says_ranks_hosts_and_properties():
    found = resource_set(WRITTEN)

    assert found.ranks == {0, 1, 3}
    assert found.hosts == ("n0", "n1", "x")
    assert found.properties == {"big": {3}, "none": frozenset()}
    assert found.expiration == 65.0
    assert [group.ids("core") for group in found.groups] == [{0, 1, 2, 3}, {2, 5}]
    assert [group.ids("gpu") for group in found.groups] == [frozenset(), {1}]
    assert found.nodes == (
        ResourceNode(0, "n0", {"core": "0-3"}),
        ResourceNode(1, "n1", {"core": "0-3"}),
        ResourceNode(3, "x", {"core": "2,5", "gpu": "1"}),
    )
    assert shape_of(found.nodes[2].children) == Shape(2, 1)


def test_what_is_read_is_written_again_and_what_other_schedulers_need_is_kept():
    more = {**WRITTEN, "scheduling": {"graph": {"nodes": []}}, "attributes": {"a": 1}}

    for each in (WRITTEN, more):
        assert json.loads(resource_set(each).encode()) == each
        assert json.loads(decode_resource_set(json.dumps(each)).encode()) == each


def test_ranks_that_are_added_keep_what_there_was():
    found = resource_set(WRITTEN).with_ranks(
        [group_of(range(4, 6), Shape(2, 1))], ["b0", "b1"], ["big", "lent"]
    )

    assert json.loads(found.encode())["execution"] == {
        "R_lite": [*LITE, {"rank": "4-5", "children": {"core": "0-1", "gpu": "0"}}],
        "starttime": 5.0,
        "expiration": 65.0,
        "nodelist": ["n[0-1],x,b[0-1]"],
        "properties": {"big": "3-5", "none": "", "lent": "4-5"},
    }


@given(BLOCKS)
def test_what_is_written_is_read_alike(blocks):
    made, rank = EMPTY, 0
    shapes: list[Shape] = []
    properties: dict[str, set[int]] = {}
    for size, shape, names in blocks:
        ranks = range(rank, rank + size)
        hosts = [f"h{number}" for number in ranks]
        made = made.with_ranks([group_of(ranks, shape)], hosts, sorted(names))
        shapes += [shape] * size
        for name in names:
            properties.setdefault(name, set()).update(ranks)
        rank = ranks.stop

    read = decode_resource_set(made.encode())

    assert read == made
    assert read == resource_set(json.loads(made.encode()))
    assert read.ranks == set(range(rank))
    assert [node.rank for node in read.nodes] == list(range(rank))
    assert [node.host for node in read.nodes] == [f"h{n}" for n in range(rank)]
    assert [shape_of(node.children) for node in read.nodes] == shapes
    assert read.properties == properties


def test_a_rank_may_be_a_number_and_only_r_lite_must_be_there():
    found = resource_set({"execution": {"R_lite": [{"rank": 7}]}})

    assert found.groups == (ResourceGroup(7),)
    assert found.ranks == {7}
    assert found.hosts == ()
    assert found.expiration == 0.0


@pytest.mark.parametrize(
    "written",
    [
        None,
        {},
        {"version": 2, "execution": {"R_lite": []}},
        {"execution": None},
        {"execution": {"R_lite": [{}]}},
        {"execution": {"R_lite": [{"rank": "0", "children": {"core": 3}}]}},
    ],
)
def test_what_is_no_r_is_an_error(written):
    with pytest.raises(ValueError, match=r"Expected|Object missing|Invalid"):
        resource_set(written)
    with pytest.raises(ValueError, match=r"Expected|Object missing|Invalid"):
        decode_resource_set(json.dumps(written))


@pytest.mark.parametrize(
    ("lite", "hosts"),
    [
        ([{"rank": "x"}], ["n0"]),
        ([{"rank": "0-1"}], ["n0"]),
        ([{"rank": "0"}], ["n["]),
        ([{"rank": "0"}], ["n[0-1]"]),
    ],
)
def test_nodes_of_a_malformed_r_are_an_error(lite, hosts):
    found = resource_set({"execution": {"R_lite": lite, "nodelist": hosts}})

    with pytest.raises(ValueError, match=r"not a|zip"):
        _ = found.nodes
