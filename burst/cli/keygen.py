# SPDX-License-Identifier: MIT
"""`burst keygen`: makes a CURVE certificate, or replaces a lead's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from burst.cli.daemon_call import ask_or_read
from burst.cli.progress import show_wait
from burst.cli.target import Target, target_options
from burst.errors import BurstError, LeadError, Unreadable
from burst.kits import certificate
from burst.kits.rotation import delete_unused, rotate
from burst.lead import Lead
from burst.lead_setup.own_host import short_name

_OVER = ("reap", "inactive")


@click.command()
@click.argument("path", type=click.Path(path_type=Path), default="burst.cert")
@click.option(
    "--name",
    help="Name in the certificate, which `flux overlay status` shows. Default: this"
    " host's name; with --rotate: the previous name.",
)
@click.option("--force", is_flag=True, help="Replace an existing certificate.")
@click.option(
    "--rotate",
    "rotates",
    is_flag=True,
    help="Replace the certificate of a lead. This takes effect when the lead is"
    " restarted; until then, bursts get the previous certificate.",
)
@click.option(
    "--yes",
    is_flag=True,
    help="With --rotate: do it even if bursts would lose the lead at its restart.",
)
@target_options
def keygen(  # noqa: PLR0913, PLR0917 - one parameter for each option
    path: Path, name: str | None, force: bool, rotates: bool, yes: bool, target: Target
) -> None:
    """Make a CURVE certificate, in Flux's format, for a lead and all that join it.

    PATH is by default burst.cert. Whoever can read the file can join the lead; its mode
    is 0600.

    With --rotate the certificate at PATH is replaced, and the old one is kept beside it
    for the running lead. Bursts that still exist when the lead is restarted lose it for
    good. If there are any, they are listed, and nothing is done without --yes.
    """
    if rotates:
        if force:
            raise click.UsageError("use --rotate or --force, not both")
        _rotate(path, name, yes, target)
        return
    made = certificate.create(short_name() if name is None else name)
    certificate.write(made, path, replace=force)
    click.echo(f"{path}: certificate of {made.name}, fingerprint {made.fingerprint}")


def _rotate(path: Path, name: str | None, yes: bool, target: Target) -> None:
    certificate.read(path)  # raises if it is unreadable, before a lead is asked
    started, bursts = 0.0, list[str]()
    try:
        with target.lead() as lead:
            known = lead.identity()
            if Path(known.certificate).resolve() == path.resolve():
                started, bursts = known.started, _joined(lead, target)
            else:
                click.echo(f"the lead has another certificate: {known.certificate}")
    except (LeadError, Unreadable) as error:
        click.echo(f"no lead could be asked for its bursts: {error}", err=True)
    if bursts and not yes:
        raise BurstError(
            f"{path}: not replaced: {', '.join(bursts)} would lose the lead at its"
            " restart",
            "take them down with `burst down BURST`, wait for their end, or add --yes",
        )
    made, kept = rotate(path, name)
    click.echo(f"{path}: certificate of {made.name}, fingerprint {made.fingerprint}")
    _tell(kept, bursts, delete_unused(path, started))


def _tell(kept: Path, bursts: Sequence[str], deleted: Sequence[Path]) -> None:
    click.echo(f"{kept}: the previous one, for what joins before the lead restarts")
    for old in deleted:
        click.echo(f"{old}: deleted, as the lead has been restarted since")
    click.echo(
        "copy the new one to own hosts of the lead that have files of their own,"
        " restart them and the lead, then delete the previous one"
    )
    if bursts:
        click.echo(f"lose the lead for good at its restart: {', '.join(bursts)}")


def _joined(lead: Lead, target: Target) -> list[str]:
    """Return the ids of the bursts that have joined, or are to join, the lead."""
    with show_wait("asking the lead for its bursts"):
        rows = ask_or_read(lead, target, "status")["bursts"]
    return [
        row["id"] for row in rows if row["state"] not in _OVER and not row["isolated"]
    ]
