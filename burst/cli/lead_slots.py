# SPDX-License-Identifier: MIT
"""`burst lead add-slot` and `burst lead check`: further rank slots."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from pathlib import Path

import click

from burst.cli.gateway_option import GatewayCommand, gateway_option
from burst.cli.progress import show_wait
from burst.cli.setup_checks import check_intake, try_running
from burst.cli.target import CONFIG_PLACE, Target, target_options
from burst.config import IntakeSettings
from burst.doctor.check_multi_user import check_multi_user
from burst.doctor.check_queues import check_queues
from burst.doctor.collect_multi_user import is_multi_user, read_multi_user
from burst.errors import ConfigError
from burst.flux.owner_rights import owner_rights
from burst.kits.user_names import user_name
from burst.lead import Lead
from burst.lead_setup.add_slots import (
    add_slots,
    compare_with_running,
    hosts_that_differ,
)
from burst.lead_setup.flux_install import find_flux
from burst.lead_setup.lead_config import read_config
from burst.lead_setup.lead_plan import parse_slot
from burst.lead_setup.own_host import own_shape
from burst.lead_setup.trial_broker import try_broker
from burst.model.finding import Finding, Level, wrong
from burst.model.lead import LeadIdentity
from burst.runtime.connect import is_flux


@click.command("add-slot", cls=GatewayCommand)
@click.argument("directory", metavar="DIR", type=CONFIG_PLACE)
@click.argument("slots", metavar="HOSTLIST[:CORES[:GPUS]]...", nargs=-1, required=True)
@click.option(
    "--dry-run", is_flag=True, help="Say what would be added, and change nothing."
)
@click.option(
    "--provider",
    default="",
    metavar="NAME",
    help="Provider that the slots are for. Default: any.",
)
@gateway_option
def add_slot(
    directory: Path,
    slots: tuple[str, ...],
    dry_run: bool,
    provider: str,
    gateways: tuple[str, ...] | None,
) -> None:
    """Declare further rank slots in the files of the lead in DIR.

    Their nodes have the cores and GPUs of this machine unless CORES is given. Their
    ranks come after all others, which keep their numbers. The lead uses them after a
    restart: `burst lead check DIR` says whether that is safe. If burst.toml lists slots
    under [lead], add them there too. A copy of each changed file is kept.
    """
    wanted = [parse_slot(text, own_shape(), provider) for text in slots]
    found, kept = add_slots(directory, wanted, gateways=gateways, dry_run=dry_run)
    for added in found:
        verb = "would add" if dry_run else "added"
        click.echo(f"{verb} {added.hosts} as ranks {added.ranks}, each {added.shape}")
    for path in kept:
        click.echo(f"kept as it was: {path}")
    if not dry_run:
        click.echo(f"restart it once `burst lead check {directory}` says that is safe")


@click.command()
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@target_options
def check(directory: Path, target: Target) -> None:
    """Say what a restart from the files in DIR would change for the running lead.

    It also tests whether a broker starts with a copy of the files, as the instance's
    owner and without the network. The exit status is 1 if a restart is not safe now:
    that broker did not start, jobs run, or ranks would change. It is also 1 if the jobs
    of a queue could not run, if the intake mode does not suit the scheduler in the
    files, or if the files let other users submit and something that their jobs need is
    wrong.
    """
    with ExitStack() as stack:
        stack.enter_context(show_wait("reading the lead"))
        with owner_rights(target.settings().lead.uri):
            running = stack.enter_context(target.lead())
            running.listen(lambda: None)
            identity, view = running.identity(), running.observe()
        # Read by root, as nobody else may be allowed to read the files.
        said, safe = compare_with_running(directory, identity, view)
        found = _check_users(directory, identity, running)
    if is_flux(identity.uri):
        intake = target.settings().intake
        found += _judge_intake(directory, identity.uri, intake)
        with show_wait("starting a broker on a copy of the files"):
            found += _try_files(directory, identity, intake)
    for line in said:
        click.echo(line)
    for finding in found:
        click.echo(f"{finding.what}; {finding.advice}")
    if found or not safe:
        sys.exit(1)


def _judge_intake(directory: Path, uri: str, intake: IntakeSettings) -> list[Finding]:
    """Return why the intake mode does not suit the instance, as `setup` checks it."""
    try:
        check_intake(read_config(directory), try_running(uri)[0], intake)
    except ConfigError as error:
        return [wrong(error.what, error.advice)]
    return []


def _try_files(
    directory: Path, lead: LeadIdentity, intake: IntakeSettings
) -> list[Finding]:
    """Return what is wrong with the files when a broker starts with them."""
    tables = read_config(directory)
    result = try_broker(tables, find_flux(), _owner_for_root(lead))
    if result.resources is None:
        differ = hosts_that_differ(directory)
        return [
            wrong(
                f"a broker does not start with these files: {' | '.join(result.said)}",
                differ or "correct that, or restore the files from their copies, *.old",
            )
        ]
    ranks = result.resources.ranks - result.excluded
    made = check_queues(tables, result.resources.properties, ranks, intake)
    return [each for each in made if each.level is Level.WRONG]


def _owner_for_root(lead: LeadIdentity) -> str:
    """Return the user that is to run a broker; empty for the current user."""
    if os.geteuid() or not lead.owner_userid:
        return ""
    return user_name(lead.owner_userid)


def _check_users(directory: Path, lead: LeadIdentity, running: Lead) -> list[Finding]:
    """Return what is wrong for other users, if the files in DIR let them submit."""
    config = read_config(directory)
    if not is_multi_user(config) or not is_flux(lead.uri):
        return []
    facts = read_multi_user(lead.uri, config, running, "")
    return [each for each in check_multi_user(facts) if each.level is Level.WRONG]
