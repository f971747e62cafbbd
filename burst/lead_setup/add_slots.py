# SPDX-License-Identifier: MIT
"""Adds rank slots to a lead's files, and compares the files with the running lead.

New ranks come after all others, so that existing ranks keep their numbers: drained
ranks and our records stay valid over the restart that is needed.
"""

from __future__ import annotations

import itertools
import shutil
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from burst.errors import ConfigError
from burst.kits.atomic_file import write_atomically
from burst.lead_setup.gateways import with_gateways
from burst.lead_setup.lead_files import slot_entries, with_group
from burst.lead_setup.lead_plan import DEFAULT_PORT, PlannedSlot, resolve_slots
from burst.model.lead import LeadIdentity, LeadView
from burst.model.ranks import format_hostlist, format_idset, parse_hostlist
from burst.model.resource_set import ResourceSet, decode_resource_set


class AddedSlot(msgspec.Struct, frozen=True):
    """A rank slot that was added, or would be."""

    hosts: str
    ranks: str
    shape: str


def add_slots(
    directory: Path,
    slots: Sequence[PlannedSlot],
    *,
    gateways: Sequence[str] | None = None,
    dry_run: bool = False,
) -> tuple[list[AddedSlot], list[Path]]:
    """Declare further slots in the lead's broker.toml and R. Raises ConfigError.

    With `gateways` their hosts join through each slot's first: at these addresses, or
    without any at the names of these hosts.

    Comments and the order of keys in broker.toml stay. Returns what was added, and
    where both files are kept as they were; with `dry_run`, what would be added.
    """
    # Only this command needs it, and all of them import this module.
    import tomlkit  # noqa: PLC0415

    config, resources = directory / "broker.toml", directory / "R"
    tables = _read(config, tomlkit.parse)
    r: ResourceSet = _read(resources, decode_resource_set)
    known = declared_hosts(tables)
    port = tables["bootstrap"].get("default_port", DEFAULT_PORT)
    slots = with_gateways(slots, gateways or (), int(port))
    groups = resolve_slots(known, slots, None if gateways is None else int(port))
    added = []
    rank = len(known)
    for group in groups:
        ranks = range(rank, rank + len(group.names))
        rank = ranks.stop
        tables["bootstrap"]["hosts"].extend(slot_entries(group))
        if "[" in group.gateway:
            tables["bootstrap"]["enable_ipv6"] = True
        r = with_group(r, group, ranks)
        added.append(
            AddedSlot(
                format_hostlist(group.names), format_idset(ranks), str(group.shape)
            )
        )
    kept = []
    if not dry_run:
        kept = [_keep(path) for path in (config, resources)]
        # R last: a broker that finds more hosts than R has none the worse for it.
        write_atomically(config, tomlkit.dumps(tables))
        write_atomically(resources, r.encode() + "\n")
    return added, kept


def _keep(path: Path) -> Path:
    """Copy a file before it is changed, and return the copy. Raises ConfigError.

    To its name with `.old`, or `.old.2` and so on: an earlier copy stays.
    """
    numbers = itertools.count(2)
    copy = path.with_name(f"{path.name}.old")
    while copy.exists():
        copy = path.with_name(f"{path.name}.old.{next(numbers)}")
    try:
        shutil.copy2(path, copy)
    except OSError as error:
        raise ConfigError(
            f"{copy}: cannot be written: {error.strerror}",
            "nothing was changed; run it as a user who may write there",
        ) from error
    return copy


def declared_hosts(tables: dict[str, Any]) -> tuple[str, ...]:
    """Return the hosts of `[bootstrap]`, in the order of ranks. Raises ConfigError."""
    try:
        entries = [entry["host"] for entry in tables["bootstrap"]["hosts"]]
        names = [name for entry in entries for name in parse_hostlist(entry)]
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"[bootstrap] hosts cannot be read: {error!r}") from error
    # A host may have several entries; the first place is its rank.
    return tuple(dict.fromkeys(names))


def compare_with_running(
    directory: Path, identity: LeadIdentity, view: LeadView
) -> tuple[list[str], bool]:
    """Return what a restart from these files would change, and whether it is safe.

    It is safe where nothing is allocated and every rank keeps its number.
    """
    tables = _read(directory / "broker.toml", tomllib.loads)
    files, runs = declared_hosts(tables), identity.hosts
    same = min(len(files), len(runs))
    if files == runs:
        return ["the lead runs with the hosts of its files; no restart is needed"], True
    said = []
    moved = files[:same] != runs[:same] or len(files) < len(runs)
    if moved:
        said.append(
            "the files name other hosts for ranks that the lead has: after a restart,"
            " records of bursts and drained ranks would be about other hosts; restore"
            " the order first"
        )
    else:
        new = format_hostlist(files[same:])
        said.append(
            f"a restart adds {new} as ranks"
            f" {format_idset(range(same, len(files)))}; all others keep theirs"
        )
    if view.allocated:
        said.append(
            f"jobs run on ranks {format_idset(view.allocated)}, and would end with the"
            " broker: flux queue stop, and wait until flux jobs shows none running;"
            " those that wait are kept"
        )
    return said, not moved and not view.allocated


def _read(path: Path, parse: Callable[[str], Any]) -> Any:
    try:
        return parse(path.read_text())
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{path}: cannot be read: {error}",
            "name the directory that `burst lead init` wrote",
        ) from error
