# SPDX-License-Identifier: MIT
"""`[[providers.NAME.standing]]`: nodes that are kept although no job needs them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from burst.config.convert import Table, convert
from burst.config.intervals import parse_hours
from burst.config.policy import Words, as_tuple
from burst.errors import ConfigError


class StandingNodes(Table, frozen=True):
    """`[[providers.NAME.standing]]`: nodes that are kept although no job needs them."""

    nodes: int
    """The least number of nodes: bursts are made for those that are missing. Bursts
    that were made for jobs count, too, while they live."""
    offer: str = ""
    """The offer of the nodes; default: any offer of the provider."""
    hours: Words = ()
    """When the nodes are kept, in the time zone of the daemon's host: "Mo-Fr 8-18",
    "Sa,Su", "22-6", or a list of these. Hours that end before they begin end on the
    next day. Default: always."""


def parse_standing(tables: Any, where: str) -> tuple[StandingNodes, ...]:
    """Return the tables `standing` of one provider. Raises ConfigError."""
    if not isinstance(tables, list | tuple):
        name = where.rpartition("providers.")[2]
        raise ConfigError(
            f"{where}.standing: expected tables", f"write [[providers.{name}.standing]]"
        )
    return tuple(
        _parse(table, f"{where}.standing {number}")
        for number, table in enumerate(tables, 1)
    )


def check_standing(
    tables: Sequence[StandingNodes], offers: Collection[str], where: str
) -> None:
    """Raise ConfigError for a table that names an offer the provider does not have."""
    for number, table in enumerate(tables, 1):
        if table.offer and table.offer not in offers:
            raise ConfigError(
                f"{where}.standing {number}: offer: there is no {table.offer!r}",
                f"the provider has {', '.join(sorted(offers))}",
            )


def _parse(table: Any, at: str) -> StandingNodes:
    if not isinstance(table, Mapping):
        raise ConfigError(f"{at}: expected a table")
    found = convert(StandingNodes, table, at)
    if found.nodes < 1:
        raise ConfigError(
            f"{at}: nodes: {found.nodes} is out of range",
            "at least 1; remove the table to keep none",
        )
    if table.get("hours") == []:
        raise ConfigError(f"{at}: hours: is empty", "leave the key out for always")
    for hours in as_tuple(found.hours):
        try:
            parse_hours(hours)
        except ValueError as error:
            raise ConfigError(f"{at}: hours: {error}") from None
    return found
