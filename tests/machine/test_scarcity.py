# SPDX-License-Identifier: MIT
"""Interleavings with few nodes, and with constraints that name single hosts."""

from __future__ import annotations

import pytest

from tests.machine.explore import replay, taken
from tests.machine.invariants import Broken
from tests.machine.steps import Steps

FEW = {"max_nodes": 4, "capacity": 6}
HOST, NOT_FIRST = 3, 4
"""Of CONSTRAINTS: `host:burst-0-3`, and `not host:burst-0-0` on lent nodes."""


def test_a_provider_is_asked_for_no_more_than_it_says_it_has() -> None:
    replay(
        {"providers": {"a": {**FEW, "total": 6}}},
        taken("submit", nodes=8, user=3, wish=5),
    )


def test_a_provider_that_is_asked_for_more_is_seen() -> None:
    machine = Steps({"providers": {"a": {"max_nodes": 4}}})
    machine.world.sites["a"]["total"] = 2  # which it does not say
    machine.take("submit", {"nodes": 4, "user": 1})
    with pytest.raises(Broken) as broken:
        machine.take("time_passes", {"ticks": 3})
    assert broken.value.name == "asked"


def test_what_has_gone_is_asked_for_again_before_the_cooldown_ends() -> None:
    """The second burst was refused, as the first had most of the capacity."""
    replay(
        {"providers": {"a": FEW}, "limits": {"cooldown": "120s"}},
        taken("submit", nodes=4, user=1, constraint=1, wish=1),
        taken("time_passes", ticks=5),
        taken("submit", nodes=4, user=2, constraint=1, wish=1),
        taken("time_passes", ticks=5),
        taken("job_ends", job=0, result="completed"),
        taken("down", burst=0),
        taken("time_passes", ticks=5),
        taken("time_passes", ticks=5),
    )


@pytest.mark.parametrize(("constraint", "nodes"), [(HOST, 1), (NOT_FIRST, 3)])
def test_a_job_that_names_hosts_is_served(constraint: int, nodes: int) -> None:
    replay(
        {"providers": {"a": FEW}, "serve": True},
        taken("submit", nodes=nodes, user=2, constraint=constraint),
    )


def test_a_rank_that_a_person_has_drained_takes_no_other_from_jobs() -> None:
    replay(
        {"providers": {"a": FEW}, "serve": True, "fans": True},
        taken("submit", nodes=1, user=3, constraint=HOST, held=True),
        taken("person_drains", rank=2, drains=True),
    )


def test_a_host_that_is_declared_is_never_told_to_be_none() -> None:
    """Of two nodes on one host, which there will never be, another reason is told."""
    replay(
        {"providers": {"a": {"max_nodes": 3}}},
        taken("submit", nodes=2, user=1, constraint=HOST, held=True),
        taken("time_passes", ticks=5),
    )
