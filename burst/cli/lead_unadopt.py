# SPDX-License-Identifier: MIT
"""`burst lead unadopt`: undoes what `burst lead adopt` did to an instance."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import click
import msgspec

from burst.cli.daemon_call import call_daemon
from burst.cli.progress import show_wait
from burst.cli.setup_checks import jobs_in_removed
from burst.cli.target import CONFIG_PLACE, Target, target_options
from burst.config import Settings
from burst.core.commands import held_jobs
from burst.errors import ConfigError, LeadGone
from burst.flux.owner_rights import owner_rights
from burst.flux_setup.config_files import read_config_files
from burst.flux_setup.running_instance import read_queue_names
from burst.flux_setup.setup_files import FluxDirectories
from burst.flux_setup.site_tables import loses_last_queue, our_tables
from burst.kits.user_names import user_name
from burst.lead import Lead
from burst.lead_setup.setup_place import is_apart, setup_places
from burst.lead_setup.site_files import read_record
from burst.lead_setup.unadopt_lead import (
    Undo,
    apply_unadopt,
    next_commands,
    plan_unadopt,
)
from burst.model.jobid import format_f58
from burst.runtime.connect import connect, is_flux
from burst.runtime.offline import read_records_snapshot


@click.command()
@click.argument("directory", metavar="CONFDIR", type=CONFIG_PLACE)
@click.option(
    "--dry-run", is_flag=True, help="Say what would change, and change nothing."
)
@target_options
def unadopt(directory: Path, dry_run: bool, target: Target) -> None:
    """Restore the files of the instance in CONFDIR to their state before burst.

    Undoes what `burst lead adopt`, `burst lead add-slot` and `burst setup`, as adopt
    printed it, did: files of the site are restored byte for byte, and files that were
    written for burst are removed, except those that were changed since. Says what it
    does with each file. Refuses while a daemon serves the instance, bursts live, jobs
    are held, or jobs wait in a queue that is removed. Asks the instance that was
    adopted, if neither --uri nor the settings name one. The instance is without burst
    after a restart.
    """
    record = read_record(directory)
    places = setup_places(directory, record.uri if record else "")
    plan = plan_unadopt(directory, places.own, apart=is_apart(places))
    gone = (step.path for step in plan.steps if step.undo is Undo.REMOVE)
    site = read_config_files(directory).without(*gone).tables.get("queues", {})
    ours = our_tables(places)
    with show_wait("reading what is on record"):
        owner, queues = _check_idle(_settings(target, plan.record.uri), places)
    last_queues = loses_last_queue(site, ours, queues)
    for step in plan.steps:
        click.echo(f"{step.undo.value:<8} {step.path}")
    if dry_run:
        return
    apply_unadopt(plan)
    click.echo(
        "\nRestore or remove the same files by hand on the other hosts, also where"
        " users only log in."
    )
    if owner and last_queues:
        click.echo(
            "No named queues are left. Flux accepts that only at a restart: do not have"
            " it reload its configuration, and restart it now."
        )
    click.echo(
        "Then run this as root on all hosts of the instance; the restart ends running"
        " jobs. The last line is for this host only, when nobody needs the records of"
        " bursts:\n"
    )
    for command in next_commands(
        "" if last_queues else owner, plan.record.uri, apart=is_apart(places)
    ):
        click.echo(f"    {command}")


def _settings(target: Target, adopted: str) -> Settings:
    """Return the settings, with the URI that `burst lead adopt` noted if they lack one.

    FLUX_URI may name another instance, such as the one in which this shell runs.
    """
    settings = target.settings()
    lead = settings.lead
    return msgspec.structs.replace(
        settings, lead=msgspec.structs.replace(lead, uri=lead.uri or adopted)
    )


def _check_idle(
    settings: Settings, places: FluxDirectories
) -> tuple[str, frozenset[str]]:
    """Raise BurstError if bursts live or could begin, or if that cannot be known.

    Return the owner of the instance and its named queues; empty if it does not run.
    """
    with owner_rights(settings.lead.uri):
        try:
            lead = connect(settings.lead.uri)
        except LeadGone as error:
            # No error: it may be the reason for this command, and nothing can join.
            click.echo(f"the instance is not running, so no record was read: {error}")
            return "", frozenset()
        try:
            for what, advice in _obstacles(lead, settings, places):
                raise ConfigError(what, advice)
            owner = lead.identity().owner_userid
            queues: frozenset[str] = frozenset()
            if is_flux(settings.lead.uri):
                queues = read_queue_names(settings.lead.uri)
        finally:
            lead.close()
    return user_name(os.geteuid() if owner is None else owner), queues


def _obstacles(
    lead: Lead, settings: Settings, places: FluxDirectories
) -> Iterator[tuple[str, str]]:
    """Yield each thing that has to end first, and how to end it. Raises BurstError."""
    served = call_daemon(lead, "ping")
    apart = is_apart(places)
    at = f" --uri {settings.lead.uri}" if apart else ""
    snapshot = read_records_snapshot(lead, settings)
    live = " ".join(burst.id for burst in snapshot.records.live)
    if live:
        start = "" if served or apart else "systemctl start burst && "
        yield f"bursts live: {live}", f"{start}burst down {live}{at}"
    held = " ".join(map(format_f58, held_jobs(snapshot.records)))
    if held:
        yield f"burst holds jobs: {held}", f"burst release --all{at}"
    if is_flux(settings.lead.uri):
        queues = our_tables(places).get("queues", {})
        yield from jobs_in_removed(settings.lead.uri, queues)
    if served is not None:
        stop = "systemctl disable --now burst"
        yield "a daemon serves the instance", "stop it by its unit" if apart else stop
