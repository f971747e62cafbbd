# SPDX-License-Identifier: MIT
"""RFC 31 constraints as sets of ranks, evaluated as Flux's Rv1Set evaluates them.

A set of ranks is the bits of a number while it is evaluated: a job's user may combine
a few hundred of them (`burst.model.constraint`), on a lead of ten thousand ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache, reduce
from typing import Any

import msgspec

from burst.model.constraint import MOST_HOSTS
from burst.model.lead import LeadIdentity
from burst.model.ranks import idset_mask, parse_hostlist

_NONE = 0
_REMEMBERED = 16384
"""Constraints of one lead. Those of waiting jobs are evaluated once, not each tick.

Jobs are looked at in the same order each time, so where one more waits than is
remembered, all are evaluated again: milliseconds for each that names 4096 hosts.
"""


class Constraints:
    """Which ranks of one lead a constraint admits. Remembers what it was asked."""

    def __init__(self, identity: LeadIdentity) -> None:
        properties = tuple(sorted(identity.properties.items()))
        self._evaluator = _evaluator(identity.hosts, properties)
        self._known: dict[str, frozenset[int]] = {}
        self._sets: dict[int, frozenset[int]] = {}

    def admitted(self, constraint: str) -> frozenset[int]:
        """Return the ranks that a constraint admits; all for empty text.

        It is JSON from `burst.model.constraint.canonical`. One that Flux could not
        evaluate admits none.
        """
        found = self._known.get(constraint)
        if found is None:
            mask = self._evaluator.mask(constraint)
            found = self._sets.setdefault(mask, frozenset(_bits(mask)))
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
        self.mask = lru_cache(maxsize=_REMEMBERED)(self._mask)
        # In the order in which Rv1Set looks for them.
        self._operators: dict[str, Callable[[list[Any]], int]] = {
            "properties": self._by_properties,
            "hostlist": self._by_hosts,
            "ranks": self._by_ranks,
            "and": self._by_all,
            "or": self._by_any,
            "not": self._by_none,
        }

    def _mask(self, constraint: str) -> int:
        if not constraint:
            return self._all
        return self._evaluate(msgspec.json.decode(constraint))

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
