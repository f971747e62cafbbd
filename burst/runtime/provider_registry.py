# SPDX-License-Identifier: MIT
"""Makes the providers that the settings name, found by their entry points."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import EntryPoint, entry_points
from inspect import getattr_static
from typing import Any, cast

import msgspec

from burst import __version__, log
from burst.config import ProviderTable, Settings, convert
from burst.config.standing import check_standing
from burst.errors import BurstError, ConfigError
from burst.extensions import find_point, package_of
from burst.model.burst import BurstId
from burst.model.lead import LeadIdentity
from burst.provider import OPTIONAL_METHODS, Provider
from burst.provider_type import PROVIDERS, package_errors
from burst.runtime.connect import owner_tag

IMAGE = "image"
"""The ability of a provider whose bursts may have images of their own."""


def load_providers(
    settings: Settings, owner: str, found: Iterable[EntryPoint] | None = None
) -> dict[str, Provider]:
    """Return a provider for each enabled table, by name, in the settings' order.

    Nothing is imported for a disabled table, so its packages need not be installed.
    `found` is by default what is installed. Raises ConfigError, or what a provider
    raises for its settings.
    """
    known = _points(found)
    return {
        name: _make(name, table, owner, known)
        for name, table in settings.providers.items()
        if table.enabled
    }


def load_provider(name: str, table: ProviderTable, owner: str) -> Provider:
    """Return the provider of one table, also of a disabled one: it may have bursts yet.

    Raises what `load_providers` raises.
    """
    return _make(name, table, owner, _points())


def read_provider_options(settings: Settings, where: str) -> dict[str, msgspec.Struct]:
    """Return the settings that each enabled plug-in reads, defaults filled in.

    No provider is made. `where` is the file, for errors. Raises ConfigError.
    """
    known = _points()
    return {
        name: _options(f"{where}: providers.{name}", table, known)[1]
        for name, table in settings.providers.items()
        if table.enabled
    }


def abilities_by_settings(name: str, table: ProviderTable) -> set[str]:
    """Return a provider's abilities (modes of its bursts, IMAGE) by its settings.

    The provider is not made. Raises ConfigError.
    """
    kind, parsed = _options(f"providers.{name}", table, _points())
    images = kind.own_images(parsed)
    return {*kind.modes(parsed), *((IMAGE,) if images else ())}


@contextmanager
def _logged(what: str) -> Iterator[None]:
    """As `package_errors`, with the traceback in the log."""
    with package_errors(what):
        try:
            yield
        except (BurstError, KeyboardInterrupt):
            raise
        except BaseException as error:
            log.failure("%s", what, error=error)
            raise


def _points(found: Iterable[EntryPoint] | None = None) -> tuple[EntryPoint, ...]:
    return tuple(entry_points(group=PROVIDERS) if found is None else found)


def _make(
    name: str, table: ProviderTable, owner: str, known: Sequence[EntryPoint]
) -> Provider:
    kind, parsed = _options(f"providers.{name}", table, known)
    make = cast(Callable[[str, msgspec.Struct, str], Provider], kind)
    with _logged(f"providers.{name}: it cannot be made"):
        made = make(name, parsed, owner)
        # Asked here once, where an error ends neither a tick nor the daemon.
        answers = {method: bool(made.has(method)) for method in OPTIONAL_METHODS}
        # Not by `made.concurrency`: a property could fail at each call of the provider.
        calls = getattr_static(made, "concurrency")
        if not (isinstance(calls, int) and calls >= 1):
            raise TypeError(f"concurrency is {calls}, not a whole number from 1 on")
    vars(made)["has"] = answers.__getitem__
    return made


def _options(
    where: str, table: ProviderTable, known: Sequence[EntryPoint]
) -> tuple[type[Provider], msgspec.Struct]:
    """Return the class of a provider, and its settings as it declares them."""
    point = find_point(known, table.type)
    if point is None:
        types = ", ".join(sorted({each.name for each in known}))
        raise ConfigError(
            f"{where}.type: no provider {table.type!r} is installed",
            f"the installed types are {types or 'none'}",
        )
    kind = _checked(_import(point, where), point, where)
    with _logged(f"{where}: its settings cannot be read"):
        parsed = convert(kind.Settings, table.options, where)
        if names := kind.offer_names(parsed):
            check_standing(table.standing, names, where)
    return kind, parsed


def _import(point: EntryPoint, where: str) -> Any:
    with _logged(f"{where}: its package cannot be imported"):
        try:
            return point.load()
        except ImportError as error:
            if (error.name or "").partition(".")[0] == "burst":
                raise ConfigError(
                    f"{where}: provider {point.name} does not fit burst {__version__}:"
                    f" {error}",
                    f"install a version of {package_of(point)} for this burst, or set"
                    " enabled = false",
                ) from error
            if not isinstance(error, ModuleNotFoundError):
                raise
            raise ConfigError(
                f"{where}: a package of provider {point.name} is not installed:"
                f" {error}",
                f"pip install {_requirement(point)}, or set enabled = false",
            ) from error
        except AttributeError as error:
            raise ConfigError(
                f"{where}: provider {point.name} is not at {point.value}: {error}",
                "that is a mistake in its package; install another version of it",
            ) from error


def _requirement(point: EntryPoint) -> str:
    """Return what to install: the package, with the extras its entry point names."""
    package = package_of(point)
    extras = ",".join(point.extras)
    return f"'{package}[{extras}]'" if extras else package


def _checked(kind: Any, point: EntryPoint, where: str) -> type[Provider]:
    """Return the class, if it is one of a provider. Raises ConfigError."""
    if not (isinstance(kind, type) and issubclass(kind, Provider)):
        raise ConfigError(
            f"{where}: {point.value} is not a subclass of burst.provider.Provider",
            "that is a mistake in its package; install another version of it",
        )
    missing = sorted(kind.__abstractmethods__)
    if missing:
        raise ConfigError(
            f"{where}: {point.value} has no method {', '.join(missing)}",
            "that is a mistake in its package; see burst.provider",
        )
    settings = getattr(kind, "Settings", None)
    if not (isinstance(settings, type) and issubclass(settings, msgspec.Struct)):
        raise ConfigError(
            f"{where}: {point.value} has no Settings",
            "a provider declares its keys as a msgspec.Struct",
        )
    return kind


def access_commands(
    settings: Settings, identity: LeadIdentity, provider: str, burst: BurstId
) -> Sequence[str]:
    """Return shell commands that give access to a burst; empty if there are none.

    Raises ConfigError for a provider that these settings do not have.
    """
    table = settings.providers.get(provider)
    if table is None:
        raise ConfigError(
            f"{burst} was made by provider {provider}, which these settings do not"
            " have",
            "name the daemon's settings file with -c",
        )
    owner = owner_tag(identity, settings.lead)
    return load_provider(provider, table, owner).access(burst)
