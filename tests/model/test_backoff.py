# SPDX-License-Identifier: MIT
import pytest

from burst.model.backoff import backoff


@pytest.mark.parametrize(
    ("failures", "pause"),
    [(-1, 3.0), (0, 3.0), (1, 3.0), (2, 6.0), (3, 12.0), (5, 48.0), (6, 50.0)],
)
def test_pauses_double_up_to_the_longest(failures: int, pause: float) -> None:
    assert backoff(3.0, failures, longest=50.0) == pause


def test_after_any_number_of_failures_it_is_a_number() -> None:
    assert 1.0e12 < backoff(3.0, 10**9) < 1.0e13
    assert backoff(0.0, 10**9) == 0.0
