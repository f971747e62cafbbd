# SPDX-License-Identifier: MIT
"""Facts about a type of providers that are needed before a provider is made.

A package registers an object of a subclass of `ProviderType` as an entry point of the
group `burst.provider_types`, with the name of the type. Methods that it does not
override offer nothing. Commands that make no provider use the object: `run-burst
--help` for its flags, `burst lead init` for its table. So its module should import no
SDK: a missing SDK is an error only once the provider is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import msgspec

from burst.errors import BurstError, ConfigError
from burst.extensions import find_point
from burst.model.shape import Shape

GROUP = "burst.provider_types"
PROVIDERS = "burst.providers"
"""The entry point group of the provider classes."""
USUAL = "burst.usual_provider_type"
"""The entry point group of the type that commands use if none is named: it needs no
extra package, and works on any host without configuration for the site."""


class ProviderFlag(msgspec.Struct, frozen=True):
    """One flag with a value, such as `--machine-type n2-standard-8`."""

    name: str
    """Without the dashes in front: `machine-type`."""
    help: str
    selects: bool = False
    """Whether the flag without `--provider` selects this type of provider."""
    is_file: bool = False
    """Whether the value is the path of a file, which must exist."""
    ignored: bool = False
    """Whether the flag is accepted but has no effect; `notes` says why."""


class NodesRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes of one shape, for which the lead has rank slots."""

    name: str
    """The name for an offer of such nodes."""
    shape: Shape
    """What R declares for each node."""
    nodes: int
    """The number of nodes of the largest slot with that shape."""


class TableRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The facts about a lead from which `burst lead init` has a table written."""

    each: tuple[NodesRequest, ...]
    """One entry for each shape that slots have, at least one, in the order of their
    ranks. A provider with several offers has one offer for each."""
    total: int
    """The number of nodes of all slots together."""
    place: str = ""
    """A directory that the daemon's unit creates for followers on its host; empty for
    none."""

    @property
    def shape(self) -> Shape:
        """The shape of nodes that fit every slot, for a provider with one offer.

        It is the shape of one of the slots. Raises ConfigError if no slot's shape is
        large enough for all others.
        """
        shapes = [wanted.shape for wanted in self.each]
        for shape in shapes:
            if all(shape.holds(other) for other in shapes):
                return shape
        raise ConfigError(
            f"the rank slots have nodes of {' and of '.join(map(str, shapes))}, and a"
            " provider of this type offers nodes of one shape",
            "ask for slots of one shape; `burst lead add-slot --provider NAME` adds the"
            " others, for which you write a second table [providers.NAME]",
        )

    @property
    def nodes(self) -> int:
        """The number of nodes of the largest slot."""
        return max(wanted.nodes for wanted in self.each)


class ProviderType:
    """Facts about all providers of a type. Each part may be overridden."""

    flags: Sequence[ProviderFlag] = ()
    """Flags of `run-burst`, which lists the flags of all installed types."""
    own_host: bool = False
    """Whether followers are processes that the daemon starts on the lead's own host.
    Such followers reach the lead at any address of the host, have no address or host
    name of their own, and run, with guests' jobs, in the daemon's systemd unit."""

    def options(
        self, given: Mapping[str, str], table: Mapping[str, Any], nodes: int
    ) -> dict[str, Any]:
        """Return the keys of `[providers.NAME]`, changed by the given flags.

        `given` has the values by flag name, `table` the keys in the settings file, and
        `nodes` is the size of the rank slot. Raises ConfigError.
        """
        del given, nodes
        return dict(table)

    def notes(
        self, given: Mapping[str, str], options: Mapping[str, Any]
    ) -> Sequence[str]:
        """Return lines that a user should read before anything is made.

        `options` is what the method `options` returned.
        """
        del given, options
        return ()

    def table_template(self, wanted: TableRequest) -> str:
        """Return the text of `[providers.TYPE]`, as TOML; empty if there is none.

        A key that a site has to set is a comment `# KEY = EXAMPLE`; these lines come
        after a comment that begins with `# Fill in`.
        """
        del wanted
        return ""


@contextmanager
def package_errors(what: str) -> Iterator[None]:
    """Raise ConfigError for any error in a package's own code; `what` describes it.

    A BurstError is passed on: it already says what to do.
    """
    try:
        yield
    except (BurstError, KeyboardInterrupt):
        raise
    except BaseException as error:
        kind = "" if isinstance(error, ImportError) else f"{type(error).__name__}: "
        raise ConfigError(
            f"{what}: {kind}{error}",
            "that is a mistake in its package; install another version of it, or leave"
            " it out (enabled = false)",
        ) from error


def installed_types() -> tuple[str, ...]:
    """Return the names of all installed types of providers, sorted."""
    return tuple(sorted({point.name for point in entry_points(group=PROVIDERS)}))


def usual_type() -> str:
    """Return the type that commands use if none is named.

    Raises ConfigError if its package is not installed.
    """
    for point in entry_points(group=USUAL):
        return point.name
    raise ConfigError("there is no usual provider type", "name one with --provider")


def provider_type(kind: str) -> ProviderType:
    """Return the facts about a type; the defaults if it has none installed.

    Raises ConfigError if its package cannot be imported, or several packages have it.
    """
    point = find_point(entry_points(group=GROUP), kind)
    return load_type(point) if point else ProviderType()


def on_own_host(kind: str) -> bool:
    """Return `own_host` of a type; False if its package cannot be imported."""
    try:
        return provider_type(kind).own_host
    except ConfigError:
        return False


def load_type(point: EntryPoint) -> ProviderType:
    """Import the object of an entry point of the group. Raises ConfigError."""
    what = f"the facts about provider type {point.name} cannot be imported"
    with package_errors(what):
        found = point.load()
        if not isinstance(found, ProviderType):
            raise TypeError(f"{point.value} is not a ProviderType")
        if not all(isinstance(flag, ProviderFlag) for flag in found.flags):
            raise TypeError(f"flags of {point.value} are not ProviderFlags")
    return found
