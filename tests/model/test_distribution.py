# SPDX-License-Identifier: MIT
from __future__ import annotations

import pytest

from burst.model.distribution import BOUNDS, Distribution


def test_each_duration_is_in_one_class() -> None:
    found = Distribution()
    for seconds in (0.0, 0.005, 0.0051, 3600.0, 3600.1, -2.0):
        found = found.plus(seconds)
    assert found.number == 6
    assert found.counts[:2] == (3, 1)
    assert found.counts[-2:] == (1, 1)
    assert found.total == pytest.approx(0.005 + 0.0051 + 3600.0 + 3600.1)


def test_classes_are_from_5_ms_to_an_hour_and_rise() -> None:
    assert (BOUNDS[0], BOUNDS[-1]) == (0.005, 3600.0)
    assert list(BOUNDS) == sorted(set(BOUNDS))
