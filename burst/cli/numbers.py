# SPDX-License-Identifier: MIT
"""Numbers, durations and days as arguments of commands."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from typing import Any, TypeVar

import click

from burst.model.fsd import parse_fsd

_Command = TypeVar("_Command", bound=Callable[..., Any])


class Duration(click.ParamType[float]):
    """Seconds, as Flux writes durations."""

    name = "duration"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return seconds."""
        try:
            seconds = parse_fsd(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if math.isinf(seconds):
            self.fail(f"{value} never ends", param, ctx)
        return seconds


def duration_option(
    name: str, text: str, default: str | None = None
) -> Callable[[_Command], _Command]:
    """Return the decorator that adds an option with a duration; `text` is its help."""
    return click.option(
        name, type=Duration(), help=text, default=default, show_default=True
    )


class Finite(click.FloatRange):
    """A finite number from 0 on. NaN is refused here: it passes click's range check."""

    def __init__(self) -> None:
        super().__init__(min=0)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number."""
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a number from 0 on", param, ctx)
        return number


class Day(click.ParamType[datetime.date]):
    """A day in UTC, as ISO 8601 writes it: 2026-12-31."""

    name = "YYYY-MM-DD"

    def convert(
        self,
        value: str | datetime.date,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> datetime.date:
        """Return the day."""
        if isinstance(value, datetime.date):
            return value
        try:
            return datetime.date.fromisoformat(value)
        except ValueError:
            self.fail(f"expected a day such as 2026-12-31, got {value!r}", param, ctx)
