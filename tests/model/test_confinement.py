# SPDX-License-Identifier: MIT
"""The part of a constraint that confines a job, and what is left without it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from burst.model.confinement import confine, confine_waiting, split_confinement
from burst.model.constraint import ConstraintEvaluator, canonical
from burst.model.request import parse_confinement, parse_request

HOSTS = {f"h{rank}": rank for rank in range(8)}
LENT = frozenset(range(2, 8))
EVALUATOR = ConstraintEvaluator(HOSTS, {"burst": LENT, "local": {0, 1}})
NONE: frozenset[int] = frozenset()

LEAVES = st.one_of(
    st.lists(st.sampled_from(["burst", "^burst", "local"]), max_size=2).map(
        lambda names: {"properties": names}
    ),
    st.sampled_from(["0-7", "2-3", "7"]).map(lambda text: {"ranks": [text]}),
    st.just({"or": [{"properties": ["^burst"]}, {"ranks": ["2-7"]}]}),
)
CONSTRAINTS = st.recursive(
    LEAVES,
    lambda below: st.builds(
        lambda operator, parts: {operator: parts},
        st.sampled_from(["and", "or", "not"]),
        st.lists(below, min_size=1, max_size=3),
    ),
    max_leaves=6,
)
RANKS = st.frozensets(st.sampled_from(sorted(LENT)))


def frobbed(own: Any, part: Any) -> dict[str, Any]:
    return {"and": [part, own] if own else [part]}


PARTS = st.sampled_from(
    [{"or": [{"properties": ["^burst"]}]}, {"or": [{"properties": ["burst"]}]}]
)


@given(st.none() | CONSTRAINTS, PARTS, RANKS, RANKS, st.booleans())
def test_whatever_its_user_writes_a_job_has_own_ranks_and_those(
    own: Any, part: Any, first: frozenset[int], then: frozenset[int], queued: bool
) -> None:
    came = frobbed(own, part)
    wanted = EVALUATOR.admitted(canonical(own)) if own else frozenset(range(8))
    if queued:
        came = {"and": [came, {"properties": ["burst"]}]}
        wanted &= LENT
    left, ranks = split_confinement(came)
    assert ranks == NONE
    for lent in first, then:
        changed = confine(came, lent)
        assert split_confinement(changed) == (left, lent)
        admitted = EVALUATOR.admitted(canonical(changed))
        assert admitted == wanted & (frozenset({0, 1}) | lent)
        came = changed
    assert split_confinement(confine_waiting(came)) == (left, NONE)


@given(CONSTRAINTS)
def test_what_is_left_of_a_confined_job_is_what_its_user_wrote(own: Any) -> None:
    part = {"or": [{"properties": ["^burst"]}]}
    assert split_confinement(frobbed(own, part)) == (own, NONE)


@pytest.mark.parametrize(
    "constraint",
    [
        None,
        7,
        [],
        {},
        {"and": []},
        {"and": 7},
        {"properties": ["^burst"]},
        {"or": [{"properties": ["^burst"]}, {"ranks": ["x"]}]},
        {"or": [{"properties": ["^burst"]}, {"ranks": [7]}]},
        {"or": [{"properties": ["^burst"]}, {"ranks": ["2"]}, {"ranks": ["3"]}]},
        {"or": [{"properties": ["^burst"]}, {"ranks": ["2"], "and": []}]},
        {"and": [{"or": [{"properties": ["^burst"]}]}], "or": []},
        {"and": [{"properties": ["a"]}, {"or": [{"properties": ["^burst"]}]}]},
    ],
)
def test_other_constraints_confine_nobody(constraint: Any) -> None:
    assert split_confinement(constraint) == (constraint, None)


def test_it_is_read_of_a_jobspec() -> None:
    core = {"type": "core", "count": 1}
    slot = {"type": "slot", "count": 1, "label": "task", "with": [core]}
    own = {"properties": ["local"]}
    system = {"constraints": confine(own, frozenset({2, 3}))}
    spec = {"resources": [slot], "attributes": {"system": system}}
    assert parse_confinement(spec) == frozenset({2, 3})
    assert parse_request(spec).constraint == canonical(own)
    assert parse_confinement({"attributes": {"system": 7}}) is None
