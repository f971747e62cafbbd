# SPDX-License-Identifier: MIT
"""Parses and formats idsets (RFC 22) and hostlists (RFC 29)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby

_ID_RANGE = re.compile(r"(0|[1-9]\d*)(?:-([1-9]\d*))?", re.ASCII)
# The texts that strtoul(3) reads as a number that is not negative.
_NUMBER = re.compile(r"[ \t\n\v\f\r]*\+?(\d+)", re.ASCII)
_SEPARATORS = "\t, "
_STEM = re.compile(r"(.*?)(\d*)", re.ASCII | re.DOTALL)
# A typing error must not use up the machine's memory; Flux has such limits, too.
_LARGEST = 1_000_000
_SHOWN = 80


class TooManyHosts(ValueError):
    """A hostlist names more hosts than the caller's limit."""


def parse_idset(text: str, most: int = _LARGEST) -> frozenset[int]:
    """Return the ids of RFC 22 text such as `0-3,7`; empty text is the empty set.

    Brackets around the whole (`[0-3]`) are accepted, as by Flux. Raises ValueError for
    anything else, such as ids out of order, leading zeros or blanks, and for more than
    `most` ids.
    """
    ids: set[int] = set()
    for first, last in _id_ranges(text):
        if len(ids) + last - first >= most:
            raise ValueError(f"not an idset: {_cut(text)} (more than {most} ids)")
        ids.update(range(first, last + 1))
    return frozenset(ids)


def idset_mask(text: str, size: int) -> int:
    """Return the ids of RFC 22 text below `size` as the bits of a number.

    The time does not depend on the number of ids in a range. Raises ValueError.
    """
    mask = 0
    for first, last in _id_ranges(text):
        if first < size:
            mask |= (1 << min(last + 1, size)) - (1 << first)
    return mask


def format_idset(ids: Iterable[int]) -> str:
    """Return RFC 22 text for ids, in order, with ranges: `0-3,7`."""
    return ",".join(
        str(first) if first == last else f"{first}-{last}"
        for first, last in _runs(sorted(set(ids)))
    )


def parse_hostlist(text: str, most: int = _LARGEST) -> tuple[str, ...]:
    """Return the hosts of RFC 29 text such as `lead-0,burst-0-[0-3]`, in its order.

    The text is read as by Flux (`hostlist_decode` in libhostlist): commas and blanks
    separate, also several and at the end; numbers keep their width (`n[08-10]` is n08,
    n09, n10); if a name has several brackets, the first is a range and the rest is part
    of the name. Raises ValueError, and TooManyHosts for more than `most` hosts.
    """
    hosts: list[str] = []
    for part in _host_parts(text):
        prefix, bracket, rest = part.partition("[")
        ranges, closed, suffix = rest.partition("]")
        if bool(bracket) != bool(closed) or (not bracket and "]" in prefix):
            raise ValueError(f"not a hostlist: {_cut(text)} (at {_cut(part)})")
        if bracket:
            hosts += [f"{prefix}{n}{suffix}" for n in _numbers(ranges, text, most)]
        else:
            hosts.append(prefix)
        if len(hosts) > most:
            raise TooManyHosts(f"more than {most} hosts: {_cut(text)}")
    return tuple(hosts)


def format_hostlist(hosts: Iterable[str]) -> str:
    """Return RFC 29 text for hosts in the given order: `lead-0,burst-0-[0-3]`."""
    parts: list[str] = []
    for (prefix, numbered), group in groupby(map(_stem, hosts), _same_bracket):
        numbers = [digits for _, digits in group]
        if not numbered or len(numbers) == 1:
            parts += [prefix + number for number in numbers]
        else:
            parts.append(f"{prefix}[{','.join(_ranges(numbers))}]")
    return ",".join(parts)


def _cut(text: str) -> str:
    """Return the text cut for an error message: a user's text may have any length."""
    return repr(text) if len(text) <= _SHOWN else f"{text[:_SHOWN]!r}..."


def _id_ranges(text: str) -> Iterator[tuple[int, int]]:
    body = text
    if body.startswith("[") and body.endswith("]"):
        body = body[1:-1]
    least = 0
    for part in body.split(",") if body else ():
        match = _ID_RANGE.fullmatch(part)
        if not match:
            raise ValueError(f"not an idset: {_cut(text)} (at {_cut(part)})")
        first, last = int(match[1]), int(match[2] or match[1])
        if first < least or (match[2] and last <= first):
            raise ValueError(
                f"not an idset: {_cut(text)} ({_cut(part)} is not a range there)"
            )
        yield first, last
        least = last + 1


def _host_parts(text: str) -> Iterator[str]:
    """Split at commas and blanks that are not in brackets."""
    start, depth = 0, 0
    for at, letter in enumerate(text):
        if letter in "[]":
            depth += 1 if letter == "[" else -1
        elif letter in _SEPARATORS and not depth:
            if start < at:
                yield text[start:at]
            start = at + 1
    if start < len(text):
        yield text[start:]


def _runs(ids: list[int]) -> Iterator[tuple[int, int]]:
    start = 0
    for i in range(1, len(ids) + 1):
        if i == len(ids) or ids[i] != ids[i - 1] + 1:
            yield ids[start], ids[i - 1]
            start = i


def _numbers(ranges: str, whole: str, most: int) -> Iterator[str]:
    count = 0
    for part in ranges.split(","):
        low, _, high = part.partition("-")
        start = _NUMBER.match(low)
        end = _NUMBER.fullmatch(high) if high else start
        # As Flux does, ignore text after the first number if there are two numbers.
        if not (start and end) or (not high and start[0] != low):
            raise ValueError(f"not a hostlist: {_cut(whole)} (at {_cut(part)})")
        first, last = int(start[1]), int(end[1])
        count += last - first + 1
        if last < first:
            raise ValueError(
                f"not a hostlist: {_cut(whole)} ({_cut(part)} is not a range)"
            )
        if count > most:
            raise TooManyHosts(f"more than {most} hosts: {_cut(whole)}")
        width = len(low)
        yield from (f"{n:0{width}d}" for n in range(first, last + 1))


def _stem(host: str) -> tuple[str, str]:
    match = _STEM.fullmatch(host)
    assert match, "matches any text"
    return match[1], match[2]


def _same_bracket(stem: tuple[str, str]) -> tuple[str, bool]:
    return stem[0], bool(stem[1])


def _ranges(numbers: list[str]) -> Iterator[str]:
    start = 0
    for i in range(1, len(numbers) + 1):
        if i == len(numbers) or not _follows(numbers[i - 1], numbers[i]):
            first, last = numbers[start], numbers[i - 1]
            yield first if start == i - 1 else f"{first}-{last}"
            start = i


def _follows(last: str, digits: str) -> bool:
    """Tell whether `digits` is the successor of `last`, and padded in the same way.

    The width may change (9 to 10) if neither is padded with zeros.
    """
    padded = any(text.startswith("0") and len(text) > 1 for text in (last, digits))
    same = len(last) == len(digits) or not padded
    return same and int(digits) == int(last) + 1
