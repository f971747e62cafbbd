# SPDX-License-Identifier: MIT
"""What an engine is given: settings, and what is made from them, above all providers.

Providers come from plug-ins, and making one may hang. So they are made on a thread of
their own that has a deadline.
"""

from __future__ import annotations

import contextlib
import pwd
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as LateError

import msgspec

from burst import log
from burst.config import Settings
from burst.core.jobs.rule_warnings import find_rule_warnings, named_users
from burst.core.money.budget import budget_warnings
from burst.core.plan.slots import RankSlot, find_slots
from burst.errors import BurstError, ConfigError
from burst.model.fsd import format_fsd
from burst.model.lead import LeadIdentity
from burst.provider import Provider
from burst.provider_answers import storable
from burst.provider_type import package_errors
from burst.runtime.connect import with_settings

# The most characters of a provider's place that are kept.
_LONGEST_PLACE = 500

LoadProviders = Callable[[Settings, str], Mapping[str, Provider]]
"""Makes the enabled providers of settings, for an owner."""


class EngineConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Settings, and what was made from them."""

    settings: Settings
    identity: LeadIdentity
    """The lead as followers are to see it: with the address that the settings give."""
    slots: tuple[RankSlot, ...]
    providers: Mapping[str, Provider]
    places: Mapping[str, str] = {}
    """Where each provider makes bursts."""
    directories: Mapping[str, tuple[str, ...]] = {}
    """The directories that followers have, of each provider that tells them."""
    userids: Mapping[str, int] = {}
    """User ids by name: the users in rules and budgets that this host knows."""

    @property
    def resizable(self) -> frozenset[str]:
        """The providers whose bursts can grow and shrink."""
        found = self.providers.items()
        return frozenset(n for n, p in found if p.has("resize"))


def make_config(
    load: LoadProviders,
    lead: LeadIdentity,
    settings: Settings,
    old: EngineConfig | None = None,
) -> EngineConfig:
    """Make providers from settings; keep those of `old` with the same table and owner.

    Raises BurstError.
    """
    identity = with_settings(lead, settings.lead)
    kept: dict[str, Provider] = {}
    if old is not None and old.identity.owner == identity.owner:
        kept = {
            name: provider
            for name, provider in old.providers.items()
            if settings.providers.get(name) == old.settings.providers.get(name)
        }
    tables = {name: t for name, t in settings.providers.items() if name not in kept}
    only = msgspec.structs.replace(settings, providers=tables)
    made = {**kept, **load(only, identity.owner)}
    userids = find_userids(named_users(settings))
    for warning in find_rule_warnings(settings, userids, identity.queues):
        log.warn("%s", warning)
    for warning in budget_warnings(settings.budget, userids, time.time()):
        log.warn("%s", warning)
    return EngineConfig(
        settings=settings,
        userids=userids,
        identity=identity,
        slots=find_slots(identity, settings.lead.slots),
        providers={name: made[name] for name in settings.providers if name in made},
        places={name: _place(settings, identity, name, made[name]) for name in made},
        directories={
            name: paths
            for name, provider in made.items()
            if (paths := read_directories(name, provider))
        },
    )


RELOAD_S = 20.0
"""How long a reload may take to make the providers, in seconds. Making a provider waits
for nothing remote. If it takes longer, the old settings stay."""


class ConfigMaker:
    """Makes an EngineConfig on a thread of its own, within `limit` seconds."""

    def __init__(
        self,
        make: Callable[[], EngineConfig],
        limit: float,
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        """Start the thread. It calls `wake` when it is done."""
        self._make, self._limit, self._wake = make, limit, wake
        self._ends = time.monotonic() + limit
        self._made: Future[EngineConfig] = Future()
        # A daemon thread: a plug-in that hangs must not keep the daemon from its end.
        threading.Thread(target=self._run, name="make-providers", daemon=True).start()

    def time_left(self) -> float:
        """Return how many seconds are left until the deadline, at least 0."""
        return max(0.0, self._ends - time.monotonic())

    def is_due(self) -> bool:
        """Tell whether `result` returns or raises at once."""
        return self._made.done() or not self.time_left()

    def result(self) -> EngineConfig:
        """Wait until it is made. Raises BurstError, and ConfigError at the deadline."""
        try:
            return self._made.result(self.time_left())
        except LateError:
            raise ConfigError(
                f"the providers were not made within {format_fsd(self._limit)}",
                "burst doctor checks each",
            ) from None

    def _run(self) -> None:
        try:
            self._made.set_result(self._make())
        except BurstError as error:
            self._made.set_exception(error)
        except BaseException as error:  # noqa: BLE001 - whatever a plug-in does
            log.failure("the providers cannot be made", error=error)
            told = ConfigError(f"{type(error).__name__}: {error}")
            self._made.set_exception(told)
        self._wake()


def find_userids(names: Iterable[str]) -> dict[str, int]:
    """Return the ids of the users that this host knows; may ask a directory service."""
    found = {}
    for name in names:
        with contextlib.suppress(KeyError):
            found[name] = pwd.getpwnam(name).pw_uid
    return found


def read_place(name: str, provider: Provider) -> str:
    """Return where a provider says that it makes bursts. Raises ConfigError."""
    with package_errors(f"providers.{name}: place() failed"):
        where: object = provider.place()
        if not isinstance(where, str):
            raise TypeError(f"it returned {where!r}, not text")
        return storable(where)


def _place(
    settings: Settings, identity: LeadIdentity, name: str, provider: Provider
) -> str:
    """Return where a provider makes bursts; another type is another place, too.

    So is another owner tag in the settings: bursts with the old tag are not seen then.
    """
    where = read_place(name, provider)
    tag = f" as {identity.owner}" if settings.lead.owner else ""
    kind = settings.providers[name].type
    return f"{kind} {where}".rstrip()[: _LONGEST_PLACE - len(tag)] + tag


def read_directories(name: str, provider: Provider) -> tuple[str, ...]:
    """Return the directories that a provider says its followers have."""
    with package_errors(f"providers.{name}: directories() failed"):
        found = provider.directories()
        if isinstance(found, str):
            raise TypeError("it returned text in place of a list")
        found = tuple(found)  # it may be a generator, which is read only once
        for path in found:
            text = isinstance(path, str) and storable(path)
            if not text or text != path or not text.startswith("/"):
                raise TypeError(f"it returned {path!r}, not an absolute path as text")
        return found
