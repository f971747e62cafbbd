# SPDX-License-Identifier: MIT
"""`burst lead sweep`: takes down what leads of `burst lead batch` left."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from burst.batch.lead_directory import LeadDirectory, default_parent
from burst.batch.reap import is_job_over, reap_lead
from burst.cli.lead_batch import tell
from burst.cli.progress import show_wait
from burst.errors import BurstError


@click.command()
@click.argument("directories", nargs=-1, type=click.Path(path_type=Path))
def sweep(directories: tuple[Path, ...]) -> None:
    """Take down the bursts of killed leads that `burst lead batch` started.

    DIRECTORIES are the directories of leads. Default: all in
    ~/.local/share/burst/batch. Leads whose jobs have not ended are left alone.
    """
    leads = list(map(LeadDirectory, directories)) or LeadDirectory.find(
        default_parent()
    )
    failed = False
    for lead in leads:
        try:
            with show_wait(f"looking at {lead.path}"):
                told = _sweep(lead)
            click.echo(told)
        except BurstError as error:
            failed = True
            click.echo(f"{lead.path}: {error}", err=True)
    if not leads:
        click.echo("no lead left anything")
    if failed:
        sys.exit(1)


def _sweep(directory: LeadDirectory) -> str:
    if not is_job_over(directory):
        return f"{directory.path}: its job has not ended"
    reap_lead(directory, tell)
    directory.remove()
    return f"{directory.path}: nothing is left"
