# SPDX-License-Identifier: MIT
"""Tags of things in a cloud lead back to their bursts, and to nobody else's."""

from __future__ import annotations

import pytest

from burst.kits.resource_tags import ResourceTags, distinct

TAGS = ResourceTags("o", "p", "b", "end")
OURS = {"o": "ann", "p": "far", "b": "burst-0-1"}


def test_a_thing_is_of_the_burst_that_its_tags_name() -> None:
    found = TAGS.owned({**OURS, "end": "7", "other": "x"})
    assert found is not None
    told = (found.owner, found.provider, found.burst_id, found.lease_end)
    assert told == ("ann", "far", "burst-0-1", 7.0)
    assert TAGS.burst_of(OURS, "ann", "far") == "burst-0-1"
    assert TAGS.burst_of(OURS, "bob", "far") is None
    assert TAGS.burst_of(OURS, "ann", "near") is None


@pytest.mark.parametrize("key", OURS)
def test_a_thing_that_lacks_a_tag_is_of_none(key: str) -> None:
    for tags in ({**OURS, key: ""}, {k: v for k, v in OURS.items() if k != key}):
        assert TAGS.owned(tags) is None
        assert TAGS.burst_of(tags, "ann", "far") is None


def test_a_lease_that_somebody_edited_hides_no_burst() -> None:
    found = TAGS.owned({**OURS, "end": "soon"})
    assert found is not None
    assert found.lease_end == 0.0


def test_a_burst_of_several_things_is_told_once() -> None:
    others = {**OURS, "b": "burst-0-0"}
    found = distinct(map(TAGS.owned, (OURS, {}, others, {**OURS, "end": "9"})))
    assert [(each.burst_id, each.lease_end) for each in found] == [
        ("burst-0-0", 0.0),
        ("burst-0-1", 9.0),
    ]
