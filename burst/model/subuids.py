# SPDX-License-Identifier: MIT
"""Subordinate user ids: numbers that a user may have besides their own (subuid(5)).

A process in a user namespace is seen by these numbers on its host (newuidmap(1)), munge
signs for them, and Flux takes their requests and jobs. They are no accounts: the IMP
starts no job of a number without an entry in passwd. Whoever had separate limits for
each of 65,536 numbers would have none.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterable

import msgspec

# Of few digits, leading zeros aside: to convert thousands takes long, or is refused.
_NUMBER = re.compile(
    r"\s*\+?(?:0[xX]0*([0-9a-fA-F]{1,16})|0+([0-7]{1,22})|0*([1-9][0-9]{0,19}|0))",
    re.ASCII,
)
_END = 2**32
"""User ids are smaller, by the size of uid_t."""
_ROOT = ("root", "0")


class SubuidRange(msgspec.Struct, frozen=True):
    """Numbers from `first` on, before `end`."""

    first: int
    end: int
    owner: str
    """The name of the user whose numbers they are, or their own number."""


class Subuids:
    """All ranges of a host. A number in several is of the first of them."""

    def __init__(self, ranges: Iterable[SubuidRange] = ()) -> None:
        # Apart, so that to find one takes no longer where many overlap.
        self._ranges: list[SubuidRange] = []
        end = 0
        for each in sorted(ranges, key=lambda each: each.first):
            if each.end > max(end, each.first):
                first = max(end, each.first)
                self._ranges.append(SubuidRange(first, each.end, each.owner))
                end = each.end
        self._firsts = [each.first for each in self._ranges]

    def owner(self, userid: int) -> str:
        """Return whose number it is by the file, empty if it is in no range."""
        at = bisect.bisect_right(self._firsts, userid) - 1
        found = at >= 0 and userid < self._ranges[at].end
        return self._ranges[at].owner if found else ""


NO_SUBUIDS = Subuids()


def parse_subuids(text: str) -> Subuids:
    """Return the ranges of a file's lines `OWNER:FIRST:COUNT`; others are left out.

    Numbers may be in hexadecimal or octal, and further fields may follow, as newuidmap
    takes them (lib/subordinateio.c of shadow). Ranges of root are left out: whoever can
    use those needs no other number.
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
    """Return the number that strtoul(3) with base 0 makes of all of a text."""
    match = _NUMBER.fullmatch(text)
    if match is None:
        return None
    hexadecimal, octal, decimal = match.groups()
    if hexadecimal:
        return int(hexadecimal, 16)
    return int(octal, 8) if octal else int(decimal)
