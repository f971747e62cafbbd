# SPDX-License-Identifier: MIT
"""Which hosts and resources a lead's configuration declares, and in which files.

The files are those of `burst lead init`, or a site's own, in any number. Resources are
R (RFC 20) or `[[resource.config]]`, flux-config-resource(5).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from burst.errors import ConfigError
from burst.flux_setup.config_files import ConfigFiles, read_config_files, read_text
from burst.lead_setup.lead_files import slot_properties
from burst.lead_setup.lead_plan import HostGroup
from burst.model.confinement import LENT
from burst.model.ranks import format_hostlist, format_idset, parse_hostlist, parse_idset
from burst.model.resource_set import ResourceSet, decode_resource_set, shape_of
from burst.model.shape import Shape


class LeadConfig(msgspec.Struct, frozen=True):
    """A lead's configuration, and the files to which ranks are added."""

    files: ConfigFiles
    hosts: Path
    """The file whose `[bootstrap] hosts` counts."""
    entries: Path | None
    """The file whose `[[resource.config]]` counts; None if R is a file."""
    resources: Path | None
    """The file of R, `[resource] path` of flux-config-resource(5); None if `entries` is
    set."""


def read_config(place: Path) -> dict[str, Any]:
    """Return the tables of the lead's configuration. Raises ConfigError."""
    return read_config_files(place).tables


def read_lead(place: Path) -> LeadConfig:
    """Return where a lead's hosts and resources are declared.

    `place` is a directory that `burst lead init` wrote, or the file or directory that
    Flux reads, such as /etc/flux/system/conf.d. Raises ConfigError if it declares no
    hosts, or no resources, so that each node finds its own when it starts.
    """
    files = read_config_files(place)
    hosts = files.deciding("bootstrap", "hosts")
    if hosts is None:
        raise ConfigError(
            f"{place}: no file has [bootstrap] hosts, so ranks cannot be added",
            'declare the own hosts there, rank 0 first: hosts = [{ host = "NAME" }],'
            " with the name that hostname prints",
        )
    # If both are set, Flux reads `config`.
    entries = files.deciding("resource", "config")
    table = files.tables.get("resource", {})
    if table.get("scheduling"):
        raise ConfigError(
            f"{place}: [resource] scheduling names a graph for Fluxion, in which ranks"
            " that are added are missing: no job would start on them",
            "remove the key, as Fluxion makes a graph of the resources itself; then run"
            " this command again",
        )
    path = None if entries else table.get("path")
    if not entries and not path:
        raise ConfigError(
            f"{place}: it has neither [[resource.config]] nor [resource] path, so each"
            " node finds its own resources when it starts, and none can be declared for"
            " nodes that are not up",
            "declare the own nodes in a file there, as in flux-config-resource(5):"
            ' [[resource.config]] hosts = "NAMES", cores = "0-7", and gpus and'
            " properties where they have some; `flux resource info` and `flux R"
            " parse-config FILE` show what they have; then run this command again",
        )
    return LeadConfig(files, hosts, entries, Path(str(path)) if path else None)


def declared_resources(place: Path) -> dict[str, Shape]:
    """Return the shape that the lead's files declare for each host.

    Empty if they declare none, or R names no hosts. Raises ConfigError.
    """
    table = read_config_files(place).tables.get("resource", {})
    if table.get("config"):
        return shapes_of_entries(table["config"])
    if not table.get("path"):
        return {}
    path = Path(str(table["path"]))
    r = read_resources(path)
    if not r.hosts:
        return {}
    try:
        return {node.host: shape_of(node.children) for node in r.nodes}
    except ValueError as error:
        raise _malformed(path, error) from error


def lent_hosts(place: Path, known: Sequence[str]) -> frozenset[str]:
    """Return the hosts that the lead's files declare as nodes of bursts.

    `known` are the hosts in the order of ranks, for an R that names none. Raises
    ConfigError.
    """
    table = read_config_files(place).tables.get("resource", {})
    if table.get("config"):
        return frozenset(
            host
            for entry in table["config"]
            if LENT in entry.get("properties", ())
            for host in parse_hostlist(entry["hosts"])
        )
    if not table.get("path"):
        return frozenset()
    path = Path(str(table["path"]))
    r = read_resources(path)
    try:
        lent = r.properties.get(LENT, ())
        pairs = zip(sorted(r.ranks), r.hosts or known, strict=False)
        return frozenset(host for rank, host in pairs if rank in lent)
    except ValueError as error:
        raise _malformed(path, error) from error


def _malformed(path: Path, error: ValueError) -> ConfigError:
    return ConfigError(f"{path}: {error}", "restore it from a copy")


def read_resources(path: Path) -> ResourceSet:
    """Return the R that a file contains. Raises ConfigError."""
    try:
        return decode_resource_set(read_text(path))
    except ValueError as error:
        raise ConfigError(
            f"{path}: cannot be read: {error}",
            "[resource] path names it; it has to be R of RFC 20, as `flux R` makes it",
        ) from error


def resource_entry(group: HostGroup) -> dict[str, Any]:
    """Return the entry of `[[resource.config]]` for a rank slot."""
    gpus = {"gpus": format_idset(range(group.shape.gpus))} if group.shape.gpus else {}
    return {
        "hosts": format_hostlist(group.names),
        "cores": format_idset(range(group.shape.cores)),
        **gpus,
        "properties": slot_properties(group),
    }


def shapes_of_entries(entries: Iterable[Mapping[str, Any]]) -> dict[str, Shape]:
    """Return the shapes of the hosts of `[[resource.config]]`.

    Each entry adds to what its hosts have. Raises ConfigError.
    """
    cores: dict[str, frozenset[int]] = {}
    gpus: dict[str, frozenset[int]] = {}
    try:
        for entry in entries:
            for host in parse_hostlist(entry["hosts"]):
                for found, key in ((cores, "cores"), (gpus, "gpus")):
                    ids = parse_idset(entry.get(key, ""))
                    found[host] = found.get(host, frozenset()) | ids
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ConfigError(
            f"[[resource.config]] cannot be read: {error!r}",
            "correct it, as flux-config-resource(5) says; `flux R parse-config FILE`"
            " shows what Flux makes of it",
        ) from error
    return {host: Shape(len(cores[host]), len(gpus[host])) for host in cores}
