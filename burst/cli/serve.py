# SPDX-License-Identifier: MIT
"""`burst daemon` and `burst config`."""

from __future__ import annotations

import json
import os
from typing import Any

import click
import msgspec

from burst import log
from burst.cli.common import (
    Column,
    Listing,
    Place,
    listing_options,
    place_options,
    print_json,
    print_rows,
)
from burst.config import Seconds, effective, parse, read_settings
from burst.daemon import Daemon
from burst.runtime import provider_registry

_SETTINGS = (
    Column("KEY", lambda row: row["key"]),
    # As the file has it: text in quotes, true and false.
    Column("VALUE", lambda row: json.dumps(row["value"], ensure_ascii=False)),
    Column("FROM", lambda row: row["from"]),
)


@click.command()
@place_options
def daemon(place: Place) -> None:
    """Serve a lead: hear of its jobs, burst for them, take everything down again.

    SIGTERM ends it and leaves bursts alone, unless `[daemon] on_stop = "reap"`;
    SIGHUP reads the settings again. In a pod other than the first of an indexed Job it
    ends at once: the lead is not there.
    """
    log.start(place.settings().daemon.log)
    # The Job controller sets it. A MiniCluster has its sidecars in every pod, and is
    # complete only once they have ended well.
    index = os.environ.get("JOB_COMPLETION_INDEX", "0")
    if index != "0":
        log.say("this is pod %s; the daemon is beside the lead, in pod 0", index)
        return
    process = Daemon(place.settings, place.find())
    process.handle_signals()
    process.run()


@click.command("config")
@place_options
@listing_options
def show_config(place: Place, listing: Listing) -> None:
    """Check the settings and print the effective ones, and where each comes from.

    Tables of providers too, by what the plug-in declares; of a provider that is not
    enabled only what its table says is printed.
    """
    path = place.find()
    tables = read_settings(path) if path else {}
    settings = parse(tables, str(path))
    options = provider_registry.read_provider_options(settings, str(path))
    found = effective(settings, tables, str(path), options)
    rows = [
        {"key": key, "value": _as_in_file(value), "from": source}
        for key, value, source in found
    ]
    if place.uri:
        uri = next(row for row in rows if row["key"] == "lead.uri")
        uri |= {"value": place.uri, "from": "--uri"}
    if listing.as_json:
        print_json(rows)
    else:
        print_rows(rows, _SETTINGS, listing)


def _as_in_file(value: Any) -> Any:
    """Return a value as the file would have it, made of what JSON has."""
    if isinstance(value, Seconds):
        return str(value)
    return msgspec.to_builtins(value, enc_hook=str)
