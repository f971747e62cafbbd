# SPDX-License-Identifier: MIT
"""Reads the file of an ensemble, and says on which line what is wrong, what is right.

TOML, or YAML in the form of the Ensemble Operator's Custom Resource; both have the same
keys below `spec`.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from burst.config.convert import Seconds, Table
from burst_ensemble.config.jobs import JobReader
from burst_ensemble.config.members import MemberDefaults, MemberReader
from burst_ensemble.config.source import (
    FileSource,
    KeyPath,
    read_source,
    with_durations,
)
from burst_ensemble.config.spec import (
    NAME_OF_MEMBER,
    EnsembleLimits,
    EnsembleSpec,
    JobSpec,
    MemberSpec,
)


class EnsembleFile(msgspec.Struct, frozen=True):
    """An ensemble, and where in its file everything is."""

    spec: EnsembleSpec
    source: FileSource
    places: Mapping[str, KeyPath]
    """Of each member its table."""
    options: Mapping[tuple[str, int], KeyPath]
    """Of each member's algorithms, by their number, the table of options."""


class FileTable(Table, frozen=True, rename="camel"):
    """The top of an ensemble's file."""

    name: str = ""
    """What commands call the ensemble. It must be set."""
    check_seconds: Seconds = Seconds(10)
    """The time from one check to the next, a number of seconds. At a check the
    algorithms decide."""
    grow_window: Seconds = Seconds(30)
    """The least time from one change of a member's size to its next growth."""
    shrink_window: Seconds = Seconds(60)
    """The least time from one change of a member's size to its next shrinking."""
    members: Any = None
    jobs: Any = None
    algorithm: Any = None
    """Of members that have none of their own, as in `[[members]]`; default:
    `workload-demand`."""
    limits: Any = None
    custom: Any = None


class _Command(Table, frozen=True):
    command: tuple[str, ...]


def load_ensemble(path: Path, providers: Collection[str]) -> EnsembleFile:
    """Return the ensemble in a file, checked but for the algorithms' options.

    `providers` are the tables `[providers.NAME]` of the settings that are enabled.
    Raises ConfigError with file, line, and what would be right.
    """
    source = read_source(path)
    tables, root = _unwrapped(source)
    _check_finite(source, tables, root)
    top = _read_top(source, tables, root)
    reader = MemberReader(source, path.parent, providers)
    algorithms = reader.read_algorithms(top.algorithm, (*root, "algorithm"))
    defaults = MemberDefaults(top.name, top.grow_window, top.shrink_window, algorithms)
    found = reader.read(top.members, (*root, "members"), defaults)
    own = [each.get("algorithm") is not None for each in top.members]
    if top.algorithm is not None and all(own):
        where = source.at(*root, "algorithm")
        reader.notes.append(f"{where}: not used: each member has its own")
    most = max(member.max for member in found)
    shared = JobReader(source, path.parent).read(top.jobs, (*root, "jobs"), most)
    _check_shared(source, found, shared, (*root, "jobs"))
    spec = EnsembleSpec(
        name=top.name,
        members=tuple(found),
        jobs=shared,
        limits=_read_limits(source, top.limits, (*root, "limits"), found),
        check=top.check_seconds,
        custom=_read_custom(source, top.custom, (*root, "custom")),
        directory=str(path.parent.absolute()),
        notes=tuple(reader.notes),
    )
    return EnsembleFile(spec, source, reader.places, reader.options)


def _read_top(
    source: FileSource, tables: Mapping[str, Any], root: KeyPath
) -> FileTable:
    top = source.convert(FileTable, with_durations(tables, ("checkSeconds",)), root)
    if not NAME_OF_MEMBER.fullmatch(top.name):
        raise source.wrong(
            (*root, "name"),
            f"{top.name!r} is not a name for an ensemble",
            "use at most 40 lower-case letters, digits and dashes",
        )
    if not 0.1 <= top.check_seconds <= 3600:
        raise source.wrong(
            (*root, "checkSeconds"), "out of range", "from 0.1 to 3600 seconds"
        )
    return top


def _unwrapped(source: FileSource) -> tuple[dict[str, Any], KeyPath]:
    """Return the tables and where they are: in `spec` of a Custom Resource."""
    tables = dict(source.tables)
    if "spec" not in tables:
        return tables, ()
    spec = tables["spec"]
    kind = tables.get("kind")
    if kind not in (None, "Ensemble") or not isinstance(spec, Mapping):
        raise source.wrong(("kind",), f"{kind!r} is no ensemble", "kind: Ensemble")
    for key in tables:
        if key not in ("apiVersion", "kind", "metadata", "spec"):
            raise source.wrong((key,), "no such key", "put it below spec")
    metadata = tables.get("metadata")
    name = metadata.get("name", "") if isinstance(metadata, Mapping) else ""
    return {"name": name, **spec}, ("spec",)


def _check_finite(source: FileSource, value: Any, path: KeyPath) -> None:
    """Refuse numbers that JSON does not have: an ensemble is kept as JSON."""
    if isinstance(value, float) and not math.isfinite(value):
        raise source.wrong(
            path,
            f"{value} is not a finite number",
            'leave it out; durations may be "inf"',
        )
    if isinstance(value, dict):
        for key, each in value.items():
            _check_finite(source, each, (*path, key))
    elif isinstance(value, list):
        for place, each in enumerate(value):
            _check_finite(source, each, (*path, place))


def _read_limits(
    source: FileSource, found: Any, path: KeyPath, members: Sequence[MemberSpec]
) -> EnsembleLimits:
    table = {} if found is None else with_durations(found, ("time",))
    limits = source.convert(EnsembleLimits, table, path)
    for key in ("nodes", "money", "time"):
        if not getattr(limits, key) >= 0:
            raise source.wrong((*path, key), "out of range", "at least 0")
    if not limits.time:
        raise source.wrong(
            (*path, "time"),
            "all would end at once",
            "leave it out for no limit",
        )
    least = sum(member.min for member in members)
    if limits.nodes and limits.nodes < least:
        raise source.wrong(
            (*path, "nodes"),
            f"{limits.nodes} is less than the members' min together",
            f"at least {least}",
        )
    return limits


def _check_shared(
    source: FileSource,
    members: Sequence[MemberSpec],
    shared: Sequence[JobSpec],
    path: KeyPath,
) -> None:
    """Refuse a shared name that a member has, too: which is meant?"""
    for member in members:
        own = {job.name for job in member.jobs}
        for place, job in enumerate(shared):
            if job.name in own:
                raise source.wrong(
                    (*path, place, "name"),
                    f"member {member.name} has jobs {job.name}, too",
                    "rename one of them",
                )


def _read_custom(
    source: FileSource, found: Any, path: KeyPath
) -> dict[str, tuple[str, ...]]:
    if found is None:
        return {}
    if not isinstance(found, Mapping):
        raise source.wrong(
            path, "expected a table of commands", 'such as save = ["save.sh"]'
        )
    return {
        str(name): _read_command(source, command, (*path, name))
        for name, command in found.items()
    }


def _read_command(source: FileSource, command: Any, path: KeyPath) -> tuple[str, ...]:
    if isinstance(command, str):
        try:
            words = tuple(shlex.split(command))
        except ValueError as error:
            raise source.wrong(path, f"{command!r}: {error}") from error
    else:
        words = source.convert(_Command, {"command": command}, path).command
    if not words or not words[0] or any("\0" in word for word in words):
        raise source.wrong(path, "is no command", 'such as ["save.sh", "--all"]')
    return words
