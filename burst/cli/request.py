# SPDX-License-Identifier: MIT
"""`burst request`: bursts that a user asks for, ahead of jobs or isolated."""

from __future__ import annotations

from typing import Any

import click

from burst.cli.output import show_output
from burst.cli.target import Target, target_options
from burst.cli.watch import watch_burst


@click.command()
@click.option("-N", "--nodes", type=int, required=True, help="Number of nodes.")
@click.option("--provider", default="", help="Name of a provider; default: any.")
@click.option("--slot", default="", help="Rank slot to use, as a hostlist.")
@click.option("--no-wait", is_flag=True, help="Return without waiting for the nodes.")
@click.option(
    "--isolated",
    is_flag=True,
    help="Make an isolated instance, which runs COMMAND or waits for you.",
)
@click.option(
    "--service",
    is_flag=True,
    help="With --isolated: run the service from the provider's settings.",
)
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@target_options
def request(
    target: Target, command: tuple[str, ...], no_wait: bool, **wanted: Any
) -> None:
    """Burst ahead of jobs: have nodes ready before a job asks for them.

    The nodes stay until they are idle for `[deadlines] idle`. With --isolated, they run
    COMMAND once on each node and are taken down after it; without a COMMAND they stay
    until `burst down`, and the command to reach them is printed.
    """
    asked = _asked(command, **wanted)
    with target.lead() as lead:
        made = lead.call("request", asked, timeout=60.0)
        click.echo(made["text"])
        # A daemon of an earlier version does not say it.
        if made.get("beside"):
            click.echo(made["beside"], err=True)
        if no_wait:
            return
        for burst in made["bursts"]:
            until = "inactive" if command else "online"
            watch_burst(lambda: lead.call("status", {}), burst, until=until)
            if command:
                show_output(lead.call("output", {"id": burst}))
            elif wanted["isolated"]:
                rows = lead.call("status", {})["bursts"]
                click.echo(next(r["access"] for r in rows if r["id"] == burst))


def _asked(
    command: tuple[str, ...], nodes: int, provider: str, isolated: bool, **more: Any
) -> dict[str, Any]:
    """Return what is asked of the daemon. Raises UsageError."""
    asked: dict[str, Any] = {"nodes": nodes, "provider": provider}
    service, slot = more["service"], more["slot"]
    if not isolated:
        if command or service:
            raise click.UsageError("COMMAND and --service go with --isolated")
        return {**asked, "slot": slot}
    if slot or (command and service):
        raise click.UsageError("--isolated takes no --slot, and COMMAND or --service")
    kind = "command" if command else "service" if service else "interactive"
    return {**asked, "isolated": {"kind": kind, "command": list(command)}}
