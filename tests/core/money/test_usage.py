# SPDX-License-Identifier: MIT
"""Users are told how lent nodes count in their banks."""

import pytest

from burst.core.cost import usage_line, usage_lines
from burst.model.accounting import AccountingFacts, UsageWeights
from burst.model.shape import Shape
from tests.builders import but, identity, view, world
from tests.lifecycles import LEASE, run

LENT = but(LEASE, shape=Shape(8, 2))
OWN = Shape(4), Shape(4)
NAME = f"{LEASE.provider}/{LEASE.offer}"


def told(facts, lease=LENT, own=OWN, bank="physics"):
    lead = identity()
    shapes = (*own, *lead.shapes[len(own) :])
    lead = but(lead, shapes=shapes)
    seen = but(world(view(lead=lead), lead), accounting=facts)
    return usage_line(lease, bank, seen)


@pytest.mark.parametrize(
    ("weights", "own", "said"),
    [
        (
            UsageWeights(),
            OWN,
            "as 1 per hour, like an own node (flux-accounting: node_weight 1,"
            " core_weight 0, gpu_weight 0)",
        ),
        (
            UsageWeights(1, 0.5, 10),
            OWN,
            "as 25 per hour, an own node as 3 (flux-accounting: node_weight 1,"
            " core_weight 0.5, gpu_weight 10)",
        ),
        (
            UsageWeights(0, 1, 0),
            (Shape(2), Shape(6)),
            "as 8 per hour, an own node as 2 to 6 (flux-accounting: node_weight 0,"
            " core_weight 1, gpu_weight 0)",
        ),
        (None, OWN, "by flux-accounting's weights, which are the same for own nodes"),
    ],
)
def test_a_lent_node_counts_by_the_weights_of_all_nodes(weights, own, said):
    line = told(AccountingFacts(weights=weights), own=own)
    assert line == f"a node of {NAME}: counts in the usage of bank physics {said}"


def test_where_no_bank_is_asked_about_none_is_named():
    assert told(AccountingFacts(), bank="") == (
        f"a node of {NAME}: counts in the usage by flux-accounting's weights, which"
        " are the same for own nodes"
    )


def test_each_kind_of_nodes_is_told_once():
    bursts = [run("provision-start"), run("provision-start")]
    counted = but(world(view()), accounting=AccountingFacts())
    assert len(usage_lines(bursts, "b", counted)) == 1
    assert usage_lines(bursts, "b", world(view())) == []
