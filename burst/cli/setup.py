# SPDX-License-Identifier: MIT
"""`burst setup`: installs files that Flux loads, where this Flux looks for them."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from burst.cli.setup_checks import (
    check_intake,
    check_nothing_removed,
    check_read,
    check_removed_queues,
    try_running,
)
from burst.cli.target import Target, target_options
from burst.config import Mode, Settings
from burst.flux.frobnicator import NAME as FROBNICATOR
from burst.flux_setup.config_files import ConfigFiles
from burst.flux_setup.install import (
    Change,
    FileStep,
    apply_files,
    files_of_lead,
    plan_files,
)
from burst.flux_setup.running_instance import RunningInstance
from burst.flux_setup.setup_files import (
    LEAD_PIECE,
    FluxDirectories,
    IntakeChoice,
    Policy,
    check_flux_version,
    make_files,
    system_directories,
    user_directories,
)
from burst.flux_setup.site_tables import (
    SiteTables,
    check_frobnicator_unused,
    check_names,
    check_no_link,
    files_after_ours,
    loses_last_queue,
    our_tables,
    queues_of_others,
    site_files,
    site_tables,
)
from burst.lead_setup.setup_place import directory_places
from burst.lead_setup.site_files import read_record
from burst.provider_type import on_own_host
from burst.runtime.connect import is_flux

_LOCAL_QUEUE = "batch"


@click.command()
@click.option("--user", "where", flag_value="user", help="Install for this user.")
@click.option(
    "--system",
    "where",
    flag_value="system",
    help="Install into Flux's own directories.",
)
@click.option(
    "--dir",
    "directory",
    type=click.Path(path_type=Path, file_okay=False),
    help="Install everything into this directory.",
)
@click.option(
    "--mode",
    type=click.Choice(["hold", "queue", "scheduler"]),
    help="Intake mode, see docs/intake.md. Default: [intake] mode of the settings.",
)
@click.option(
    "--policy",
    type=click.Choice(["fifo", "backfill"]),
    default="fifo",
    show_default=True,
    help="Queue policy of sched-burst, in mode scheduler.",
)
@click.option("--remove", "removing", is_flag=True, help="Remove the installed files.")
@click.option(
    "--dry-run", is_flag=True, help="Say what would change, and change nothing."
)
@target_options
def setup(
    where: str | None,
    directory: Path | None,
    removing: bool,
    dry_run: bool,
    target: Target,
    **asked: Any,
) -> None:
    """Install the files that Flux loads for burst, by default for this user.

    The files are the command-line plugin (flux submit --burst), the frobnicator that
    keeps other jobs off lent nodes, the format of flux jobs -o burst, and a piece of
    the lead's configuration with the queues or the scheduler of the mode. Each change
    is shown. --remove removes exactly the files that were written. Refuses while jobs
    of the running lead wait in a queue that is removed, and to remove what a lead may
    use that cannot be asked. If the files are for an instance that was adopted, asks
    that one, unless --uri or the settings name another.
    """
    if where and directory:
        raise click.UsageError("--dir cannot be used with --user or --system")
    directories = _directories(where, directory)
    system = where == "system"
    settings = target.settings()
    uri = settings.lead.uri or _adopted(directories)
    uri = uri or os.environ.get("FLUX_URI", "")
    instance, unread = _running(uri, system)
    choice = None if removing else _choice(directories, settings, instance, **asked)
    wanted = _wanted(directories, choice) if choice else {}
    steps = plan_files(directories.own, wanted)
    _show(steps)
    check_frobnicator_unused(directories.config, steps)
    if instance is not None:
        if instance.place:
            check_no_link(Path(instance.place), steps)
        check_removed_queues(uri, instance, directories, wanted, steps)
    elif unread:
        check_read(unread, directories, wanted, steps)
    elif system and not uri:
        check_nothing_removed(directories, wanted, steps)
    # Before our piece is gone, which tells of the queues.
    last_queues = _loses_last_queue(directories, instance)
    if dry_run:
        return
    # The user of the brokers reads what root installs.
    for_all = system or (directory is not None and not os.geteuid())
    apply_files(directories.own, wanted, for_all=for_all)
    if choice is not None:
        _print(_how_to_go_on(directories, choice, instance))
    elif _removes_used(instance, steps):
        _print(_how_to_drop_frobnicator(directories, instance, last_queues=last_queues))


def _directories(where: str | None, directory: Path | None) -> FluxDirectories:
    if directory is not None:
        return directory_places(directory)
    return system_directories() if where == "system" else user_directories()


def _choice(
    places: FluxDirectories,
    settings: Settings,
    instance: RunningInstance | None,
    mode: Mode | None,
    policy: Policy,
) -> IntakeChoice:
    """Return what the options ask for. Raises an error if that is not possible."""
    intake = settings.intake
    if mode:
        intake = msgspec.structs.replace(intake, mode=mode)
    check_flux_version(intake)
    files = site_files(places)
    if files is not None and files.files:
        check_intake(files.tables, instance, intake)
    elif instance is not None:
        check_intake(instance.config, instance, intake)
    site = _site(places, files, instance)
    check_names(site, intake)
    tables = settings.providers.values()
    shares_host = any(on_own_host(table.type) for table in tables)
    return IntakeChoice(
        intake=intake,
        policy=policy,
        share_users=settings.plan.share_users,
        local_queue="" if site.queues else _LOCAL_QUEUE,
        plugins=site.plugins,
        limits=site.default_limits,
        verify=site.verify if shares_host else {},
    )


def _wanted(directories: FluxDirectories, choice: IntakeChoice) -> dict[Path, str]:
    """Return the files of the mode, and those that `burst lead init` added."""
    mode: Mode = "scheduler"  # It has all that the other modes have.
    most = msgspec.structs.replace(choice.intake, mode=mode)
    of_setup = make_files(directories, msgspec.structs.replace(choice, intake=most))
    return {
        **files_of_lead(directories.own, of_setup),
        **make_files(directories, choice),
    }


def _adopted(directories: FluxDirectories) -> str:
    """Return the URI that `burst lead adopt` noted; empty if it did not.

    It may have been given another --rundir than Flux has.
    """
    record = read_record(directories.config)
    return record.uri if record is not None else ""


def _running(uri: str, system: bool) -> tuple[RunningInstance | None, str]:
    """Return what the instance reports; None, with a message, if that is not known.

    Also return why that is not known of an instance that may run; else empty. With
    `system`, the files are for the host's own instance: the one at this URI, or Flux's
    default.
    """
    if not (uri or system) or not is_flux(uri):
        click.echo(
            "no running Flux was found, so its queues and scheduler are not known"
        )
        return None, ""
    return try_running(uri)


def _site(
    places: FluxDirectories, files: ConfigFiles | None, instance: RunningInstance | None
) -> SiteTables:
    """Return the site's tables: from its files, if our piece is put beside them.

    The files take effect when the instance starts again, and exist before it runs.
    """
    if files is not None and files.files:
        for line in _replaced_by(files):
            click.echo(line)
        return site_tables(files.tables, {})
    ours = our_tables(places)
    return site_tables(instance.config, ours) if instance else SiteTables()


def _replaced_by(files: ConfigFiles) -> Iterator[str]:
    for path in files_after_ours(files):
        yield (
            f"{path} comes after {LEAD_PIECE} and has a list [ingest.frobnicator]"
            " plugins of its own, which Flux takes in place of ours: rename it, or add"
            " the path of frob-burst.py to the end of its list"
        )


def _show(steps: Sequence[FileStep]) -> None:
    for step in steps:
        click.echo(f"{step.change.value:9}  {step.path}")
    if all(step.change is Change.SAME for step in steps):
        click.echo("nothing changes")


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        click.echo(line)


def _removes_used(instance: RunningInstance | None, steps: Sequence[FileStep]) -> bool:
    """Tell whether the instance has a frobnicator in use that is removed.

    One that was not read may have it.
    """
    gone = {each.path.resolve() for each in steps if each.change is Change.REMOVE}
    if instance is None:
        return any(path.name == FROBNICATOR for path in gone)
    return any(Path(name).resolve() in gone for name in instance.frobnicators)


def _loses_last_queue(
    directories: FluxDirectories, instance: RunningInstance | None
) -> bool:
    """Tell whether the instance has no named queues without our piece."""
    ours, running = our_tables(directories), instance.queues if instance else {}
    files = site_files(directories)
    if files and files.files:
        return loses_last_queue(files.tables.get("queues", {}), ours, running)
    # The site's own configuration is elsewhere, if it has any.
    return loses_last_queue(queues_of_others(ours, running), ours, running)


def _how_to_drop_frobnicator(
    directories: FluxDirectories,
    instance: RunningInstance | None,
    *,
    last_queues: bool,
) -> Iterator[str]:
    """Yield how an instance goes on whose frobnicator was removed.

    Its brokers look for it when they start a process that checks jobs, which ends when
    it has had nothing to do for some seconds. `instance` is None if it was not read:
    then it may not run, or not have the frobnicator. `last_queues` tells whether no
    named queues are left: see `burst.lead_setup.unadopt_lead.next_commands`.
    """
    if instance is not None:
        yield "\nThe running lead still has burst's frobnicator in its configuration,"
        yield "and refuses each job that is submitted until it has none."
    else:
        yield "\nIf a lead runs that has burst's frobnicator in its configuration, it"
        yield "refuses each job that is submitted until it has none."
    if directories.environment:
        yield "First take [ingest.frobnicator] out of the lead's own file if it is"
        yield "there, as in broker.toml of `burst lead init`."
    if last_queues:
        yield "No named queues are left. Flux accepts that only at a restart: do not"
        yield "have it reload its configuration, and restart it now."
    else:
        yield "As its owner, have it read its configuration again now:\n"
        yield "    flux config reload --follower-noop"


def _how_to_go_on(
    directories: FluxDirectories, choice: IntakeChoice, instance: RunningInstance | None
) -> Iterator[str]:
    mode = choice.intake.mode
    if directories.environment:
        yield "\nSet this in the environment of users and of the lead's broker:\n"
        for name, value in directories.environment.items():
            yield f"    export {name}={shlex.quote(value)}"
    else:
        yield "\nThe other hosts of the instance, and those where users log in, need"
        yield "these files, too."
    piece = directories.config / LEAD_PIECE
    yield "\nThe lead's broker reads its piece of the configuration from here"
    if all(path == piece for path in directories.config.glob("*.toml")):
        yield "(put it beside broker.toml where its --config-path is a directory, or"
        yield "merge it)"
    yield ""
    yield f"    {piece}"
    yield "\nFlux reads it when the lead is started (flux config reload is not enough"
    yield f'for a scheduler). In burst.toml: [intake] mode = "{mode}"'
    if mode == "queue" and not choice.local_queue:
        yield "\nThe site's own queues stay as they are."
        ours = (choice.intake.queue, choice.intake.ready)
        if instance is not None and instance.known.unknown_queues(ours):
            yield "\nUntil then, do not have the running lead reload its configuration:"
            yield "Fluxion fails jobs of a queue that it was not started with."
    if mode == "queue" and choice.local_queue:
        yield "\nUntil then, do not have a running lead reload its configuration: it"
        yield "would get the queues at once, stopped, and Fluxion fails jobs of a queue"
        yield "that it was not started with."
        yield "\nFlux creates named queues stopped. When the lead is up, start the one"
        yield "for jobs that do not burst:\n"
        yield f"    flux queue start --queue={choice.local_queue}"
