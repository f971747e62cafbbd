# SPDX-License-Identifier: MIT
"""`burst demo`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from burst.demo.kinds import Embedded, Flux, FluxScheduler, Kind
from burst.demo.play import play


@click.command()
@click.option("--flux", "on_flux", is_flag=True, help="On real brokers of Flux.")
@click.option(
    "--mode",
    type=click.Choice(["hold", "scheduler"]),
    default="hold",
    show_default=True,
    help="How jobs come in. scheduler, with --flux, has a second act: local jobs pass"
    " one that is larger than the instance.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option(
    "--svg",
    type=click.Path(path_type=Path),
    default=Path("demo.svg"),
    show_default=True,
    help="Where the picture of the timeline goes.",
)
def demo(on_flux: bool, mode: str, as_json: bool, svg: Path) -> None:
    """Show the whole path of a burst on this machine, in a quarter of a minute.

    A lead with two nodes of its own gets four jobs. Two of them can only run on nodes
    that it does not own: these are started, join, run them, and are taken down again.
    One asks for more than there could be and is told so. Everything is in a temporary
    directory, and nothing of it stays. The exit status says whether all of that
    happened.
    """
    if mode == "scheduler" and not on_flux:
        raise click.UsageError("--mode scheduler goes with --flux")
    kind: Kind = Embedded()
    if on_flux:
        kind = FluxScheduler() if mode == "scheduler" else Flux()
    sys.exit(play(kind, svg, as_json=as_json))
