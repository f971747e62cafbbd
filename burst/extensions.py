# SPDX-License-Identifier: MIT
"""What other packages add to ours, by entry points; none of it is needed.

| group | name | what it names |
|---|---|---|
| `burst.commands` | of a command of `burst` | a click command or group |
| | `GROUP.NAME`: of one below such a group | a click command |
| `burst.settings` | of a table of the settings | a `burst.config.PackageTable` |
| `burst.daemon` | of the package | a `burst.runtime.daemon_package.DaemonPackage` |
| `burst.http_routes` | of the package | from a DaemonState to routes |
| `burst.doctor` | what `burst doctor` calls it | from Settings to findings |
| `burst.stand_ins` | of the lead | a `StandIn` |

Leads, providers and their flags of `run-burst` have groups of their own.

Nothing is imported before it is asked for by its name, or all of a group is used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from burst.errors import ConfigError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Group = Literal[
    "burst.commands",
    "burst.settings",
    "burst.daemon",
    "burst.http_routes",
    "burst.doctor",
    "burst.stand_ins",
]


class StandIn(msgspec.Struct, frozen=True, kw_only=True):
    """A lead for `burst demo` where there is no Flux: how it is started and used.

    It reads the files that `burst lead init` writes.
    """

    name: str
    user: tuple[str, ...]
    """The command with which users `submit`, `attach` to and `cancel` jobs."""
    brokers: Callable[[Path, Sequence[str]], list[list[str]]]
    """Returns, for a directory of these files and the lead's own hosts, the command of
    each host's broker."""
    uri: Callable[[Path], str]
    """Returns FLUX_URI for that directory."""
    tell_host: tuple[str, ...]
    """A command that prints, in a job, the name of its host."""


@cache
def installed(group: Group) -> Mapping[str, EntryPoint]:
    """Return what is installed of a group, by name."""
    # Most commands ask for none, and its import takes as long as theirs.
    from importlib.metadata import entry_points  # noqa: PLC0415

    return {point.name: point for point in entry_points(group=group)}


def load(group: Group, name: str) -> Any:
    """Import what is installed under a name. Raises KeyError, ConfigError."""
    point = installed(group)[name]
    try:
        return point.load()
    except (ImportError, AttributeError) as error:
        package = point.dist.name if point.dist else point.module.partition(".")[0]
        raise ConfigError(
            f"{group}: {name} of package {package} cannot be imported: {error}",
            "install it again with all that it needs, or remove it",
        ) from error


def load_all(group: Group) -> dict[str, Any]:
    """Import all of a group, by name. Raises ConfigError."""
    return {name: load(group, name) for name in sorted(installed(group))}
