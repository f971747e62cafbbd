# SPDX-License-Identifier: MIT
"""What the file of an ensemble may say, and no daemon does yet: it is refused."""

from __future__ import annotations

from burst.config.ensemble import EnsembleSpec, MemberSpec
from burst.config.ensemble_file import EnsembleFile
from burst.config.file_source import KeyPath
from burst.errors import ConfigError


def check_supported(spec: EnsembleSpec, file: EnsembleFile | None = None) -> None:
    """Raise ConfigError for what members could not have; with the file, its line."""
    for member in spec.members:
        found = _unsupported(member)
        if found is None:
            continue
        path, what, advice = found
        if file is not None:
            raise file.source.wrong((*file.places[member.name], *path), what, advice)
        key = ".".join(str(each) for each in path)
        raise ConfigError(f"member {member.name}: {key}: {what}", advice)


def _unsupported(member: MemberSpec) -> tuple[KeyPath, str, str] | None:
    """Return the key of a member that is not supported, why, and what would be."""
    if member.mode == "isolated":
        what = "members that are isolated bursts are not supported yet"
        return ("mode",), what, 'use "joined"'
    for key in member.minicluster:
        return (
            ("minicluster", "spec", key),
            "it is not used: the pods of a member are those of its provider",
            "set it in the provider's table; of spec only size, minSize and maxSize"
            " are used",
        )
    return None
