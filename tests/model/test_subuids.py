# SPDX-License-Identifier: MIT
"""Whose a subordinate user id is, by lines of subuid(5)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from burst.model.subuids import NO_SUBUIDS, SubuidRange, Subuids, parse_subuids

FILE = """\
ann:100000:65536
bob:165536:65536
61003:231072:10
"""


@pytest.mark.parametrize(
    ("userid", "owner"),
    [
        (61001, ""),
        (99999, ""),
        (100000, "ann"),
        (165535, "ann"),
        (165536, "bob"),
        (231071, "bob"),
        (231081, "61003"),
        (231082, ""),
    ],
)
def test_a_number_is_whose_range_it_is_in(userid, owner):
    assert parse_subuids(FILE).owner(userid) == owner
    assert NO_SUBUIDS.owner(userid) == ""


@pytest.mark.parametrize(
    "line",
    [
        "",
        "ann",
        "ann:1",
        ":1:2",
        "ann:-1:9",
        "ann:a:9",
        "ann:0x:9",
        "ann:08:9",
        "ann:0:" + 5000 * "9",
        "ann:²:9",
        "root:0:100",
        "0:0:100",
        "ann:1:0",
    ],
)
def test_lines_of_another_form_are_left_out(line):
    found = parse_subuids(f"{line}\n{FILE}")
    assert [found.owner(n) for n in (1, 5, 100000)] == ["", "", "ann"]


@pytest.mark.parametrize(
    "line",
    ["ann:1:9:more", "ann:1:4294967295", "ann:0x1:0X9", "ann:01:011", "ann: 1:+9"],
)
def test_lines_are_taken_as_newuidmap_takes_them(line):
    found = parse_subuids(f"{line}\n")
    assert [found.owner(n) for n in (0, 1, 9, 2**32)] == ["", "ann", "ann", ""]


def test_a_number_that_begins_with_0_is_octal():
    found = parse_subuids("ann:0100:010\n")
    assert [found.owner(n) for n in (63, 64, 71, 72)] == ["", "ann", "ann", ""]


@given(
    lines=st.lists(st.tuples(st.integers(0, 30), st.integers(0, 9)), max_size=8),
    userid=st.integers(0, 40),
)
def test_ranges_may_overlap(lines, userid):
    ranges = [SubuidRange(f, f + n, f"{i}") for i, (f, n) in enumerate(lines)]
    owners = {r.owner for r in ranges if r.first <= userid < r.end}
    found = Subuids(ranges).owner(userid)
    assert found in owners if owners else found == ""
