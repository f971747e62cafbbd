# SPDX-License-Identifier: MIT
"""RFC 31 constraints as sets of ranks, evaluated as Flux's Rv1Set evaluates them.

A set of ranks is the bits of a number while it is evaluated: a job's user may combine
a few hundred of them (`burst.model.constraint`), on a lead of ten thousand ranks.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from functools import lru_cache, reduce
from typing import Any

import msgspec

from burst.model.constraint import MOST_HOSTS
from burst.model.lead import LeadIdentity
from burst.model.ranks import idset_mask, parse_hostlist

_NONE = 0
MOST_WORK = 100_000
"""What is evaluated anew for jobs in one tick, in hosts: about 150 ms."""
MOST_BYTES = 32_000_000
"""Of remembered sets. Those of waiting jobs are evaluated once, not in each tick, as
long as they fit: some 20,000 different ones on a lead of ten thousand ranks."""
_OVERHEAD = 200
"""Bytes of a remembered set beside its ranks: its key, and its place in the table."""


class Constraints:
    """Which ranks of one lead a constraint admits. Remembers results."""

    def __init__(self, identity: LeadIdentity) -> None:
        properties = tuple(sorted(identity.properties.items()))
        self._evaluator = _evaluator(identity.hosts, properties)
        self._known: dict[str, frozenset[int]] = {}
        self._sets: dict[int, frozenset[int]] = {}
        self.work = 0
        """What was evaluated anew, in hosts."""

    def read(self, wanted: Iterable[tuple[int, str]]) -> frozenset[str]:
        """Evaluate constraints of jobs; return those for which another tick has time.

        `wanted` are users and their constraints, in the order in which their jobs are
        served. All users have an equal share of MOST_WORK, so that nobody waits for
        thousands of jobs of another user.
        """
        new: dict[str, int] = {}
        for user, text in wanted:
            if text not in new and not self._evaluator.knows(text):
                new[text] = user
        share = MOST_WORK / max(1, len(set(new.values())))
        spent = dict.fromkeys(new.values(), 0)
        later = []
        for text, user in new.items():
            if spent[user] >= share or self.work >= MOST_WORK:
                later.append(text)
                continue
            before = self.work
            self.admitted(text)
            spent[user] += self.work - before
        return frozenset(later)

    def admitted(self, constraint: str) -> frozenset[int]:
        """Return the ranks that a constraint admits; all for empty text.

        It is JSON from `burst.model.constraint.canonical`. One that Flux could not
        evaluate admits none.
        """
        found = self._known.get(constraint)
        if found is None:
            before = self._evaluator.work
            mask = self._evaluator.mask(constraint)
            self.work += self._evaluator.work - before
            found = self._sets.get(mask)
            if found is None:
                found = self._sets[mask] = frozenset(_bits(mask))
            self._known[constraint] = found
        return found


class _Evaluator:
    """Evaluates constraints for one lead."""

    def __init__(
        self,
        hosts: tuple[str, ...],
        properties: tuple[tuple[str, frozenset[int]], ...],
    ) -> None:
        self._size = len(hosts)
        self._all = (1 << len(hosts)) - 1
        self._ranks = {host: rank for rank, host in enumerate(hosts)}
        self._properties = {name: _mask(ranks) for name, ranks in properties}
        self._remembered: dict[bytes, int] = {}
        self.size = 0
        """Bytes of what is remembered, about."""
        self.work = 0
        """What was evaluated so far, in hosts: those named, and one for 4 bytes."""
        # In the order in which Rv1Set looks for them.
        self._operators: dict[str, Callable[[list[Any]], int]] = {
            "properties": self._by_properties,
            "hostlist": self._by_hosts,
            "ranks": self._by_ranks,
            "and": self._by_all,
            "or": self._by_any,
            "not": self._by_none,
        }

    def knows(self, constraint: str) -> bool:
        """Tell whether the ranks are known without evaluation."""
        return not constraint or _key(constraint) in self._remembered

    def mask(self, constraint: str) -> int:
        """Return the ranks that a constraint admits, evaluated if need be."""
        if not constraint:
            return self._all
        key = _key(constraint)
        mask = self._remembered.pop(key, None)
        if mask is None:
            self.work += 1 + len(constraint) // 4
            mask = self._evaluate(msgspec.json.decode(constraint))
            self.size += _bytes(mask)
        # The most recently used is at the end.
        self._remembered[key] = mask
        while self.size > MOST_BYTES:
            oldest = next(iter(self._remembered))
            self.size -= _bytes(self._remembered.pop(oldest))
        return mask

    def _evaluate(self, expression: Any) -> int:
        if not isinstance(expression, dict):
            return _NONE
        for operator, evaluate in self._operators.items():
            if operator in expression:
                operands = expression[operator]
                if isinstance(operands, str):
                    operands = [operands]
                return evaluate(operands) if isinstance(operands, list) else _NONE
        return _NONE

    def _by_properties(self, names: list[Any]) -> int:
        found = self._all
        for name in names:
            if not isinstance(name, str):
                return _NONE
            having = self._properties.get(name.removeprefix("^"), _NONE)
            found &= ~having if name.startswith("^") else having
        return found

    def _by_hosts(self, lists: list[Any]) -> int:
        try:
            hosts = [
                host for text in lists for host in parse_hostlist(text, MOST_HOSTS)
            ]
        except (TypeError, ValueError):
            return _NONE
        self.work += len(hosts)
        return _mask(self._ranks[host] for host in hosts if host in self._ranks)

    def _by_ranks(self, idsets: list[Any]) -> int:
        try:
            return _union(idset_mask(text, self._size) for text in idsets)
        except (TypeError, AttributeError, ValueError):
            return _NONE

    def _by_all(self, parts: list[Any]) -> int:
        return reduce(lambda a, b: a & b, map(self._evaluate, parts), self._all)

    def _by_any(self, parts: list[Any]) -> int:
        return _union(map(self._evaluate, parts))

    def _by_none(self, parts: list[Any]) -> int:
        return self._all & ~self._evaluate(parts[0]) if parts else _NONE


# A lead's hosts and properties are fixed while it runs, so there is one in a daemon.
_evaluator = lru_cache(maxsize=2)(_Evaluator)


def _key(constraint: str) -> bytes:
    """Return what a constraint is remembered by: its text may have kilobytes."""
    return hashlib.blake2b(constraint.encode(), digest_size=16).digest()


def _bytes(mask: int) -> int:
    return _OVERHEAD + mask.bit_length() // 8


def _union(masks: Iterable[int]) -> int:
    return reduce(lambda a, b: a | b, masks, _NONE)


def _mask(ranks: Iterable[int]) -> int:
    """Return ranks as the bits of a number."""
    digits = bytearray()
    for rank in ranks:
        digits.extend(bytes(max(0, rank // 8 + 1 - len(digits))))
        digits[rank // 8] |= 1 << rank % 8
    return int.from_bytes(digits, "little")


def _bits(mask: int) -> list[int]:
    return [rank for rank, bit in enumerate(reversed(f"{mask:b}")) if bit == "1"]
