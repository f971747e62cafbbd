# SPDX-License-Identifier: MIT
"""Adds rank slots to a lead's files, and compares the files with the running lead.

New ranks come after all others, so existing ranks keep their numbers: drained ranks and
our records stay valid across the restart that is needed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from burst.errors import ConfigError
from burst.flux_setup.config_files import read_text
from burst.lead_setup.lead_config import (
    LeadConfig,
    declared_resources,
    read_config,
    read_lead,
    read_resources,
    resource_entry,
)
from burst.lead_setup.lead_files import slot_entries, with_group
from burst.lead_setup.lead_plan import (
    DEFAULT_PORT,
    HostGroup,
    PlannedSlot,
    resolve_slots,
    with_gateways,
)
from burst.lead_setup.site_files import replace_files
from burst.lead_setup.toml_edits import add_entries, set_key
from burst.model.lead import LeadIdentity, LeadView
from burst.model.ranks import format_hostlist, format_idset, parse_hostlist


class AddedSlot(msgspec.Struct, frozen=True):
    """A rank slot that was added, or would be."""

    hosts: str
    ranks: str
    shape: str


class SlotPlan(msgspec.Struct, frozen=True):
    """The slots to add to a lead's files, and the new texts of these files."""

    added: list[AddedSlot] = []
    texts: Mapping[Path, str] = {}
    """The new texts by path, in the order in which they are written."""

    @property
    def hosts(self) -> list[str]:
        """A hostlist for each added slot."""
        return [slot.hosts for slot in self.added]


def add_slots(
    directory: Path,
    slots: Sequence[PlannedSlot],
    *,
    gateways: Sequence[str] | None = None,
    dry_run: bool = False,
) -> tuple[list[AddedSlot], list[Path]]:
    """Declare further slots where a lead's hosts and resources are declared.

    With `gateways`, the hosts of each slot join through its first host: at these
    addresses, or at the names of these hosts if the sequence is empty.

    Every byte that is in a TOML file stays. Returns the added slots and the copies of
    the old files; with `dry_run`, the slots that would be added. Raises ConfigError.
    """
    plan = plan_slots(directory, slots, gateways)
    kept = [] if dry_run else replace_files(directory, plan.texts, plan.hosts)
    return plan.added, kept


def plan_slots(
    directory: Path, slots: Sequence[PlannedSlot], gateways: Sequence[str] | None = None
) -> SlotPlan:
    """Return what `add_slots` does, without doing it. Raises ConfigError."""
    lead = read_lead(directory)
    known = declared_hosts(lead.files.tables)
    port = int(lead.files.tables["bootstrap"].get("default_port", DEFAULT_PORT))
    slots = with_gateways(slots, gateways or (), port)
    groups = resolve_slots(known, slots, None if gateways is None else port)
    added = []
    rank = len(known)
    for group in groups:
        ranks = range(rank, rank + len(group.names))
        rank = ranks.stop
        added.append(
            AddedSlot(
                format_hostlist(group.names), format_idset(ranks), str(group.shape)
            )
        )
    return SlotPlan(added, _changed(lead, groups))


def _changed(lead: LeadConfig, groups: Sequence[HostGroup]) -> dict[Path, str]:
    """Return the new texts of the files in which hosts and resources are declared.

    A broker does not start while the files differ in their number of hosts, either way
    (`rlist_rerank` of flux-core), as after an interruption between them. Raises
    ConfigError.
    """
    text = read_text(lead.hosts)
    entries = [entry for group in groups for entry in slot_entries(group)]
    try:
        text = add_entries(text, "bootstrap", "hosts", entries)
        if any("[" in group.gateway for group in groups):
            text = set_key(text, "bootstrap", "enable_ipv6", value=True)
        texts = {lead.hosts: text}
        if lead.entries is not None:
            text = texts.pop(lead.entries, "") or read_text(lead.entries)
            more = [resource_entry(group) for group in groups]
            texts[lead.entries] = add_entries(text, "resource", "config", more)
    except ConfigError as error:
        raise ConfigError(f"{lead.files.place}: {error.what}", error.advice) from error
    if lead.resources is not None:
        r = read_resources(lead.resources)
        for group in groups:
            # Flux gives the hosts of R the ranks that they have in [bootstrap].
            first = max(r.ranks, default=-1) + 1
            r = with_group(r, group, range(first, first + len(group.names)))
        texts[lead.resources] = r.encode() + "\n"
    return texts


