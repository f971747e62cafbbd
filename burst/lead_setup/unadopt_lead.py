# SPDX-License-Identifier: MIT
"""Undoes what `burst lead adopt` and `burst setup` did to an instance.

It uses their lists (`site_files`, `flux_setup.install`), and also works if one of these
commands, or this one, was interrupted.
"""

from __future__ import annotations

import enum
import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from burst.errors import ConfigError
from burst.flux_setup.config_files import ConfigFile, ConfigFiles, read_tables
from burst.flux_setup.install import Change, FileStep, apply_files, plan_files
from burst.flux_setup.setup_files import LEAD_PIECE
from burst.flux_setup.site_tables import check_frobnicator_unused
from burst.lead_setup.add_slots import declared_hosts
from burst.lead_setup.intake_files import DAEMON_UNIT
from burst.lead_setup.lead_config import read_lead, read_resources, shapes_of_entries
from burst.lead_setup.site_files import (
    AdoptionRecord,
    ChangedFile,
    check_places,
    digest,
    read_record,
    record_path,
    rewrite,
)
from burst.lead_setup.system_lead import UNITS
from burst.lead_setup.system_units import USUAL_URI
from burst.model.ranks import format_hostlist, parse_hostlist


class Undo(enum.Enum):
    """What happens to a file."""

    RESTORE = "restore"
    """It is the site's, and gets its old content back."""
    REMOVE = "remove"
    KEEP = "keep"
    """It stays, as others have changed it since then."""


class UndoStep(msgspec.Struct, frozen=True):
    """What happens, or would happen, to one file."""

    undo: Undo
    path: Path


class UndoPlan(msgspec.Struct, frozen=True):
    """All steps that undo the adoption, in this order."""

    place: Path
    setup: Path
    """The directory with the list of what `burst setup` wrote."""
    record: AdoptionRecord
    steps: tuple[UndoStep, ...]


def plan_unadopt(
    place: Path, setup: Path, units: Path = UNITS, *, apart: bool = False
) -> UndoPlan:
    """Return the steps after which the files of the site are as they were.

    `place` is the instance's configuration, `setup` the directory with the list of
    `burst setup`, `units` where root installed the daemon's unit; with `apart`, another
    unit there is for another instance of the host. Raises ConfigError if the instance
    was not adopted, if others have since changed a file so that the additions cannot be
    taken out, or if a file names a frobnicator of ours.
    """
    record = read_record(place)
    if record is None:
        raise ConfigError(
            f"{record_path(place)}: not there, so `burst lead adopt` did nothing here",
            "name the configuration that adopt was given; what an earlier version added"
            " must be removed by hand, as in docs/upgrade.md",
        )
    restored = list(_to_restore(record))
    _check_slots_gone(place, record, restored)
    own = list(_with_other_piece(place, plan_files(setup, {})))
    check_frobnicator_unused(place, own)
    steps = [
        *(UndoStep(_undo(each.change), each.path) for each in own),
        # The file that declares resources was changed last, and is restored first.
        *(UndoStep(Undo.RESTORE, path) for path in reversed(restored)),
        *_written(record, units, apart=apart),
        *_copies(record),
        UndoStep(Undo.REMOVE, record_path(place)),
    ]
    return UndoPlan(place, setup, record, tuple(steps))


def apply_unadopt(plan: UndoPlan) -> None:
    """Do all steps. Raises ConfigError; the call can be repeated after that."""
    check_places(step.path for step in plan.steps)
    removed = [step.path for step in plan.steps if step.undo is Undo.REMOVE]
    # First, as Flux cannot read a directory with a link to a file that is gone.
    _remove(path for path in removed if path.name == LEAD_PIECE)
    apply_files(plan.setup, {})
    for step in plan.steps:
        if step.undo is Undo.RESTORE:
            rewrite(step.path, _original(plan.record.changed[str(step.path)]))
    _remove(removed)


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise ConfigError(
                f"{path}: cannot be removed: {error.strerror}", "run it as root"
            ) from error


def next_commands(owner: str, uri: str, *, apart: bool) -> Iterator[str]:
    """Yield the commands that root runs after that, in this order.

    `uri` is that of the instance; empty for what Flux finds by itself. `apart` tells
    that it is not the host's own, so that its unit is unknown. `owner` is the owner of
    the instance if it runs and can go on without our files until it is restarted, else
    empty. It cannot go on if its last named queues are removed: Fluxion would deny each
    job, as it has no queue for jobs without a queue until it is loaded again.
    """
    flux = "flux"
    if uri not in {"", USUAL_URI}:
        flux = f"env FLUX_URI={shlex.quote(uri)} flux"
    if owner:
        # The running brokers would still look for the frobnicator, which is gone. All
        # have the configuration of rank 0, and no other rank may reload it.
        yield f"runuser -u {owner} -- {flux} config reload --follower-noop"
    if apart:
        yield "# here, restart the instance by its unit"
    else:
        yield "systemctl daemon-reload"
        yield "systemctl restart flux"
    yield f"{flux} kvs unlink -Rf burst"


