# SPDX-License-Identifier: MIT
"""`run-burst`: one burst by hand, from inside the lead, as in the first experiment."""

from __future__ import annotations

from typing import Any

import click
import msgspec
from rich.console import Console

from burst import log
from burst.cli.common import Place, place_options, run_command
from burst.cli.progress import line_of, watch_burst
from burst.config import Settings
from burst.errors import BurstError, ConfigError, NoDaemon
from burst.lead import Lead
from burst.model.ranks import parse_hostlist
from burst.shell.onepass import OnePass, settings_for, slot_of


@click.command("run-burst")
@click.option(
    "--name", default="burst-0", show_default=True, help="Of the rank slot to use."
)
@click.option("--provider", default="local", show_default=True, help="Who makes it.")
@click.option(
    "-N",
    "--nodes",
    type=int,
    default=0,
    help="If no burstable job waits: so many; default: all that the slot has.",
)
@click.option("--lead-host", default="", help="Where followers reach the lead.")
@click.option(
    "--lead-port",
    type=click.IntRange(1, 65535),
    help="And at which port. Default for both: as the lead's own hosts say.",
)
@click.option(
    "--lead-size",
    default=0,
    help="Size that you believe the lead to have; ranks would not line up otherwise.",
)
@click.option("--down", is_flag=True, help="Take it down instead.")
@place_options
def command(place: Place, **wanted: Any) -> None:
    """Make one burst by hand: for the burstable jobs that wait, or ahead of them.

    Waits until its nodes are online and prints what joined. It stays up until
    run-burst --down takes it down. Where a daemon serves the lead, that one does it.
    """
    _Pass(place, **wanted).run()


class _Pass:
    """What was asked for, and the way to it with a daemon or without."""

    def __init__(self, place: Place, **wanted: Any) -> None:
        self._place = place
        self._wanted = wanted

    def run(self) -> None:
        settings = self._settings()
        with self._place.lead() as lead:
            identity = lead.identity()
            size = self._wanted["lead_size"]
            if size and size != len(identity.hosts):
                raise ConfigError(
                    f"--lead-size {size}: the lead has {len(identity.hosts)} ranks",
                    "it is the lead's largest size, absent nodes included; leave it out"
                    " to take the lead's word",
                )
            slot = slot_of(identity, self._wanted["name"])
            try:
                lead.call("ping", {})
            except NoDaemon:
                self._without_daemon(lead, settings, slot)
            else:
                self._by_daemon(lead, slot)

    def _settings(self) -> Settings:
        settings = self._place.settings()
        lead = settings.lead
        address = self._wanted["lead_host"] or lead.address
        port = self._wanted["lead_port"] or lead.port
        lead = msgspec.structs.replace(lead, address=address, port=port)
        return msgspec.structs.replace(settings, lead=lead)

    def _by_daemon(self, lead: Lead, slot: str) -> None:
        def look() -> dict[str, Any]:
            return lead.call("status", {})

        if self._wanted["down"]:
            live = [row for row in look()["bursts"] if row["state"] != "inactive"]
            rows = [row for row in live if _within(row, slot)]
            if not rows:
                raise BurstError(f"there is no burst in {slot}", "burst status -a")
            for row in rows:
                lead.call("down", {"burst": row["id"]}, timeout=60.0)
                watch_burst(look, row["id"], until="inactive")
            return
        nodes = self._wanted["nodes"] or len(parse_hostlist(slot))
        asked = {"nodes": nodes, "provider": self._wanted["provider"], "slot": slot}
        made = lead.call("request", asked, timeout=60.0)
        click.echo(made["text"])
        for burst in made["bursts"]:
            watch_burst(look, burst)

    def _without_daemon(self, lead: Lead, settings: Settings, slot: str) -> None:
        provider = self._wanted["provider"]
        log.start("text", level="warning")
        console = Console(stderr=True)
        with console.status("reading the lead and the offers") as spinner:
            one = OnePass(
                lead,
                settings_for(settings, provider, slot),
                lambda row: spinner.update(line_of(row)),
            )
            try:
                if self._wanted["down"]:
                    rows = one.down(slot)
                else:
                    rows = [one.up(provider, slot, self._wanted["nodes"])]
            except KeyboardInterrupt:
                spinner.update("taking down what was begun; Ctrl-C again leaves it")
                one.undo(slot)
                raise
            finally:
                one.close()
        self._report(rows)

    def _report(self, rows: list[dict[str, Any]]) -> None:
        for row in rows:
            if self._wanted["down"]:
                click.echo(f"{row['id']} is gone: {row['result']}")
                continue
            click.echo(f"{row['hosts']} joined as ranks {row['ranks']}: {row['id']}")
            name = self._wanted["name"]
            click.echo(f"it stays until: run-burst --down --name {name}")


def _within(row: dict[str, Any], slot: str) -> bool:
    return set(parse_hostlist(row["hosts"])) <= set(parse_hostlist(slot))


def main() -> None:
    """Run as a program."""
    run_command(command)
