# SPDX-License-Identifier: MIT
"""Entry points by which other packages extend this one; all are optional.

| group | name of the entry point | object |
|---|---|---|
| `burst.commands` | a command of `burst` | a click command or group |
| | `GROUP.NAME`, a command below such a group | a click command |
| `burst.settings` | a table of the settings | a `burst.config.PackageTable` |
| `burst.daemon` | the package | a `burst.runtime.daemon_package.DaemonPackage` |
| `burst.http_routes` | the package | a function from a DaemonState to routes |
| `burst.doctor` | its name in `burst doctor` | a function from Settings to findings |
| `burst.stand_ins` | the lead | a `StandIn` |

Leads, providers and their flags of `run-burst` have groups of their own.

An object is imported only when it is loaded by its name, or all of its group are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from burst import log
from burst.errors import BurstError, ConfigError

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
    """How to start and use a lead for `burst demo` on hosts without Flux.

    The lead reads the files that `burst lead init` writes.
    """

    name: str
    user: tuple[str, ...]
    """The command with which users `submit`, `attach` to and `cancel` jobs."""
    brokers: Callable[[Path, Sequence[str]], list[list[str]]]
    """Returns the command of each host's broker, for a directory with these files and
    the lead's own hosts."""
    uri: Callable[[Path], str]
    """Returns FLUX_URI for that directory."""
    tell_host: tuple[str, ...]
    """A command that prints the name of its host when it runs in a job."""


@cache
def installed(group: Group) -> Mapping[str, EntryPoint]:
    """Return the installed entry points of a group, by name."""
    # Most commands need no entry points, and this import would double their start time.
    from importlib.metadata import entry_points  # noqa: PLC0415

    return {point.name: point for point in entry_points(group=group)}


def load(group: Group, name: str) -> Any:
    """Import the object installed under a name. Raises KeyError, ConfigError."""
    point = installed(group)[name]
    try:
        return point.load()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # whatever the package's own code raises
        raise ConfigError(
            f"{group}: {name} of package {package_of(point)} cannot be imported:"
            f" {type(error).__name__}: {error}",
            "install it again with its dependencies, or remove it",
        ) from error


@contextmanager
def naming_package(group: Group, name: str) -> Iterator[None]:
    """Name the package whose code runs in the block if it fails, with the traceback.

    Raises BurstError.
    """
    try:
        yield
    except BurstError:
        raise
    except Exception as error:
        package = package_of(installed(group)[name])
        what = f"{group}: {name} of package {package} failed: {error!r}"
        log.failure("%s", what, error=error)
        raise BurstError(what, "install another version of it, or remove it") from error


def find_point(points: Iterable[EntryPoint], name: str) -> EntryPoint | None:
    """Return the entry point of this name; None if there is none.

    Raises ConfigError if packages have different objects of the name: by chance, one
    would count here and another one there.
    """
    of_name = {point.value: point for point in points if point.name == name}
    found = list(of_name.values())
    if len(found) > 1:
        packages = " and ".join(sorted(map(package_of, found)))
        raise ConfigError(
            f"packages {packages} each have {name!r} in {found[0].group}",
            "uninstall all of them but one, or have an author name it otherwise",
        )
    return found[0] if found else None


def package_of(point: EntryPoint) -> str:
    """Return the name of the package that has an entry point."""
    return point.dist.name if point.dist else point.module.partition(".")[0]


def load_all(group: Group) -> dict[str, Any]:
    """Import all objects of a group, by name. Raises ConfigError."""
    return {name: load(group, name) for name in sorted(installed(group))}