def declared_hosts(tables: dict[str, Any]) -> tuple[str, ...]:
    """Return the hosts of `[bootstrap]`, in the order of ranks. Raises ConfigError."""
    try:
        entries = [entry["host"] for entry in tables["bootstrap"]["hosts"]]
        names = [name for entry in entries for name in parse_hostlist(entry)]
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(
            f"[bootstrap] hosts cannot be read: {error!r}",
            'declare the own hosts there, rank 0 first: hosts = [{ host = "NAME" }],'
            " with the name that hostname prints",
        ) from error
    # A host may have several entries; the first place is its rank.
    return tuple(dict.fromkeys(names))


def without_resources(directory: Path, hosts: Collection[str]) -> list[str]:
    """Return the hosts in `hosts` for which the lead's files declare no resources.

    Empty if the files declare no resources at all, or R names no hosts. Raises
    ConfigError.
    """
    known = declared_resources(directory)
    return sorted(set(hosts) - known.keys()) if known else []


def hosts_that_differ(directory: Path) -> str:
    """Return in words which hosts have no rank or no resources; empty if none.

    Raises ConfigError.
    """
    known = declared_resources(directory)
    hosts = declared_hosts(read_config(directory))
    bare = [host for host in hosts if host not in known] if known else []
    loose = [host for host in known if host not in hosts]
    said = []
    if bare:
        said.append(f"[resource] declares nothing for {format_hostlist(bare)}")
    if loose:
        said.append(f"[bootstrap] hosts lacks {format_hostlist(loose)}")
    return "; ".join(said)


def compare_with_running(
    directory: Path, identity: LeadIdentity, view: LeadView
) -> tuple[list[str], bool]:
    """Return what a restart from these files would change, and whether it is safe.

    It is safe if nothing is allocated, every rank keeps its number, no rank that goes
    is online, and R has the hosts that are added. Raises ConfigError.
    """
    tables = read_config(directory)
    files, runs = declared_hosts(tables), identity.hosts
    same = min(len(files), len(runs))
    said = []
    gone = frozenset(range(same, len(runs)))
    moved = files[:same] != runs[:same]
    if moved:
        said.append(
            "the files name other hosts for ranks that the lead has: after a restart,"
            " records of bursts and drained ranks would be about other hosts; restore"
            " the order first"
        )
    elif files == runs:
        said.append("a restart changes no ranks: the lead has the hosts of its files")
    elif gone:
        said.append(
            f"a restart removes {format_hostlist(runs[same:])}, ranks"
            f" {format_idset(gone)}; all others keep theirs"
        )
    else:
        new = format_hostlist(files[same:])
        said.append(
            f"a restart adds {new} as ranks"
            f" {format_idset(range(same, len(files)))}; all others keep theirs"
        )
    lacking = without_resources(directory, files[same:])
    if lacking:
        said.append(
            f"R of the files lacks {format_hostlist(lacking)}: the command that added"
            " them was interrupted, or R was not copied here; restore or copy it first"
        )
    if up := gone & view.online:
        said.append(
            f"ranks {format_idset(up)} are online, and would be lost: take bursts there"
            " down first (burst down)"
        )
    if view.allocated:
        said.append(
            f"jobs run on ranks {format_idset(view.allocated)}, and would end with the"
            " broker: run flux queue stop --all, and wait until flux jobs shows no"
            " running job; pending jobs are kept"
        )
    return said, not (moved or lacking or up or view.allocated)
