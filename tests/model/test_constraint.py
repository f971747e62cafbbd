# SPDX-License-Identifier: MIT
"""What a job may ask of whoever evaluates its constraint, and what it admits."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from burst.core.plan.constraints import Constraints
from burst.errors import JobspecError
from burst.model.constraint import (
    DEEPEST,
    LONGEST,
    MOST_HOSTS,
    MOST_OPERATORS,
    ConstraintEvaluator,
    canonical,
    ranks_of_mask,
)
from burst.model.request import parse_request
from tests.builders import identity

SLOT = {"type": "slot", "count": 1, "with": [{"type": "core", "count": 1}]}
BURST = {"properties": ["burst"]}
RANKS = ConstraintEvaluator({"lead-0": 0, "burst-0-2": 4}, {"burst": {4}, "local": {0}})

anything = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False),
        st.text(max_size=8),
        st.sampled_from(
            ["burst", "^local", "0-3", "lead-[0-9]", "n[0-99999]", "0-9999"]
        ),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(
            st.sampled_from(
                ["properties", "hostlist", "ranks", "and", "or", "not", "x"]
            ),
            inner,
            max_size=2,
        ),
    ),
    max_leaves=30,
)


def nested(times: int, operator: str = "not") -> Any:
    """A constraint of that many operators, one in the other, and one within."""
    found: Any = BURST
    for _ in range(times):
        found = {operator: [found]}
    return found


@pytest.mark.parametrize(
    "constraint",
    [
        nested(DEEPEST - 1),
        {"or": [BURST] * (MOST_OPERATORS - 1)},
        {"hostlist": ["n[1-2048]", f"m[1-{MOST_HOSTS - 2048}]"]},
        {"hostlist": f"n[1-{MOST_HOSTS}]"},
        {"properties": ["x" * (LONGEST - 19)]},
        # Whether it is a constraint at all, Flux says.
        "x",
        ["x", [1]],
        {"hostlist": ["n[", 3, None, {"x": 1}]},
        {"hostlist": 7},
    ],
)
def test_what_is_within_the_budget_is_kept_as_it_is(constraint: Any) -> None:
    assert msgspec.json.decode(canonical(constraint)) == constraint


@pytest.mark.parametrize(
    ("constraint", "why"),
    [
        (nested(DEEPEST + 1), "nested more deeply"),
        ({"or": [BURST] * MOST_OPERATORS}, "more operators"),
        ({"hostlist": ["n[1-2048]", f"m[0-{MOST_HOSTS - 2048}]"]}, "more hosts"),
        ({"and": [{"hostlist": f"n[0-{MOST_HOSTS}]"}]}, "more hosts"),
        ({"hostlist": ["vm," * 60_000 + "vm"]}, "more hosts"),
        ({"properties": ["x" * LONGEST]}, "bytes"),
        ({"properties": ["^"] * 60_000}, "bytes"),
        ([[[[]]]] * 10_000, "bytes"),
        ({"properties": ["\ud800"]}, "cannot be read"),
    ],
)
def test_what_is_beyond_it_is_refused_with_the_limit(constraint: Any, why: str) -> None:
    with pytest.raises(JobspecError, match=why):
        canonical(constraint)


@pytest.mark.parametrize("times", [30, 470, 980, 5000])
def test_a_job_whose_constraint_is_beyond_it_is_not_readable(times: int) -> None:
    system = {"constraints": nested(times)}
    with pytest.raises(JobspecError, match=r"nested more deeply .*at most 16"):
        parse_request({"resources": [SLOT], "attributes": {"system": system}})


@given(anything)
def test_what_is_within_it_can_be_evaluated(constraint: Any) -> None:
    try:
        text = canonical(constraint)
    except JobspecError:
        return
    lead = identity()
    assert Constraints(lead).admitted(text) <= set(range(len(lead.hosts)))


@pytest.mark.parametrize(
    ("constraint", "holds"),
    [
        ({"properties": ["burst"]}, True),
        ({"properties": ["burst", "gpu"]}, False),
        ({"properties": ["^gpu"]}, True),
        ({"properties": ["^burst"]}, False),
        ({"properties": []}, True),
        ({"hostlist": ["burst-0-[0-2]"]}, True),
        ({"hostlist": ["burst-0-[0-1]", "lead-0"]}, False),
        ({"ranks": ["0-3"]}, False),
        ({"ranks": ["0", "4"]}, True),
        ({"ranks": "2-5"}, True),
        ({"and": [{"properties": ["burst"]}, {"ranks": ["9"]}]}, False),
        ({"or": [{"properties": ["burst"]}, {"ranks": ["9"]}]}, True),
        ({"not": [{"properties": ["burst"]}]}, False),
        ({"not": [{"or": [{"ranks": ["1"]}, {"hostlist": ["x"]}]}]}, True),
        ({"ranks": ["3-9"]}, True),
        ({"and": []}, True),
        ({"or": []}, False),
    ],
)
def test_constraints_of_rfc_31(constraint: Any, holds: bool) -> None:
    assert (4 in RANKS.admitted(canonical(constraint))) is holds


@pytest.mark.parametrize(
    "constraint",
    [
        {},
        {"feature": ["x"]},
        {"properties": [1]},
        {"properties": 1},
        {"hostlist": [7]},
        {"ranks": ["x"]},
        {"ranks": [1]},
        {"and": {"ranks": "1"}},
        {"hostlist": ["n[0"]},
        {"not": []},
        {"and": [{"properties": ["none"]}, {"nonsense": []}]},
        {"or": [{"properties": ["burst"]}, {"nonsense": []}]},
        "burst",
        ["burst"],
    ],
)
def test_a_constraint_that_cannot_be_read_is_said_wholly(constraint: Any) -> None:
    with pytest.raises(JobspecError, match="constraint"):
        RANKS.mask(canonical(constraint))


@given(st.frozensets(st.integers(0, 200)))
def test_a_mask_has_the_bits_of_its_ranks(ranks: frozenset[int]) -> None:
    assert ranks_of_mask(sum(1 << rank for rank in ranks)) == ranks


def test_without_a_constraint_all_ranks_are_admitted() -> None:
    assert RANKS.admitted("") == {0, 4}
    assert ConstraintEvaluator({}, {}).admitted("") == frozenset()
