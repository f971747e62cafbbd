# SPDX-License-Identifier: MIT
"""What a reload says of the settings that are others now."""

from burst.runtime.reload import changed_keys
from tests.builders import settings

HERE = {"here": {"type": "fake"}}


def test_keys_of_tables_are_named_and_lists_as_a_whole():
    before = settings(providers=HERE)
    changes = {"limits": {"max_nodes": 3}, "budget": [{"limit": 10}]}
    both = {**HERE, "there": {"type": "fake"}}
    after = settings(providers=both, prices={"here.n2": 1.0}, **changes)
    assert sorted(changed_keys(before, after)) == [
        *("budget", "limits.max_nodes", "prices.here.n2", "providers.there")
    ]
    assert changed_keys(after, after) == []


def test_tables_of_packages_are_told_by_their_own_names():
    one = settings(ensemble={"files": ["/a.toml"]})
    two = settings(ensemble={"files": ["/b.toml"]})
    assert changed_keys(one, two) == ["ensemble.files"]
    assert changed_keys(settings(), two) == ["ensemble"]
    assert changed_keys(two, two) == []
