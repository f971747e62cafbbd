# SPDX-License-Identifier: MIT
"""Finds where a burst.toml that is kept differs from what was asked for."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from burst.config import Mode, Settings, load, read_toml
from burst.core.plan.slots import is_found_by_name
from burst.lead_setup.lead_plan import NO_PROVIDER, HostGroup
from burst.model.ranks import format_hostlist, parse_hostlist


def unlike_plan(
    path: Path, text: str, groups: Sequence[HostGroup], provider: str, mode: Mode
) -> tuple[str, ...]:
    """Return what to change in the file for a new lead; empty for nothing.

    `groups` are the lead's own hosts and then its slots, `text` is the burst.toml that
    would be written if there were none. Raises ConfigError.
    """
    settings = load(path)
    return (
        *unlike_choice(settings, provider, mode),
        *_unlike_slots(settings, groups),
        *_unlike_table(path, settings, provider, text),
    )


def unlike_choice(settings: Settings, provider: str, mode: Mode) -> Iterator[str]:
    """Yield what to change in the file for this type of provider and this mode."""
    there = settings.intake.mode
    if there != mode:
        yield f'[intake] mode is "{there}" there; write "{mode}", or give --mode'
    if provider != NO_PROVIDER and not _named(settings, provider):
        yield f"it has no provider of type {provider}; add one, or give --provider"


def lacking_slots(settings: Settings, slots: Sequence[HostGroup]) -> Iterator[str]:
    """Yield what to change in the file for these slots, of which a lead may have more.

    Slots that the file does not declare are found by their names, if by anything.
    """
    there, names = settings.lead.slots, [group.names for group in slots]
    if not there and is_found_by_name(sum(names, ()), names):
        return
    known = [_hosts(each) for each in there]
    more = [format_hostlist(each) for each in names if each not in known]
    if more:
        has = f"is {_toml(there)}" if there else "is not set"
        yield f"[lead] slots {has} there; it has to have {_toml(more)}, too"


def _unlike_slots(settings: Settings, groups: Sequence[HostGroup]) -> Iterator[str]:
    """Yield what to change in the file for the slots of a lead."""
    slots = [group.names for group in groups[1:]]
    hosts = [name for group in groups for name in group.names]
    by_name, there = is_found_by_name(hosts, slots), settings.lead.slots
    # `burst doctor` reports a slot that is no hostlist.
    if sorted(_hosts(each) for each in there) == sorted(slots) or (
        by_name and not there
    ):
        return
    has = f"is {_toml(there)}" if there else "is not set"
    right = f"write {_toml([format_hostlist(names) for names in slots])}"
    what = "leave it out, as names tell which slots there are" if by_name else right
    yield f"[lead] slots {has} there; {what}"


def _unlike_table(
    path: Path, settings: Settings, provider: str, text: str
) -> Iterator[str]:
    """Yield the keys for which the provider's new table would have another value.

    Yields nothing if there are several tables of that type.
    """
    names = _named(settings, provider)
    if provider == NO_PROVIDER or len(names) != 1:
        return
    table = tomllib.loads(text)["providers"][provider]
    there = dict(_leaves("", read_toml(path)["providers"][names[0]]))
    for key, value in _leaves("", table):
        if there.get(key) != value:
            has = f"is {_toml(there[key])}" if key in there else "is not set"
            yield f"providers.{names[0]}.{key} {has} there; it would be {_toml(value)}"


def _named(settings: Settings, provider: str) -> list[str]:
    """Return the names of the providers of a type."""
    tables = settings.providers.items()
    return [name for name, table in tables if table.type == provider]


def _hosts(text: str) -> tuple[str, ...]:
    try:
        return parse_hostlist(text)
    except ValueError:
        return (text,)


def _leaves(path: str, table: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the dotted path and the value of each key, also those of inner tables."""
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _leaves(f"{path}{key}.", value)
        else:
            yield f"{path}{key}", value


def _toml(value: object) -> str:
    # For the values of these tables, JSON and TOML have the same text.
    return json.dumps(value)
