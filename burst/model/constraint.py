# SPDX-License-Identifier: MIT
"""RFC 31 constraints as text, within a budget: what a job may cost whoever places it.

Anybody may write a constraint, and it is evaluated for each rank of the lead in each
tick in which its job waits. What `flux submit --requires` makes of a person's words is
far below these limits.
"""

from __future__ import annotations

from typing import Any

import msgspec

from burst.errors import JobspecError
from burst.model.ranks import TooManyHosts, parse_hostlist

LONGEST = 8192
"""Bytes of JSON."""
DEEPEST = 16
"""Operators within operators."""
MOST_OPERATORS = 256
MOST_HOSTS = 4096
"""Hosts that its hostlists name, each as often as it is named."""

_ADVICE = "submit it with a simpler one"


def canonical(constraint: Any) -> str:
    """Return a constraint as JSON text that is the same for equal constraints.

    Whether it is one, is not checked: Flux's scheduler does. Raises JobspecError that
    names the limit for what is beyond the budget, and for what cannot be written.
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
    """Check all but the length, without recursion. Raises JobspecError."""
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
            # The list of an operator's operands is no level of its own.
            rest += [(v, depth + isinstance(v, list)) for v in value]
        if operators > MOST_OPERATORS:
            raise _too_much("more operators", f"{MOST_OPERATORS}")


def _count_hosts(lists: Any, most: int) -> int:
    """Return how many hosts some hostlists name; what is none names none."""
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
