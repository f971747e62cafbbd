# SPDX-License-Identifier: MIT
"""Idsets (RFC 22) and hostlists (RFC 29) as text, and as the values they mean."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_RANGE = re.compile(r"(\d+)(?:-(\d+))?\Z")
_HOSTS = re.compile(r"([^\[\],\s]*)(?:\[([^\[\]]*)\]([^\[\],\s]*))?\Z")
# Flux refuses larger sets too; a typing error must not eat the machine's memory.
_LARGEST = 1_000_000


def parse_idset(text: str) -> frozenset[int]:
    """Return the ids of RFC 22 text such as `0-3,7`; empty text is the empty set.

    Brackets around the whole (`[0-3]`) are accepted, as Flux accepts them. Raises
    ValueError on anything else.
    """
    body = text.strip()
    if body.startswith("[") and body.endswith("]"):
        body = body[1:-1]
    if not body:
        return frozenset()
    ids: set[int] = set()
    for part in body.split(","):
        ids.update(range(*_bounds(part, text)))
    return frozenset(ids)


def format_idset(ids: Iterable[int]) -> str:
    """Return RFC 22 text for ids, in order, ranges collapsed: `0-3,7`."""
    return ",".join(
        str(first) if first == last else f"{first}-{last}"
        for first, last in _runs(sorted(set(ids)))
    )


def parse_hostlist(text: str) -> tuple[str, ...]:
    """Return the hosts of RFC 29 text such as `lead-0,burst-0-[0-3]`, in its order.

    Numbers keep their leading zeros (`n[08-10]` is n08, n09, n10). Raises ValueError.
    """
    hosts: list[str] = []
    for part in _split_outside_brackets(text.strip()):
        match = _HOSTS.match(part)
        if not match or not part:
            raise ValueError(f"not a hostlist: {text!r} (at {part!r})")
        prefix, ranges, suffix = match.groups()
        if ranges is None:
            hosts.append(prefix)
        else:
            hosts += [f"{prefix}{n}{suffix}" for n in _numbers(ranges, text)]
    return tuple(hosts)


def format_hostlist(hosts: Iterable[str]) -> str:
    """Return RFC 29 text for hosts in the given order: `lead-0,burst-0-[0-3]`."""
    parts: list[str] = []
    stem = ""
    numbers: list[str] = []
    for host in hosts:
        prefix, digits = _stem(host)
        if digits and numbers and prefix == stem and _follows(numbers[-1], digits):
            numbers.append(digits)
            continue
        parts += _close(stem, numbers)
        stem, numbers = prefix, [digits]
    return ",".join(parts + _close(stem, numbers))


def _bounds(part: str, whole: str) -> tuple[int, int]:
    match = _RANGE.match(part)
    if not match:
        raise ValueError(f"not an idset: {whole!r} (at {part!r})")
    first = int(match[1])
    last = int(match[2] or match[1])
    if last < first or last - first >= _LARGEST:
        raise ValueError(f"not an idset: {whole!r} ({part!r} is no range)")
    return first, last + 1


def _numbers(ranges: str, whole: str) -> Iterator[str]:
    for part in ranges.split(","):
        start, stop = _bounds(part, whole)
        width = len(part.split("-")[0]) if part.startswith("0") else 0
        yield from (f"{n:0{width}d}" for n in range(start, stop))


def _split_outside_brackets(text: str) -> Iterator[str]:
    return iter(re.split(r",(?![^\[]*\])", text)) if text else iter(())


def _runs(ids: list[int]) -> Iterator[tuple[int, int]]:
    start = 0
    for i in range(1, len(ids) + 1):
        if i == len(ids) or ids[i] != ids[i - 1] + 1:
            yield ids[start], ids[i - 1]
            start = i


def _stem(host: str) -> tuple[str, str]:
    prefix = host.rstrip("0123456789")
    return prefix, host[len(prefix) :]


def _follows(last: str, digits: str) -> bool:
    """Tell whether digits is the successor of last in one bracket of one width.

    A width that changes (9 to 10) is fine as long as nothing is padded with zeros.
    """
    padded = last.startswith("0") and len(last) > 1
    if padded or (digits.startswith("0") and len(digits) > 1):
        return len(last) == len(digits) and int(digits) == int(last) + 1
    return int(digits) == int(last) + 1


def _close(stem: str, numbers: list[str]) -> list[str]:
    if not numbers:
        return []
    if len(numbers) == 1:
        return [stem + numbers[0]]
    return [f"{stem}[{numbers[0]}-{numbers[-1]}]"]
