# SPDX-License-Identifier: MIT
"""RFC 31 constraints: as text within limits, and the ranks that they admit.

Any user may write a constraint, and it is evaluated for each rank of the lead in each
tick while its job waits. The constraints that `flux submit --requires` makes from what
a person types are far below the limits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from typing import Any

import msgspec

from burst.errors import JobspecError
from burst.model.ranks import TooManyHosts, idset_mask, parse_hostlist

LONGEST = 8192
"""The longest constraint, in bytes of JSON."""
DEEPEST = 16
"""The deepest nesting of operators."""
MOST_OPERATORS = 256
MOST_HOSTS = 4096
"""The most hosts in its hostlists; a host that is named twice counts twice."""

_ADVICE = "submit it with a simpler one"
_NONE = 0


def canonical(constraint: Any) -> str:
    """Return a constraint as JSON text that is the same for equal constraints.

    Its syntax is not checked: Flux's scheduler does that. Raises JobspecError, which
    names the limit, for a constraint beyond a limit, and for one that cannot be encoded
    as JSON.
    """
    _measure(constraint)
    try:
        text = msgspec.json.encode(constraint, order="deterministic")
    except (ValueError, OverflowError, TypeError, msgspec.MsgspecError) as error:
        raise JobspecError(f"its constraint cannot be read: {error}") from error
    if len(text) > LONGEST:
        raise _too_much(f"{len(text)} bytes", f"{LONGEST}")
    return text.decode()


def _measure(constraint: Any) -> None:
    """Check all limits except the length, without recursion. Raises JobspecError."""
    operators = hosts = 0
    rest = [(constraint, 0)]
    while rest:
        value, depth = rest.pop()
        if depth > DEEPEST:
            raise _too_much("operators nested more deeply", f"{DEEPEST}")
        if isinstance(value, dict):
            operators += len(value)
            hosts += _count_hosts(value.get("hostlist"), MOST_HOSTS - hosts)
            rest += [(operand, depth + 1) for operand in value.values()]
        elif isinstance(value, list):
            # The list of an operator's operands does not count as a level.
            rest += [(v, depth + isinstance(v, list)) for v in value]
        if operators > MOST_OPERATORS:
            raise _too_much("more operators", f"{MOST_OPERATORS}")


def _count_hosts(lists: Any, most: int) -> int:
    """Return how many hosts some hostlists name; other values name none."""
    count = 0
    for text in lists if isinstance(lists, list) else [lists]:
        try:
            count += len(parse_hostlist(text, most - count))
        except TooManyHosts:
            raise _too_much("more hosts", f"{MOST_HOSTS}") from None
        except (TypeError, ValueError):
            continue
    return count


def _too_much(what: str, limit: str) -> JobspecError:
    return JobspecError(
        f"its constraint has {what} than burst evaluates (at most {limit})", _ADVICE
    )


class ConstraintEvaluator:
    """Evaluates constraints for the ranks of one lead, as Flux's Rv1Set does.

    Sets of ranks are the bits of a number, for speed: a user may combine a few hundred
    sets, on a lead of ten thousand ranks.
    """

    def __init__(
        self, hosts: Mapping[str, int], properties: Mapping[str, Iterable[int]]
    ) -> None:
        """Take the rank of each host, and the ranks that have each property."""
        self._ranks = hosts
        self._size = max(hosts.values(), default=-1) + 1
        self._all = _mask(hosts.values())
        self._properties = {name: _mask(ranks) for name, ranks in properties.items()}
        self.work = 0
        """The work so far, in hosts: each host that was named, and one per 4 bytes."""
        # In the order in which Rv1Set looks for them.
        self._operators: dict[str, Callable[[list[Any]], int]] = {
            "properties": self._by_properties,
            "hostlist": self._by_hosts,
            "ranks": self._by_ranks,
            "and": self._by_all,
            "or": self._by_any,
            "not": self._by_none,
        }

    def mask(self, constraint: str) -> int:
        """Return the ranks that a constraint admits, as bits; all for empty text.

        The constraint is JSON from `canonical`. Raises JobspecError if Flux could not
        evaluate it.
        """
        if not constraint:
            return self._all
        self.work += 1 + len(constraint) // 4
        try:
            return self._evaluate(msgspec.json.decode(constraint))
        except (TypeError, ValueError, LookupError) as error:
            raise JobspecError(
                "its constraint cannot be read",
                "RFC 31 knows " + ", ".join(self._operators),
            ) from error

    def admitted(self, constraint: str) -> frozenset[int]:
        """Return the ranks that a constraint admits. Raises JobspecError."""
        return ranks_of_mask(self.mask(constraint))

    def _evaluate(self, expression: Any) -> int:
        if not isinstance(expression, dict):
            raise TypeError("expected an operator and its operands")
        operator = next((name for name in self._operators if name in expression), "")
        operands = expression[operator]
        if isinstance(operands, str):
            operands = [operands]
        if not isinstance(operands, list):
            raise TypeError("expected operands")
        return self._operators[operator](operands)

    def _by_properties(self, names: list[Any]) -> int:
        found = self._all
        for name in _texts(names):
            having = self._properties.get(name.removeprefix("^"), _NONE)
            found &= ~having if name.startswith("^") else having
        return found

    def _by_hosts(self, lists: list[Any]) -> int:
        hosts = [
            host for text in _texts(lists) for host in parse_hostlist(text, MOST_HOSTS)
        ]
        self.work += len(hosts)
        return _mask(self._ranks[host] for host in hosts if host in self._ranks)

    def _by_ranks(self, idsets: list[Any]) -> int:
        masks = (idset_mask(text, self._size) for text in _texts(idsets))
        return self._all & _union(masks)

    def _by_all(self, parts: list[Any]) -> int:
        return reduce(lambda a, b: a & b, map(self._evaluate, parts), self._all)

    def _by_any(self, parts: list[Any]) -> int:
        return _union(map(self._evaluate, parts))

    def _by_none(self, parts: list[Any]) -> int:
        return self._all & ~self._evaluate(parts[0])


def ranks_of_mask(mask: int) -> frozenset[int]:
    """Return the ranks whose bits are set."""
    bits = enumerate(reversed(f"{mask:b}"))
    return frozenset(rank for rank, bit in bits if bit == "1")


def _texts(operands: list[Any]) -> list[str]:
    if not all(isinstance(text, str) for text in operands):
        raise TypeError("expected text")
    return operands


def _union(masks: Iterable[int]) -> int:
    return reduce(lambda a, b: a | b, masks, _NONE)


def _mask(ranks: Iterable[int]) -> int:
    """Return the ranks as the bits of a number."""
    digits = bytearray()
    for rank in ranks:
        digits.extend(bytes(max(0, rank // 8 + 1 - len(digits))))
        digits[rank // 8] |= 1 << rank % 8
    return int.from_bytes(digits, "little")
