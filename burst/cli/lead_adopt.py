# SPDX-License-Identifier: MIT
"""`burst lead adopt`: makes an existing system instance able to burst."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import msgspec

from burst.cli.lead_multi_user import place_options, warn_of_program
from burst.cli.progress import show_wait
from burst.cli.setup_checks import check_intake, try_running
from burst.cli.target import CONFIG_PLACE
from burst.config import IntakeSettings, Mode, load
from burst.errors import ConfigError
from burst.flux_setup.setup_files import FluxDirectories, check_flux_version
from burst.lead_setup.adopt_lead import (
    AdoptedLead,
    AdoptRequest,
    adopt_lead,
    next_commands,
)
from burst.lead_setup.intake_files import DAEMON_UNIT
from burst.lead_setup.lead_config import read_config
from burst.lead_setup.lead_plan import parse_slot, slot_provider
from burst.lead_setup.own_host import own_shape
from burst.lead_setup.setup_place import is_apart, setup_places
from burst.lead_setup.system_lead import find_owner
from burst.provider_type import usual_type

_PATH = click.Path(path_type=Path)


@click.command()
@click.argument("directory", metavar="CONFDIR", type=CONFIG_PLACE)
@click.option(
    "--slot",
    "slots",
    multiple=True,
    required=True,
    metavar="HOSTLIST[:CORES[:GPUS]]",
    help="A rank slot; may be repeated. Without CORES, its nodes have the cores and"
    " GPUs of this machine.",
)
@click.option(
    "--provider",
    default=usual_type(),
    show_default=True,
    metavar="TYPE",
    help="Type of the provider to write into the settings: none, or one that is"
    " installed.",
)
@click.option(
    "--mode",
    type=click.Choice(["hold", "queue", "scheduler"]),
    default="scheduler",
    show_default=True,
    help="Intake mode, see docs/intake.md.",
)
@click.option(
    "--settings",
    type=_PATH,
    default="/etc/flux/burst.toml",
    show_default=True,
    help="Settings file of the daemon, written if it does not exist. burst.service is"
    " written beside it.",
)
@place_options
def adopt(
    directory: Path,
    slots: tuple[str, ...],
    provider: str,
    mode: Mode,
    settings: Path,
    **places: Any,
) -> None:
    """Add what bursts need to a system instance whose configuration is in CONFDIR.

    CONFDIR is a directory such as /etc/flux/system/conf.d, or one file. Adds the slots
    to [bootstrap] hosts and to [[resource.config]] or R, after all other ranks, changes
    nothing else there, and keeps a copy of each changed file. Also writes the daemon's
    settings and unit, and prints the commands that root has to run next. The changes
    take effect when the instance is restarted.
    """
    check_flux_version(IntakeSettings(mode=mode))
    shape, name = own_shape(), slot_provider(provider)
    asked = AdoptRequest(
        config=directory,
        settings=settings.absolute(),
        slots=tuple(parse_slot(text, shape, name) for text in slots),
        provider=provider,
        mode=mode,
        places=find_owner(
            places["user"], places["rundir"].absolute(), places["statedir"].absolute()
        ),
    )
    for line in warn_of_program(asked.places.user):
        click.echo(line, err=True)
    _check_intake(asked)
    files = _files_of_setup(asked)
    with show_wait("writing the files"):
        found = adopt_lead(asked)
    apart = files.own if is_apart(files) else None
    lines = [*_tell_of_files(found), *(_tell_of_units(asked) if apart else ())]
    lines.append("\nAs root:\n")
    lines += [f"    {shlex.join(each)}" for each in next_commands(asked, apart)]
    for line in lines:
        click.echo(line)


def _files_of_setup(asked: AdoptRequest) -> FluxDirectories:
    """Return where `burst setup` will have its files. Raises ConfigError."""
    files = setup_places(asked.config, asked.places.uri)
    if is_apart(files) and not asked.config.is_dir():
        raise ConfigError(
            f"{asked.config}: is a file, and `burst setup` puts another one beside it"
            " that the broker has to read too",
            "move it into a directory of its own, start the instance with --config-path"
            " and that directory, and name the directory here",
        )
    return files


def _tell_of_files(found: AdoptedLead) -> Iterator[str]:
    """Yield what was written, changed and kept."""
    for added in found.added:
        yield f"added {added.hosts} as ranks {added.ranks}, each {added.shape}"
    yield from (f"kept as it was: {path}" for path in found.copies)
    yield from (f"wrote {path}" for path in found.written)
    yield from (f"kept {path}" for path in found.kept)
    yield from (f"    {line}" for line in found.unlike)
    if found.fill_in:
        yield found.fill_in


def _tell_of_units(asked: AdoptRequest) -> Iterator[str]:
    """Yield what to do with the units of an instance that is not the host's own."""
    unit = asked.settings.with_name(DAEMON_UNIT)
    yield "\nUnless flux.service starts this instance, install"
    yield f"{unit} by another name, and name there the unit that starts"
    yield "it in place of flux.service. Restart that unit once `burst lead check`"
    yield "below says that this is safe, and start the daemon before the doctor."
    yield "If flux.service starts it, install the unit as it is, and restart flux."


def _check_intake(asked: AdoptRequest) -> None:
    """Raise ConfigError if the mode does not suit the instance."""
    there = asked.settings.exists()
    intake = load(asked.settings).intake if there else IntakeSettings()
    check_intake(
        read_config(asked.config),
        try_running(asked.places.uri)[0],
        msgspec.structs.replace(intake, mode=asked.mode),
    )
