# SPDX-License-Identifier: MIT
"""A day as an argument of commands."""

from __future__ import annotations

import datetime

import click


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
