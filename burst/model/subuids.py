# SPDX-License-Identifier: MIT
"""Subordinate user ids, which a user may have besides their own (subuid(5)).

A process in a user namespace has such an id on its host (newuidmap(1)), munge signs for
it, and Flux takes its requests and jobs. But it is not an account: the IMP starts no
job of an id without an entry in passwd. A user with separate limits for each of 65,536
ids would have no limit at all.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterable

import msgspec

# Few digits besides leading zeros: to convert thousands takes long, or is refused.
_NUMBER = re.compile(
    r"\s*\+?(?:0[xX]0*([0-9a-fA-F]{1,16})|0+([0-7]{1,22})|0*([1-9][0-9]{0,19}|0))",
    re.ASCII,
)
_END = 2**32
"""User ids are smaller, by the size of uid_t."""
_ROOT = ("root", "0")


class SubuidRange(msgspec.Struct, frozen=True):
    """The ids from `first` on and before `end`."""

    first: int
    end: int
    owner: str
    """The name of the user who has these ids, or the user's own id."""


class Subuids:
    """All ranges of a host. An id in several ranges belongs to the lowest of them."""

    def __init__(self, ranges: Iterable[SubuidRange] = ()) -> None:
        # Made disjoint, so that a search takes no longer if many overlap.
        self._ranges: list[SubuidRange] = []
        end = 0
        for each in sorted(ranges, key=lambda each: each.first):
            if each.end > max(end, each.first):
                first = max(end, each.first)
                self._ranges.append(SubuidRange(first, each.end, each.owner))
                end = each.end
        self._firsts = [each.first for each in self._ranges]

    def owner(self, userid: int) -> str:
        """Return the owner of an id by the file; empty if the id is in no range."""
        at = bisect.bisect_right(self._firsts, userid) - 1
        found = at >= 0 and userid < self._ranges[at].end
        return self._ranges[at].owner if found else ""


NO_SUBUIDS = Subuids()


def parse_subuids(text: str) -> Subuids:
    """Return the ranges in a file with lines `OWNER:FIRST:COUNT`.

    Other lines are ignored. Numbers may be hexadecimal or octal, and further fields may
    follow, as newuidmap accepts them (lib/subordinateio.c of shadow). Ranges of root
    are left out: whoever can use those needs no other id.
    """
    found = []
    for line in text.split("\n"):
        owner, *numbers = line.split(":")[:3]
        if not owner or owner in _ROOT or len(numbers) != 2:
            continue
        first, count = map(_number, numbers)
        if first is not None and count is not None:
            found.append(SubuidRange(first, min(first + count, _END), owner))
    return Subuids(found)


def _number(text: str) -> int | None:
    """Return the number that strtoul(3) with base 0 reads from a whole text."""
    match = _NUMBER.fullmatch(text)
    if match is None:
        return None
    hexadecimal, octal, decimal = match.groups()
    if hexadecimal:
        return int(hexadecimal, 16)
    return int(octal, 8) if octal else int(decimal)
