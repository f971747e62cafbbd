# SPDX-License-Identifier: MIT
"""`burst keygen`: makes a CURVE certificate."""

from __future__ import annotations

from pathlib import Path

import click

from burst.kits import certificate
from burst.lead_setup.own_host import short_name


@click.command()
@click.argument("path", type=click.Path(path_type=Path), default="burst.cert")
@click.option("--name", help="Shown by `flux overlay status`. Default: this host's.")
@click.option("--force", is_flag=True, help="Replace a certificate that is there.")
def keygen(path: Path, name: str | None, force: bool) -> None:
    """Make a CURVE certificate, in Flux's format, for a lead and all that join it.

    PATH is by default burst.cert. Whoever can read it can join; its mode is 0600.
    """
    made = certificate.create(short_name() if name is None else name)
    certificate.write(made, path, replace=force)
    click.echo(f"{path}: certificate of {made.name}, fingerprint {made.fingerprint}")
