# SPDX-License-Identifier: MIT
"""`burst lead unadopt`: takes out again what `burst lead adopt` did to an instance."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from burst.cli.daemon_call import call_daemon
from burst.cli.progress import show_wait
from burst.cli.target import CONFIG_PLACE, Target, target_options
from burst.config import Settings
from burst.core.commands import held_jobs
from burst.errors import ConfigError, LeadError
from burst.flux_setup.running_instance import read_jobs_in
from burst.flux_setup.setup_files import system_directories
from burst.flux_setup.site_tables import our_tables
from burst.lead import Lead
from burst.lead_setup.unadopt_lead import apply_unadopt, next_commands, plan_unadopt
from burst.model.jobid import format_f58
from burst.runtime.connect import connect
from burst.runtime.offline import read_records_snapshot


@click.command()
@click.argument("directory", metavar="CONFDIR", type=CONFIG_PLACE)
@click.option(
    "--dry-run", is_flag=True, help="Say what would change, and change nothing."
)
@target_options
def unadopt(directory: Path, dry_run: bool, target: Target) -> None:
    """Give the files of the instance in CONFDIR back as they were before burst.

    Takes out what `burst lead adopt`, `burst lead add-slot` and `burst setup --system`
    did: files of the site are as they were, byte for byte, and files that were written
    for burst are removed, except those that were changed since. Says what it does with
    each. Refuses while a daemon serves the instance, bursts live or jobs are held. The
    instance is without burst after a restart.
    """
    plan = plan_unadopt(directory, system_directories().own)
    for step in plan.steps:
        click.echo(f"{step.undo.value:<8} {step.path}")
    with show_wait("reading what is on record"):
        _check_idle(target)
    if dry_run:
        return
    apply_unadopt(plan)
    click.echo(
        "\nDo the same with the files of the other hosts, also where users only log"
        " in. Then, as root, on all hosts of the instance, of which the restart ends"
        " jobs that run; the last line on this one, when nobody needs the records of"
        " bursts:\n"
    )
    for command in next_commands():
        click.echo(f"    {command}")


def _check_idle(target: Target) -> None:
    """Raise BurstError where bursts live, or could begin."""
    settings = target.settings()
    try:
        lead = connect(settings.lead.uri, settings.intake.attribute)
    except LeadError as error:
        # It may be why this is typed, and nothing can join what does not run.
        click.echo(f"the instance does not run, so no record was read: {error}")
        return
    try:
        for what, advice in _obstacles(lead, settings):
            raise ConfigError(what, advice)
    finally:
        lead.close()


def _obstacles(lead: Lead, settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield what has to end first, and how. Raises BurstError."""
    served = call_daemon(lead, "ping")
    snapshot = read_records_snapshot(lead, settings)
    live = " ".join(burst.id for burst in snapshot.records.live)
    if live:
        start = "" if served else "systemctl start burst && "
        yield f"bursts live: {live}", f"{start}burst down {live}"
    held = " ".join(map(format_f58, held_jobs(snapshot.records)))
    if held:
        yield f"burst holds jobs: {held}", "burst release --all"
    # Of our piece of the configuration, which goes: those of other jobs, too.
    queues = our_tables(system_directories()).get("queues", {})
    queued = read_jobs_in(settings.lead.uri, queues)
    if queued:
        waiting = " ".join(map(format_f58, queued))
        yield (
            f"jobs are in queues that go: {waiting}",
            f"flux cancel {waiting}, and have their users submit them again",
        )
    if served is not None:
        yield "a daemon serves the instance", "systemctl disable --now burst"
