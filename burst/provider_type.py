# SPDX-License-Identifier: MIT
"""What a type of providers tells before any provider of it is made.

A package registers an object of a subclass of `ProviderType` as an entry point of the
group `burst.provider_types`, named as the type. What it does not override is not
offered. Commands that make no provider ask it: `run-burst --help` for its flags, `burst
lead init` for its table. So its module should import no SDK: that an SDK is not
installed is an error only once the provider is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import msgspec

from burst.errors import BurstError, ConfigError
from burst.model.shape import Shape

GROUP = "burst.provider_types"
PROVIDERS = "burst.providers"
"""The group of the classes themselves."""
USUAL = "burst.usual_provider_type"
"""The group of the one type that commands use where none is named: it needs no extra,
and works on any host without a fact about the site."""


class ProviderFlag(msgspec.Struct, frozen=True):
    """One flag with a value, such as `--machine-type n2-standard-8`."""

    name: str
    """Without the dashes in front: `machine-type`."""
    help: str
    selects: bool = False
    """Where it is given and `--provider` is not, this type of provider is used."""
    is_file: bool = False
    """The value is the path of a file, which has to exist."""
    ignored: bool = False
    """It is accepted and has no effect; `notes` says why."""


class NodesRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes of one shape, for which the lead has rank slots."""

    name: str
    """Of an offer of such nodes."""
    shape: Shape
    """What R declares for each."""
    nodes: int
    """How many the largest slot of that shape has."""


class TableRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What `burst lead init` knows of the lead that a table is for."""

    each: tuple[NodesRequest, ...]
    """One for each shape that slots have, at least one, in the order of their ranks. A
    provider with several offers has one for each."""
    total: int
    """How many nodes all slots have together."""
    place: str = ""
    """A directory that the daemon's unit makes for followers on its host; empty for
    none."""

    @property
    def shape(self) -> Shape:
        """The shape of nodes that fit every slot, for a provider with one offer.

        It is that of some slot. Raises ConfigError where none holds all the others.
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
        """How many the largest slot has."""
        return max(wanted.nodes for wanted in self.each)


class ProviderType:
    """What is known of all providers of a type. Each part may be overridden."""

    flags: Sequence[ProviderFlag] = ()
    """Of `run-burst`, which lists those of all installed types."""
    own_host: bool = False
    """Whether followers are processes of the lead's own host that the daemon starts.
    Then they reach the lead by any address of the host, have no address or host name of
    their own, and live and start guests' jobs in the daemon's unit."""

    def options(
        self, given: Mapping[str, str], table: Mapping[str, Any], nodes: int
    ) -> dict[str, Any]:
        """Return the keys of `[providers.NAME]`, with what the flags say.

        `given` has the values by flag name, `table` what the settings file has, and
        `nodes` is the size of the rank slot. Raises ConfigError.
        """
        del given, nodes
        return dict(table)

    def notes(
        self, given: Mapping[str, str], options: Mapping[str, Any]
    ) -> Sequence[str]:
        """Return what a user should know before anything is made, a line for each.

        `options` is what that method returned.
        """
        del given, options
        return ()

    def table_template(self, wanted: TableRequest) -> str:
        """Return the text of `[providers.TYPE]`, as TOML; empty if there is none.

        A key that a site has to fill in is a comment `# KEY = EXAMPLE`; such lines
        follow a comment that begins with `# Fill in`.
        """
        del wanted
        return ""


@contextmanager
def package_errors(what: str) -> Iterator[None]:
    """Raise ConfigError for whatever a package's own code raises; `what` names it.

    BurstError goes through: it says already what to do.
    """
    try:
        yield
    except BurstError:
        raise
    except (Exception, SystemExit) as error:
        kind = "" if isinstance(error, ImportError) else f"{type(error).__name__}: "
        raise ConfigError(
            f"{what}: {kind}{error}",
            "that is a mistake in its package; install another version of it, or leave"
            " it out (enabled = false)",
        ) from error


def installed_types() -> tuple[str, ...]:
    """Return the names of all types whose providers can be made, sorted."""
    return tuple(sorted({point.name for point in entry_points(group=PROVIDERS)}))


def usual_type() -> str:
    """Return the type that commands use where none is named.

    Raises ConfigError where its package is not installed.
    """
    for point in entry_points(group=USUAL):
        return point.name
    raise ConfigError("no type of providers is the usual one", "name one by --provider")


def provider_type(kind: str) -> ProviderType:
    """Return what a type tells; of one that is not installed nothing is known.

    Raises ConfigError where its package cannot be imported.
    """
    for point in entry_points(group=GROUP, name=kind):
        return load_type(point)
    return ProviderType()


def on_own_host(kind: str) -> bool:
    """Return `own_host` of a type; False where its package cannot tell."""
    try:
        return provider_type(kind).own_host
    except ConfigError:
        return False


def load_type(point: EntryPoint) -> ProviderType:
    """Import what an entry point of the group names. Raises ConfigError."""
    what = f"what is known of provider type {point.name} cannot be imported"
    with package_errors(what):
        found = point.load()
        if not isinstance(found, ProviderType):
            raise TypeError(f"{point.value} is no ProviderType")
        if not all(isinstance(flag, ProviderFlag) for flag in found.flags):
            raise TypeError(f"flags of {point.value} are no ProviderFlags")
    return found
