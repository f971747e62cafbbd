# SPDX-License-Identifier: MIT
"""RFC 31 constraints as sets of ranks, evaluated as Flux's Rv1Set evaluates them.

Whole sets at a time: a plan asks the same few constraints about thousands of ranks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from burst.model.lead import LeadIdentity
from burst.model.ranks import parse_hostlist, parse_idset

_NONE: frozenset[int] = frozenset()
# More hosts or ranks than any lead has. What a user writes must not eat our memory.
_MOST_NAMED = 100_000


class Constraints:
    """Which ranks of one lead a constraint admits. Remembers what it was asked."""

    def __init__(self, identity: LeadIdentity) -> None:
        self._all = frozenset(range(len(identity.hosts)))
        self._ranks = {host: rank for rank, host in enumerate(identity.hosts)}
        self._properties = identity.properties
        self._known: dict[str, frozenset[int]] = {"": self._all}
        # In the order in which Rv1Set looks for them.
        self._operators: dict[str, Callable[[list[Any]], frozenset[int]]] = {
            "properties": self._by_properties,
            "hostlist": self._by_hosts,
            "ranks": self._by_ranks,
            "and": self._by_all,
            "or": self._by_any,
            "not": self._by_none,
        }

    def admitted(self, constraint: str) -> frozenset[int]:
        """Return the ranks that a constraint (canonical JSON, or empty) admits.

        One that Flux could not evaluate admits none.
        """
        found = self._known.get(constraint)
        if found is None:
            try:
                found = self._evaluate(msgspec.json.decode(constraint))
            except RecursionError:
                found = _NONE
            self._known[constraint] = found
        return found

    def _evaluate(self, expression: Any) -> frozenset[int]:
        if not isinstance(expression, dict):
            return _NONE
        for operator, evaluate in self._operators.items():
            if operator in expression:
                operands = expression[operator]
                if isinstance(operands, str):
                    operands = [operands]
                return evaluate(operands) if isinstance(operands, list) else _NONE
        return _NONE

    def _by_properties(self, names: list[Any]) -> frozenset[int]:
        found = self._all
        for name in names:
            if not isinstance(name, str):
                return _NONE
            having = self._properties.get(name.removeprefix("^"), _NONE)
            found = found - having if name.startswith("^") else found & having
        return found

    def _by_hosts(self, lists: list[Any]) -> frozenset[int]:
        try:
            hosts: list[str] = []
            for text in lists:
                hosts += parse_hostlist(text, _MOST_NAMED - len(hosts))
        except (TypeError, AttributeError, ValueError):
            return _NONE
        return frozenset(self._ranks[host] for host in hosts if host in self._ranks)

    def _by_ranks(self, idsets: list[Any]) -> frozenset[int]:
        try:
            ranks: set[int] = set()
            for text in idsets:
                ranks |= parse_idset(text, _MOST_NAMED - len(ranks))
            return self._all & ranks
        except (TypeError, AttributeError, ValueError):
            return _NONE

    def _by_all(self, parts: list[Any]) -> frozenset[int]:
        return self._all.intersection(*map(self._evaluate, parts))

    def _by_any(self, parts: list[Any]) -> frozenset[int]:
        return _union(map(self._evaluate, parts))

    def _by_none(self, parts: list[Any]) -> frozenset[int]:
        return self._all - self._evaluate(parts[0]) if parts else _NONE


def _union(sets: Any) -> frozenset[int]:
    return _NONE.union(*sets)
