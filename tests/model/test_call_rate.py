# SPDX-License-Identifier: MIT
"""How often one user may call."""

from hypothesis import given
from hypothesis import strategies as st

from burst.model.call_rate import CallRate, SavedCalls, take_calls

RATE = CallRate(per_second=2.0, at_once=10)


def test_what_was_saved_up_may_be_used_at_once_and_comes_back():
    saved, wait = take_calls(None, RATE, 8, 100.0)
    assert (saved, wait) == (SavedCalls(2, 100.0), 0.0)
    # Nothing is taken for a call that is refused.
    assert take_calls(saved, RATE, 4, 100.5) == (SavedCalls(3, 100.5), 0.5)
    assert take_calls(saved, RATE, 4, 101.0) == (SavedCalls(0, 101.0), 0.0)
    assert take_calls(saved, RATE, 1, 1e9) == (SavedCalls(9, 1e9), 0.0)


def test_a_clock_that_goes_back_gives_nothing():
    assert take_calls(SavedCalls(2, 100.0), RATE, 1, 50.0) == (SavedCalls(1, 50.0), 0.0)


GAPS = st.lists(st.tuples(st.floats(0, 100), st.floats(0.1, 20)), max_size=60)


@given(st.floats(0.1, 100), st.floats(1, 100), GAPS)
def test_no_series_of_calls_takes_more_than_its_share(per_second, at_once, calls):
    rate, saved, now, taken = CallRate(per_second, at_once), None, 0.0, 0.0
    for gap, cost in calls:
        now += gap
        saved, wait = take_calls(saved, rate, cost, now)
        assert wait >= 0
        assert 0 <= saved.calls <= at_once
        if not wait:
            taken += min(cost, at_once)
        else:
            # As soon as he was told to come back, the call is taken.
            assert take_calls(saved, rate, cost, now + wait * 1.0001 + 1e-6)[1] == 0
    assert taken <= at_once + now * per_second + 1e-6
