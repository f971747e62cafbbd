# SPDX-License-Identifier: MIT
"""Reads the files of an instance's configuration and merges them as Flux does.

Flux reads one file, or all `*.toml` of a directory in the order of their names; if
several files have a key, the last one counts. Tables are merged, arrays are not: a
later `[[resource.config]]` or `[bootstrap] hosts` replaces an earlier one as a whole.
Sources: flux-config(5); `flux_conf_parse` in flux-core's src/common/libflux/conf.c.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from burst.config import Settings
from burst.decode import from_json
from burst.errors import ConfigError

_SETTINGS = "burst.toml"
_ADVICE = (
    "name the directory that `burst lead init` wrote, or Flux's, such as"
    " /etc/flux/system/conf.d"
)


class ConfigFile(msgspec.Struct, frozen=True):
    """One file, and the tables in it."""

    path: Path
    tables: Mapping[str, Any]


class ConfigFiles(msgspec.Struct, frozen=True):
    """All files, in the order in which Flux reads them."""

    place: Path
    """The file, or the directory of the files."""
    files: tuple[ConfigFile, ...]

    @property
    def tables(self) -> dict[str, Any]:
        """The tables of all files, merged."""
        return merge_tables([each.tables for each in self.files])

    def deciding(self, *keys: str) -> Path | None:
        """Return the file whose value of a key counts; None if no file has the key.

        `keys` is its path, such as `resource`, `config`.
        """
        having = (e.path for e in reversed(self.files) if _has(e.tables, keys))
        return next(having, None)

    def without(self, *paths: Path) -> ConfigFiles:
        """Return the configuration as it would be without these files."""
        kept = tuple(each for each in self.files if each.path not in paths)
        return msgspec.structs.replace(self, files=kept)


def read_config_files(place: Path) -> ConfigFiles:
    """Read a configuration: a file, or the files of a directory. Raises ConfigError.

    The daemon's settings, which `burst lead init` puts beside broker.toml, are not part
    of it.
    """
    paths = [place]
    if place.is_dir():
        found = (path for path in place.glob("*.toml") if path.name[0] != ".")
        paths = sorted(found, key=lambda path: os.fsencode(path.name))
        if not paths:
            raise ConfigError(f"{place}: has no files *.toml", _ADVICE)
    files = [ConfigFile(path, read_tables(path)) for path in paths]
    return ConfigFiles(
        place, tuple(each for each in files if not _is_settings(each, place))
    )


def read_tables(path: Path) -> dict[str, Any]:
    """Return the tables of one file, TOML or JSON by its name. Raises ConfigError."""
    text = read_text(path)
    try:
        if path.suffix == ".json":
            return from_json(text, dict[str, Any])
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise _unreadable(path, error) from error


def read_text(path: Path) -> str:
    """Return a file's text with its own ends of lines. Raises ConfigError."""
    try:
        return path.read_bytes().decode()
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(path, error) from error


def merge_tables(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return these tables merged; values of later tables replace earlier ones."""
    merged: dict[str, Any] = {}
    for part in parts:
        for key, value in part.items():
            old = merged.get(key)
            if isinstance(old, Mapping) and isinstance(value, Mapping):
                merged[key] = merge_tables([old, value])
            else:
                merged[key] = value
    return merged


def _has(tables: Any, keys: Sequence[str]) -> bool:
    for key in keys:
        if not isinstance(tables, Mapping) or key not in tables:
            return False
        tables = tables[key]
    return True


def _is_settings(file: ConfigFile, place: Path) -> bool:
    """Tell by its tables whether a file of a directory is the daemon's, not Flux's.

    `[[policy]]` is ours, `[policy]` is Flux's.
    """
    if file.path == place or file.path.name != _SETTINGS:
        return False
    known = frozenset(Settings.__struct_fields__)
    of_flux = isinstance(file.tables.get("policy"), Mapping)
    return file.tables.keys() <= known and not of_flux


def _unreadable(path: Path, error: Exception) -> ConfigError:
    why = error.strerror if isinstance(error, OSError) else error
    return ConfigError(f"{path}: cannot be read: {why}", _ADVICE)
