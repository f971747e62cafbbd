# SPDX-License-Identifier: MIT
from burst.model.finding import Finding, Level, note, ok, wrong


def test_each_level_has_a_short_way_to_say_it():
    assert ok("a") == Finding(Level.OK, "a", "", "")
    assert note("a", "b") == Finding(Level.NOTE, "a", "b", "")
    assert wrong("a", "b") == Finding(Level.WRONG, "a", "b", "")
