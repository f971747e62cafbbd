# SPDX-License-Identifier: MIT
"""`burst release`: gives held jobs their urgency back."""

from __future__ import annotations

from collections.abc import Sequence

import click

from burst.cli.daemon_call import call_daemon
from burst.cli.progress import show_wait
from burst.cli.target import Target, target_options
from burst.cli.typed_names import complete_held
from burst.errors import BurstError
from burst.lead import JobFailures
from burst.model.jobid import format_f58, parse_jobid
from burst.runtime.offline import release_held_jobs


@click.command()
@click.argument("jobs", nargs=-1, shell_complete=complete_held)
@click.option(
    "--all", "everything", is_flag=True, help="Release all jobs that burst holds."
)
@target_options
def release(jobs: tuple[str, ...], everything: bool, target: Target) -> None:
    """Give held JOBS their urgency back; burst does not hold them again.

    Also works without a daemon, for jobs that are still held after a daemon has ended.
    """
    if bool(jobs) == everything:
        raise click.UsageError("give JOBS, or --all")
    try:
        wanted = [parse_jobid(job) for job in jobs]
    except ValueError as error:
        raise BurstError(str(error)) from None
    asked = {"ids": list(map(str, wanted)), "all": everything}
    failures: JobFailures = {}
    with target.lead() as lead, show_wait("releasing jobs"):
        found = call_daemon(lead, "release", asked)
        if found is None:
            free, failures = release_held_jobs(lead, None if everything else wanted)
            found = {"released": [format_f58(job) for job in free]}
    tell_released(found["released"], failures)


def tell_released(released: Sequence[str], failures: JobFailures) -> None:
    """Print which jobs were released. Raises BurstError for those that were not."""
    if released or not failures:
        click.echo(f"released: {' '.join(released) or 'nothing is held'}")
    if failures:
        left = "; ".join(f"{format_f58(job)}: {why}" for job, why in failures.items())
        raise BurstError(f"not released: {left}", "run it again")
