# SPDX-License-Identifier: MIT
"""Checks before the files of an instance change, for setup, adopt, unadopt and lead
check: whether the intake mode suits it, and whether jobs would never start, as their
queue is removed.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from burst.cli.progress import show_wait
from burst.config import IntakeSettings
from burst.errors import ConfigError, Denied, LeadError, LeadGone
from burst.flux.frobnicator import check_enabled
from burst.flux.owner_rights import owner_rights
from burst.flux_setup.expected_scheduler import check_compatible, find_fluxion
from burst.flux_setup.install import Change, FileStep
from burst.flux_setup.running_instance import (
    RunningInstance,
    read_instance,
    read_jobs_in,
)
from burst.flux_setup.setup_files import LEAD_PIECE, FluxDirectories
from burst.flux_setup.site_tables import is_for_ordinary_jobs, our_tables, site_files
from burst.model.jobid import JobId, format_f58


def try_running(uri: str) -> tuple[RunningInstance | None, str]:
    """Return what the instance reports; None, with a message, if it does not answer.

    Also return why an instance that may run was not read, empty for no reason.
    """
    try:
        with owner_rights(uri), show_wait("reading the lead's queues and scheduler"):
            return read_instance(uri), ""
    except (Denied, LeadError) as error:
        click.echo(f"its queues and scheduler are not known: {error}")
        gone = isinstance(error, LeadGone) or _has_no_socket(uri)
        return None, "" if gone else error.what


def _has_no_socket(uri: str) -> bool:
    """Tell whether no broker can run at this URI, also where Flux cannot be asked."""
    path = uri.removeprefix("local://")
    try:
        os.lstat(path)
    except OSError as error:
        # Another error may hide a socket.
        return path != uri and isinstance(error, FileNotFoundError)
    return False


def check_intake(
    tables: Mapping[str, Any], running: RunningInstance | None, intake: IntakeSettings
) -> None:
    """Raise ConfigError if an instance with these tables cannot use the intake mode."""
    check_enabled(tables)
    has_fluxion = running is None and find_fluxion()
    check_compatible(tables, running, intake, has_fluxion=has_fluxion)


def check_removed_queues(
    uri: str,
    instance: RunningInstance,
    places: FluxDirectories,
    wanted: Mapping[Path, str],
    steps: Sequence[FileStep],
) -> None:
    """Raise ConfigError if jobs wait in queues that `burst setup` takes away.

    `steps` are those that install the files in `wanted`; call it before they are done.
    Raises LeadError and Denied if the instance at this URI cannot be asked.
    """
    queues = _removed(instance, places, wanted, steps)
    with owner_rights(uri):
        for what, advice in jobs_in_removed(uri, queues):
            raise ConfigError(what, advice)


def check_nothing_removed(
    places: FluxDirectories, wanted: Mapping[Path, str], steps: Sequence[FileStep]
) -> None:
    """Raise ConfigError if queues are taken away, for an instance that did not answer.

    It may have its socket elsewhere than Flux looks for it.
    """
    if queues := _leaving(places, wanted, steps):
        raise ConfigError(
            f"queues are removed ({', '.join(sorted(queues))}), and no instance answers"
            " that knows whether jobs wait in them",
            "name it: --uri local://RUNDIR/local, also if it does not run now",
        )


def check_read(
    unread: str,
    places: FluxDirectories,
    wanted: Mapping[Path, str],
    steps: Sequence[FileStep],
) -> None:
    """Raise ConfigError if what a lead may use is taken away, and it was not read.

    `unread` says why. The lead may have jobs in the queues, and the frobnicator in use.
    """
    removing = not wanted and any(s.change is Change.REMOVE for s in steps)
    if removing or _leaving(places, wanted, steps):
        raise ConfigError(
            "the lead may use what is removed, and what it uses cannot be read:"
            f" {unread}",
            "mend that and run this command again; or, if the files are for another"
            " lead, name that one: --uri local://RUNDIR/local, also if it does not run"
            " now",
        )


def jobs_in_removed(uri: str, queues: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield which jobs wait in queues that are removed, and what to do about them.

    The queues are those of our piece of the configuration. Flux cannot take a job out
    of its queue (`flux update` refuses an empty name), and starts none whose queue is
    gone.
    """
    ordinary = {name for name, table in queues.items() if is_for_ordinary_jobs(table)}
    names = ", ".join(sorted(ordinary))
    waiting = _listed(read_jobs_in(uri, ordinary))
    if waiting:
        yield (
            f"ordinary jobs wait in queue {names}, which is removed: {waiting}",
            'flux queue disable --all -m "queues are removed" keeps users from'
            " submitting more; let these jobs run, or cancel them",
        )
    queued = _listed(read_jobs_in(uri, queues.keys() - ordinary))
    if queued:
        yield (
            f"jobs are in queues that are removed: {queued}",
            f"flux cancel {queued}, and have their users submit them again",
        )


def _removed(
    instance: RunningInstance,
    places: FluxDirectories,
    wanted: Mapping[Path, str],
    steps: Sequence[FileStep],
) -> dict[str, Any]:
    """Return the tables of the instance's queues that go with our piece.

    An instance with a queue of the same name may have it from elsewhere: the piece may
    be for another instance.
    """
    return {
        name: table
        for name, table in _leaving(places, wanted, steps).items()
        if instance.queues.get(name, {}).get("requires") == table.get("requires")
    }


def _leaving(
    places: FluxDirectories, wanted: Mapping[Path, str], steps: Sequence[FileStep]
) -> dict[str, Any]:
    """Return the tables of queues that the files have now, and then no more."""
    changed = {Change.UPDATE, Change.REMOVE}
    # A piece that was edited is kept.
    if not any(s.path.parent == places.config and s.change in changed for s in steps):
        return {}
    files = site_files(places)
    stay = {
        **(files.tables.get("queues", {}) if files else {}),
        **tomllib.loads(wanted.get(places.config / LEAD_PIECE, "")).get("queues", {}),
    }
    return {
        name: table
        for name, table in our_tables(places).get("queues", {}).items()
        if name not in stay
    }


def _listed(jobs: Iterable[JobId]) -> str:
    return " ".join(map(format_f58, jobs))
