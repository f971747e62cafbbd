# SPDX-License-Identifier: MIT
"""Reads the files of a lead: those of `burst lead init`, or those that a site has.

A site's are all TOML files of a directory, of which each may have some of the tables
(flux-config(5)).
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from burst.errors import ConfigError


def read_config(directory: Path) -> dict[str, Any]:
    """Return the tables of the lead's configuration. Raises ConfigError."""
    merged: dict[str, Any] = {}
    for path in _config_files(directory):
        for name, table in read_file(path, tomllib.loads).items():
            old = merged.get(name)
            both = isinstance(old, dict) and isinstance(table, dict)
            merged[name] = old | table if both and old is not None else table
    return merged


def find_files(directory: Path) -> tuple[Path, Path]:
    """Return the file that has `[bootstrap]`, and the one that has R.

    The directory is one that `burst lead init` wrote, or a configuration directory of
    Flux such as /etc/flux/system/conf.d. Raises ConfigError.
    """
    paths = _config_files(directory)
    if paths == [directory / "broker.toml"]:
        return paths[0], directory / "R"
    tables = {path: read_file(path, tomllib.loads) for path in paths}
    hosts = [
        path for path, each in tables.items() if "hosts" in each.get("bootstrap", ())
    ]
    r = [
        each["resource"]["path"]
        for each in tables.values()
        if "path" in each.get("resource", ())
    ]
    if len(hosts) != 1:
        raise ConfigError(
            f"{directory}: {len(hosts)} files have [bootstrap] hosts",
            "name the directory of the lead's configuration, with one such file",
        )
    if not r:
        raise ConfigError(
            f"{directory}: no file has [resource] path, so there is no R to add to",
            "write the instance's R to a file (flux kvs get resource.R), and name it"
            " as path under [resource] in place of the table config",
        )
    return hosts[0], Path(r[0])


def _config_files(directory: Path) -> list[Path]:
    """Return the files of the lead's configuration, flux-config(5)."""
    own = directory / "broker.toml"
    return [own] if own.exists() else sorted(directory.glob("*.toml")) or [own]


def read_file(path: Path, parse: Callable[[str], Any]) -> Any:
    """Return a parsed file of a lead. Raises ConfigError."""
    try:
        return parse(path.read_text())
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{path}: cannot be read: {error}",
            "name the directory that `burst lead init` wrote, or Flux's, such as"
            " /etc/flux/system/conf.d",
        ) from error
