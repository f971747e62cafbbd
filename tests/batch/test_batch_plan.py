# SPDX-License-Identifier: MIT
from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from burst.batch.batch_plan import (
    AllocatedNode,
    LeadRequest,
    SlotRequest,
    allocated_nodes,
    batch_tables,
    make_plan,
    own_hosts,
    parse_slot_request,
    read_allocation,
)
from burst.config import parse
from burst.errors import ConfigError
from burst.lead_setup.lead_plan import PlannedSlot
from burst.model.shape import Shape
from burst.runtime.connect import with_settings
from tests.fakes import FakeLead

LOCAL = {"providers": {"local": {"type": "local"}}}
CLOUD = {"providers": {"cloud": {"type": "gke"}}}
HALF = {"core": "2-3", "gpu": "1"}


def allocation(nodelist: list[str], *entries: tuple[str, dict[str, str]]) -> Any:
    lite = [{"rank": rank, "children": children} for rank, children in entries]
    return {"version": 1, "execution": {"R_lite": lite, "nodelist": nodelist}}


@pytest.mark.parametrize(
    ("text", "lent"),
    [
        ("8", SlotRequest(8)),
        ("8:4", SlotRequest(8, Shape(4))),
        ("1:4:2", SlotRequest(1, Shape(4, 2))),
    ],
)
def test_slots_are_a_count_and_a_shape(text: str, lent: SlotRequest) -> None:
    assert parse_slot_request(text) == lent


@pytest.mark.parametrize("text", ["", "x", "-1", "1:2:3:4", "1:", " 8", "0", "0:4"])
def test_other_slots_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="--slots"):
        parse_slot_request(text)


def test_nodes_are_those_of_the_tasks_in_order_with_what_is_allocated() -> None:
    r = allocation(["n[5,3]", "n9"], ("7", HALF), ("2-3", {"core": "0-1"}))
    nodes = allocated_nodes(read_allocation(json.dumps(r)))
    assert [node.name for node in nodes] == ["n5", "n3", "n9"]
    assert [node.shape for node in nodes] == [Shape(2), Shape(2), Shape(2, 1)]
    assert nodes[2].children == HALF


@pytest.mark.parametrize(
    "r",
    [
        {},
        {"execution": None},
        allocation(["n[0-1]"], ("0", {})),
        allocation(["n["], ("0", {})),
        allocation(["n0"], ("x", {})),
    ],
)
def test_an_r_of_another_form_is_told(r: Any) -> None:
    with pytest.raises(ConfigError, match="R of this job cannot be read"):
        allocated_nodes(read_allocation(json.dumps(r)))


@pytest.mark.parametrize(
    ("names", "hosts"),
    [
        (["n1", "n0"], ("n1", "n0")),
        (["n1"], ("n1",)),
        (["vm", "vm"], ("lead-0", "lead-1")),
        (["un_usual", "n0"], ("lead-0", "lead-1")),
    ],
)
def test_own_ranks_are_called_as_their_nodes_if_those_can_be_told_apart(
    names: list[str], hosts: tuple[str, ...]
) -> None:
    assert own_hosts([AllocatedNode(name, {}) for name in names]) == hosts


def test_slots_have_the_first_nodes_shape_unless_told() -> None:
    nodes = [AllocatedNode("n0", HALF), AllocatedNode("n1", {"core": "0"})]
    request = LeadRequest(slots=(SlotRequest(4), SlotRequest(2, Shape(8))))
    plan = make_plan(request, nodes, parse(CLOUD, ""), 8050)
    assert plan.hosts == "n[0-1]"
    assert plan.slots == (
        PlannedSlot(hosts="burst-0-[0-3]", shape=Shape(2, 1)),
        PlannedSlot(hosts="burst-1-[0-1]", shape=Shape(8)),
    )
    assert plan.port == 8050


@pytest.mark.parametrize(
    ("names", "tables", "wished", "address"),
    [
        (["n0"], LOCAL, "", "127.0.0.1"),
        (["vm", "vm"], LOCAL, "", "127.0.0.1"),
        (["n0", "n1"], LOCAL, "", "n0"),
        (["n0"], CLOUD, "", "n0"),
        (["n0"], LOCAL, "gateway", "gateway"),
    ],
)
def test_rank_0_is_reached_by_its_nodes_name_where_another_host_has_to(
    names: list[str], tables: dict[str, Any], wished: str, address: str
) -> None:
    nodes = [AllocatedNode(name, {"core": "0"}) for name in names]
    request = LeadRequest(slots=(SlotRequest(1),), address=wished)
    assert make_plan(request, nodes, parse(tables, ""), 1).address == address


def test_the_daemon_of_an_allocation_takes_all_down_and_keeps_to_its_lead() -> None:
    others = {"uri": "local:///else", "slots": ["a-[0-1]"], "owner": "site-a"}
    lead = {**others, "address": "nat", "port": 7}
    tables = {**LOCAL, "lead": lead, "daemon": {"log": "json"}}
    found = batch_tables(tables, LeadRequest(slots=()))
    assert found == {
        **LOCAL,
        "lead": {"address": "nat", "port": 7},
        "daemon": {"log": "json", "on_stop": "reap"},
    }
    parse(found, "")


@pytest.mark.parametrize(
    ("address", "port", "endpoint"),
    [
        ("", 0, "tcp://nat:7"),
        ("node7", 0, "tcp://node7:7"),
        ("", 9000, "tcp://nat:9000"),
        ("node7", 9000, "tcp://node7:9000"),
    ],
)
def test_followers_connect_to_where_the_options_have_rank_0_listen(
    address: str, port: int, endpoint: str
) -> None:
    tables = {**LOCAL, "lead": {"address": "nat", "port": 7}}
    request = LeadRequest(slots=(), address=address, port=port)
    nodes = [AllocatedNode("node1", {"core": "0"})]
    plan = make_plan(request, nodes, parse(tables, ""), port or 7)
    bound = f"tcp://{plan.address}:{plan.port}"
    identity = msgspec.structs.replace(FakeLead().identity(), endpoint=bound)
    read = parse(batch_tables(tables, request), "").lead
    assert with_settings(identity, read).endpoint == endpoint
