# SPDX-License-Identifier: MIT
"""`burst demo`."""

from __future__ import annotations

import sys

import click

from burst.demo.play import play


@click.command()
@click.option("--flux", is_flag=True, help="Use real Flux brokers.")
@click.option(
    "--mode",
    type=click.Choice(["hold", "scheduler"]),
    default="hold",
    show_default=True,
    help="How jobs reach burst. With scheduler, which needs --flux, local jobs also"
    " pass a job that is larger than the instance.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def demo(flux: bool, mode: str, as_json: bool) -> None:
    """Run two whole bursts on this machine, in about twenty seconds.

    Starts a lead with two nodes of its own and submits four jobs. Two of them need
    nodes that the lead does not own: the daemon starts these nodes, they join, run the
    jobs, and are taken down again. One job needs more nodes than a burst can have, and
    burst explains why it waits. Each command is shown as a user would type it. All
    files are in a temporary directory, which is removed. The exit status is 0 if all
    jobs and bursts ended as they should and nothing is left.
    """
    if mode == "scheduler" and not flux:
        raise click.UsageError("--mode scheduler needs --flux")
    sys.exit(play(mode, flux=flux, as_json=as_json))
