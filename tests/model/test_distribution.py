# SPDX-License-Identifier: MIT
import pytest

from burst.model.distribution import Distribution


def test_each_duration_is_in_one_class() -> None:
    found = Distribution()
    for seconds in (0.0, 0.005, 0.0051, 3600.0, 3600.1, -2.0):
        found = found.plus(seconds)
    assert found.number == 6
    assert found.counts[:2] == (3, 1)
    assert found.counts[-2:] == (1, 1)
    assert found.total == pytest.approx(0.005 + 0.0051 + 3600.0 + 3600.1)
