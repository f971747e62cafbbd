# SPDX-License-Identifier: MIT
"""Fair share: max-min by demand, with weights."""

from __future__ import annotations

import itertools

from burst_ensemble.core.sizes import Want, fair_share
from hypothesis import given
from hypothesis import strategies as st


@given(
    st.integers(0, 40),
    st.lists(
        st.tuples(
            st.integers(0, 4), st.integers(0, 20), st.sampled_from([0.5, 1, 2, 3])
        ),
        min_size=1,
        max_size=6,
    ),
)
def test_no_node_is_left_while_one_is_wanted_and_none_can_be_moved_to_who_has_less(
    capacity: int, drawn: list[tuple[int, int, float]]
) -> None:
    wants = {
        str(n): Want(floor, floor + more, weight)
        for n, (floor, more, weight) in enumerate(drawn)
    }
    given_ = fair_share(capacity, wants)
    floors = sum(want.floor for want in wants.values())
    demands = sum(want.demand for want in wants.values())
    assert sum(given_.values()) == max(floors, min(capacity, demands))
    assert all(w.floor <= given_[name] <= w.demand for name, w in wants.items())
    for one, other in itertools.permutations(wants, 2):
        # One could give a node, the other wants one: it must not have less than one
        # would have after it.
        if given_[one] > wants[one].floor and given_[other] < wants[other].demand:
            rich = given_[one] / wants[one].weight
            assert (given_[other] + 1) / wants[other].weight >= rich - 1e-9
