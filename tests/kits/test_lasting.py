# SPDX-License-Identifier: MIT
"""For how long a condition has been found at every look."""

from burst.kits.lasting import Lasting


def test_it_counts_from_the_first_look_until_it_ends() -> None:
    now = [100.0]
    found = Lasting(lambda: now[0])
    assert found.seconds("burst-1") == 0.0
    now[0] += 30
    assert found.seconds("burst-1") == 30.0
    assert found.seconds("burst-2") == 0.0
    found.end("burst-1")
    found.end("burst-1")
    assert found.seconds("burst-1") == 0.0


def test_a_clock_that_is_set_back_begins_it_anew() -> None:
    now = [5000.0]
    found = Lasting(lambda: now[0])
    found.seconds("burst-1")
    now[0] -= 3600
    assert found.seconds("burst-1") == 0.0
    now[0] += 30
    assert found.seconds("burst-1") == 30.0
