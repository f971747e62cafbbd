# SPDX-License-Identifier: MIT
"""`[[budget]]` and `[prices]`: what bursts may cost, and what a node costs the site."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from burst.config.convert import Table, convert
from burst.config.policy import Users, Words, as_tuple
from burst.errors import ConfigError

MOST_UNITS = 1e12
"""The highest limit, price or fee. More, such as inf, is refused as a mistake."""
Price = Annotated[float, msgspec.Meta(ge=0, le=MOST_UNITS)]
"""The type of a price or fee in a provider's table: an amount per hour."""


class BudgetMatch(Table, frozen=True, omit_defaults=True):
    """`[[budget]] match`: the bursts that count towards a budget.

    Every key that is given must match.
    """

    user: Users = ()
    """Names or user ids: bursts for jobs of any of these users."""
    bank: Words = ()
    """Banks of the jobs, as `flux submit --bank` gives them."""
    queue: Words = ()
    """Queues to which the jobs were submitted."""
    provider: Words = ()
    """Providers from which the bursts are bought."""


class BudgetSettings(Table, frozen=True):
    """`[[budget]]`: an amount of money that is not exceeded in a day, week or month.

    Days begin at midnight UTC, weeks on Monday.
    """

    limit: float
    """In the unit of the prices. 0: nothing is bought that the budget matches."""
    match: BudgetMatch = BudgetMatch()
    """The bursts that count towards the budget; default: all."""
    per: Literal["day", "week", "month"] = "month"
    """The period of the budget. A month by default, as for invoices and grants."""
    until: datetime.date | None = None
    """The last day on which anything is bought that the budget matches; none by
    default. Set it if the money ends, such as that of a grant: bursts are not free of
    charge after that day."""

    retired: ClassVar[Mapping[str, str]] = {
        "warn": "remove it: the log and burst status warn at 80 % of the limit"
    }

    def __str__(self) -> str:
        found = [
            f"{key} {', '.join(map(str, as_tuple(value)))}"
            for key, value in msgspec.structs.asdict(self.match).items()
            if as_tuple(value)
        ]
        return f"{', '.join(found) or 'everything'}, per {self.per}"


def parse_budgets(
    tables: Any, providers: Collection[str], where: str
) -> tuple[BudgetSettings, ...]:
    """Return the tables `[[budget]]` of a file. Raises ConfigError."""
    if not isinstance(tables, list | tuple):
        raise ConfigError(f"{where}: budget: expected tables", "write [[budget]]")
    budgets: list[BudgetSettings] = []
    for number, table in enumerate(tables, 1):
        at = f"{where}: budget {number}"
        if not isinstance(table, Mapping):
            raise ConfigError(f"{at}: expected a table", "write [[budget]]")
        budget = convert(BudgetSettings, table, at)
        for key, value in table.get("match", {}).items():
            # An empty key would match everything, where nothing was meant.
            if value in ("", []):
                raise ConfigError(f"{at}: match.{key}: is empty", "leave the key out")
        _check_budget(budget, providers, at)
        if str(budget) in map(str, budgets):
            raise ConfigError(
                f"{at}: matches the same as an earlier one: {budget}",
                "the lower limit would apply; remove the other",
            )
        budgets.append(budget)
    return tuple(budgets)


def parse_prices(
    table: Any, providers: Collection[str], where: str
) -> Mapping[str, float]:
    """Return `[prices]` by `PROVIDER.OFFER`, quoted or not. Raises ConfigError."""
    if not isinstance(table, Mapping):
        raise ConfigError(f"{where}: prices: expected a table", "write [prices]")
    found: dict[str, float] = {}
    for key, price in _flat(table):
        provider, dot, offer = key.partition(".")
        at = f"{where}: prices.{key}"
        if not dot or not offer:
            raise ConfigError(f"{at}: names no offer", 'such as "gke.n2" = 2.5')
        if provider not in providers:
            raise ConfigError(
                f"{at}: there is no provider {provider}", _known(providers)
            )
        if isinstance(price, bool) or not isinstance(price, int | float):
            raise ConfigError(f"{at}: expected a number", 'such as "gke.n2" = 2.5')
        if not 0 <= price <= MOST_UNITS:
            raise ConfigError(f"{at}: {price} is out of range", "from 0 to 1e12")
        if key in found:
            raise ConfigError(f"{at}: is there twice", "remove one, quoted or not")
        found[key] = float(price)
    return found


def _flat(table: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield key and value; `gke.n2 = 2.5` without quotes is a table in a table."""
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from ((f"{key}.{name}", each) for name, each in value.items())
        else:
            yield key, value


def _check_budget(budget: BudgetSettings, providers: Collection[str], at: str) -> None:
    if not 0 <= budget.limit <= MOST_UNITS:
        raise ConfigError(
            f"{at}: limit: {budget.limit} is out of range",
            "from 0 to 1e12; with 0, nothing that the budget matches is bought; for no"
            " limit, remove the budget",
        )
    for key, value in msgspec.structs.asdict(budget.match).items():
        if "" in as_tuple(value) and value != ():
            raise ConfigError(f"{at}: match.{key}: is empty", "leave the key out")
    unknown = sorted(set(as_tuple(budget.match.provider)) - set(providers))
    if unknown:
        raise ConfigError(
            f"{at}: match.provider: there is no provider {unknown[0]}",
            _known(providers),
        )


def _known(providers: Collection[str]) -> str:
    return f"the settings have {', '.join(providers) or 'none'}"