def _with_other_piece(place: Path, steps: Sequence[FileStep]) -> Iterator[FileStep]:
    """Yield these steps, after one for a link to our piece or a copy of it.

    `burst setup` says to put the piece beside the files that the broker reads.
    """
    beside = record_path(place).with_name(LEAD_PIECE)
    pieces = [
        each.path
        for each in steps
        if each.path.name == LEAD_PIECE and each.change is Change.REMOVE
    ]
    is_other = beside.is_symlink() or beside.resolve() not in {
        piece.resolve() for piece in pieces
    }
    found = _digest_of(beside)
    if beside not in pieces and is_other and found in map(_digest_of, pieces) and found:
        yield FileStep(Change.REMOVE, beside)
    yield from steps


def _undo(change: Change) -> Undo:
    return Undo.REMOVE if change is Change.REMOVE else Undo.KEEP


def _to_restore(record: AdoptionRecord) -> Iterator[Path]:
    """Yield the files that have what was added, and no other change."""
    for name, file in record.changed.items():
        if _digest_of(Path(name)) in set(file.after) - {file.before}:
            _original(file)
            yield Path(name)


def _check_slots_gone(
    place: Path, record: AdoptionRecord, restored: Sequence[Path]
) -> None:
    """Raise ConfigError if a file that others changed still has what was added."""
    files = read_lead(place).files
    after = ConfigFiles(
        files.place,
        tuple(
            ConfigFile(each.path, _tables(record, each, restored))
            for each in files.files
        ),
    )
    slots = {name for each in record.hosts for name in parse_hostlist(each)}
    entries = after.tables.get("resource", {}).get("config", ())
    known = [*declared_hosts(after.tables), *shapes_of_entries(entries)]
    changed = [
        name
        for name, file in record.changed.items()
        if _digest_of(Path(name)) not in {file.before, *file.after}
    ]
    odd = []
    for path in map(Path, changed):
        if path.suffix != ".toml":
            try:
                # The site may have made R anew, with other nodes of its own.
                known += read_resources(path).hosts
            except ConfigError:
                odd.append(path)
    left = [host for host in dict.fromkeys(known) if host in slots]
    if left or odd:
        what = f", still with {format_hostlist(left)}" if left else ""
        names = ", ".join(changed) or str(place)
        raise ConfigError(
            f"{names}: changed by others since `burst lead adopt`{what}; it cannot be"
            " restored",
            "remove by hand what adopt added to it; the first copy beside it, *.old, is"
            " the file before that. Then run this command again",
        )


def _tables(
    record: AdoptionRecord, file: ConfigFile, restored: Iterable[Path]
) -> dict[str, object]:
    if file.path in restored:
        return read_tables(Path(record.changed[str(file.path)].copies[0]))
    return dict(file.tables)


def _original(file: ChangedFile) -> bytes:
    """Return a file's old content. Raises ConfigError if its copy has another."""
    path = Path(file.copies[0])
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigError(
            f"{path}: cannot be read: {error.strerror}",
            "it is the site's file as it was before burst: restore it from a backup",
        ) from error
    if digest(content) != file.before:
        raise ConfigError(
            f"{path}: changed since `burst lead adopt` kept it",
            "it is the site's file as it was before burst: restore it from a backup",
        )
    return content


def _written(record: AdoptionRecord, units: Path, *, apart: bool) -> Iterator[UndoStep]:
    """Yield the steps for the daemon's settings and unit, and the installed unit."""
    known = dict(record.written)
    unit = next((name for name in known if Path(name).name == DAEMON_UNIT), "")
    installed = units / DAEMON_UNIT
    if unit and not (apart and _digest_of(installed) != known[unit]):
        # The link of a unit that is still enabled goes first, while it leads to it.
        wanted_by = units / "flux.service.wants" / DAEMON_UNIT
        known |= {str(path): known[unit] for path in (wanted_by, installed)}
    for name, of_ours in known.items():
        found = _digest_of(Path(name))
        if found:
            # The installed unit may be one that was written before.
            ours = found in (of_ours, *record.earlier)
            yield UndoStep(Undo.REMOVE if ours else Undo.KEEP, Path(name))


def _copies(record: AdoptionRecord) -> Iterator[UndoStep]:
    """Yield the steps for the copies; one with a change of others stays."""
    for file in record.changed.values():
        ours = {file.before, *file.after}
        for path in map(Path, file.copies):
            found = _digest_of(path)
            if found:
                yield UndoStep(Undo.REMOVE if found in ours else Undo.KEEP, path)


def _digest_of(path: Path) -> str:
    """Return the digest of a file; empty if there is none. Raises ConfigError."""
    try:
        return digest(path.read_bytes())
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise ConfigError(
            f"{path}: cannot be read: {error.strerror}", "run it as root"
        ) from error
