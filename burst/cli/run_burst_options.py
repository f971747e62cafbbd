# SPDX-License-Identifier: MIT
"""Adds the flags of installed providers to the options of `run-burst`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import click
import msgspec

from burst.config import ProviderTable
from burst.errors import ConfigError
from burst.extensions import find_point
from burst.provider_type import GROUP, ProviderFlag, ProviderType, load_type


class GivenFlags(msgspec.Struct, frozen=True):
    """The flags given on the command line, and the types of providers installed."""

    values: Mapping[str, str]
    """The values by flag name."""
    types: Mapping[str, ProviderType]

    def selected_type(self) -> str:
        """Return the type of provider that the flags name; empty if none does."""
        for kind, brought in self.types.items():
            if any(f.selects and f.name in self.values for f in brought.flags):
                return kind
        return ""

    def words(self) -> list[str]:
        """Return the flags that have an effect, as they were typed."""
        ignored = {
            flag.name for brought in self.types.values() for flag in _ignored(brought)
        }
        return [f"--{k} {v}" for k, v in self.values.items() if k not in ignored]

    def notes(self, table: ProviderTable) -> list[str]:
        """Return what the table's type notes on the flags; `table()` made the table."""
        brought = self.types.get(table.type)
        return list(brought.notes(self.values, table.options)) if brought else []

    def table(self, base: ProviderTable, nodes: int) -> ProviderTable:
        """Return a provider's table with the options that the flags give.

        `nodes` is the size of the rank slot. Raises ConfigError.
        """
        if not self.words():
            return base
        brought = self.types.get(base.type)
        known = {flag.name for flag in brought.flags} if brought else set()
        unknown = [f"--{name}" for name in self.values if name not in known]
        if brought is None or unknown:
            raise ConfigError(
                f"{', '.join(unknown)}: a provider of type {base.type} has no such"
                " flag",
                "name another with --provider, or leave the flag out",
            )
        options = brought.options(self.values, base.options, nodes)
        return msgspec.structs.replace(base, options=options)


def provider_flag_options(
    function: Callable[..., None], found: Iterable[EntryPoint] | None = None
) -> Callable[..., None]:
    """Add the flags of all providers; the command gets them as `flags`.

    `found` is by default the entry points that are installed.
    """
    points = tuple(entry_points(group=GROUP) if found is None else found)
    names = dict.fromkeys(point.name for point in points)
    types = {name: made for name in names if (made := _load(points, name))}
    flags = {flag.name: flag for brought in types.values() for flag in brought.flags}

    @functools.wraps(function)
    def command(**others: Any) -> None:
        values = {name: others.pop(_parameter(name)) for name in flags}
        given = {name: str(value) for name, value in values.items() if value}
        function(flags=GivenFlags(given, types), **others)

    for flag in reversed(flags.values()):
        command = click.option(
            f"--{flag.name}",
            help=flag.help,
            type=click.Path(dir_okay=False, exists=True) if flag.is_file else str,
        )(command)
    return command


def _load(points: Sequence[EntryPoint], name: str) -> ProviderType | None:
    try:
        point = find_point(points, name)
        return load_type(point) if point else None
    except ConfigError as error:
        # Other providers' flags must not be lost because of one package's mistake.
        click.echo(f"flags of provider type {name} are left out: {error}", err=True)
        return None


def _ignored(brought: ProviderType) -> list[ProviderFlag]:
    return [flag for flag in brought.flags if flag.ignored]


def _parameter(name: str) -> str:
    return name.replace("-", "_")
