# SPDX-License-Identifier: MIT
"""One rank's resources, and the constraints that a job may put on it. Pure."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from burst.errors import JobspecError
from burst.model.ranks import parse_hostlist, parse_idset
from burst.model.shape import Shape


class NodeResources(msgspec.Struct, frozen=True, kw_only=True):
    """What one rank has, by R."""

    rank: int
    host: str
    cores: frozenset[int]
    gpus: frozenset[int] = frozenset()
    properties: frozenset[str] = frozenset()

    @property
    def shape(self) -> Shape:
        """The same as numbers."""
        return Shape(len(self.cores), len(self.gpus))


def matches(node: NodeResources, constraint: Mapping[str, Any]) -> bool:
    """Tell whether the node satisfies an RFC 31 constraint. Raises JobspecError."""
    try:
        operator, operands = next(
            (name, constraint[name]) for name in _OPERATORS if name in constraint
        )
        return _OPERATORS[operator](node, operands)
    except (StopIteration, TypeError, ValueError, LookupError, RecursionError) as error:
        raise JobspecError(
            "its constraint cannot be read",
            "RFC 31 knows " + ", ".join(_OPERATORS),
        ) from error


def _has_properties(node: NodeResources, names: Any) -> bool:
    return all(
        name[1:] not in node.properties
        if name.startswith("^")
        else name in node.properties
        for name in _texts(names)
    )


@functools.lru_cache(64)
def _hosts(text: str) -> frozenset[str]:
    return frozenset(parse_hostlist(text))


def _is_host(node: NodeResources, lists: Any) -> bool:
    return any(node.host in _hosts(text) for text in _texts(lists))


def _is_rank(node: NodeResources, sets: Any) -> bool:
    return any(node.rank in parse_idset(text) for text in _texts(sets))


def _all(node: NodeResources, constraints: Any) -> bool:
    # Each is looked at, so that what cannot be read is found at submit.
    found = [matches(node, each) for each in constraints]
    return all(found)


def _any(node: NodeResources, constraints: Any) -> bool:
    found = [matches(node, each) for each in constraints]
    return any(found)


def _not(node: NodeResources, constraints: Any) -> bool:
    return not matches(node, constraints[0])


# In the order in which Flux's Rv1Set looks for them.
_OPERATORS: dict[str, Callable[[NodeResources, Any], bool]] = {
    "properties": _has_properties,
    "hostlist": _is_host,
    "ranks": _is_rank,
    "and": _all,
    "or": _any,
    "not": _not,
}


def _texts(operands: Any) -> list[str]:
    texts = [operands] if isinstance(operands, str) else list(operands)
    if not all(isinstance(text, str) for text in texts):
        raise TypeError("expected text")
    return texts
