# SPDX-License-Identifier: MIT
"""`burst config`: checks and prints the settings."""

from __future__ import annotations

import json
from typing import Any

import click
import msgspec

from burst.cli.listing import Column, Listing, listing_options, print_json, print_rows
from burst.cli.progress import show_wait
from burst.cli.target import Target, target_options
from burst.config import Seconds, effective, parse, read_toml
from burst.runtime import provider_registry

_SETTINGS = (
    Column("KEY", lambda row: row["key"]),
    # As the file has it: text in quotes, true and false.
    Column("VALUE", lambda row: json.dumps(row["value"], ensure_ascii=False)),
    Column("FROM", lambda row: row["from"]),
)


@click.command("config")
@target_options
@listing_options
def show_config(target: Target, listing: Listing) -> None:
    """Check the settings and print the effective ones, and where each comes from.

    That includes the keys that each provider's plug-in declares. For a provider that is
    not enabled, only the keys in its table are printed.
    """
    path = target.find()
    tables = read_toml(path) if path else {}
    settings = parse(tables, str(path))
    with show_wait("loading the providers"):
        options = provider_registry.read_provider_options(settings, str(path))
    found = effective(settings, tables, str(path), options)
    rows = [
        {"key": key, "value": _as_in_file(value), "from": source}
        for key, value, source in found
    ]
    if target.uri:
        uri = next(row for row in rows if row["key"] == "lead.uri")
        uri |= {"value": target.uri, "from": "--uri"}
    if listing.as_json:
        print_json({"settings": rows})
    else:
        print_rows(rows, _SETTINGS, listing)


def _as_in_file(value: Any) -> Any:
    """Return a value as the file would have it, in types that JSON has."""
    if isinstance(value, Seconds):
        return str(value)
    return msgspec.to_builtins(value, enc_hook=str)
