# SPDX-License-Identifier: MIT
"""Which files of a lead's configuration decide its hosts and its resources.

The files are those of `burst lead init`, or a site's own, in any number.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from burst.errors import ConfigError
from burst.flux_setup.config_files import ConfigFiles, read_config_files


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
