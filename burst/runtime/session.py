# SPDX-License-Identifier: MIT
"""An engine beside a lead, as the daemon, `run-burst` and the dry runs have it."""

from __future__ import annotations

import gc
import logging
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from typing import Any

import msgspec

from burst import log
from burst.config import Settings
from burst.core.observation import why_out_of_reach
from burst.core.placement.slots import RankSlot, find_slots
from burst.core.records import Records
from burst.errors import ConfigError
from burst.lead import Lead
from burst.model.fsd import format_fsd
from burst.model.jobid import JobId
from burst.model.lead import LeadIdentity
from burst.provider import Placed, Provider
from burst.runtime import provider_registry
from burst.runtime.clock import Clock
from burst.runtime.connect import with_public_endpoint
from burst.runtime.engine import Engine, EngineParts
from burst.runtime.executor import ProviderWorkers
from burst.runtime.lead_upkeep import prepare_intake
from burst.runtime.service_api import ServiceApi, describe_process
from burst.wakeup import WakeUp

# From the first of several events to the turn that deals with all of them, in seconds.
# Nodes that join together and jobs that are submitted together are heard of one by one,
# within a millisecond; a turn for the first alone would be in vain.
GATHER_PAUSE = 0.001
# Of what a provider says of its place so much is kept, in characters.
_LONGEST_PLACE = 500


# So long plug-ins have at the start at least, in seconds: longer than in a reload, as
# what they need is imported then, and a cloud's SDK takes its time.
_AT_FIRST = 60.0


def relax_garbage_collector() -> None:
    """Have the garbage collector look through old objects less often.

    Tens of thousands of jobs are known for hours, and are in no cycles; looking through
    them took half of the time of a turn.
    """
    gc.set_threshold(100_000, 20, 100)


LoadProviders = Callable[[Settings, str], Mapping[str, Provider]]
"""Makes the providers of settings, for an owner."""


class ProviderSetup(msgspec.Struct, frozen=True, kw_only=True):
    """What was made of settings."""

    identity: LeadIdentity
    """As followers are to see it."""
    slots: tuple[RankSlot, ...]
    providers: Mapping[str, Provider]
    places: Mapping[str, str]
    """Where each provider makes bursts."""


class Session:
    """Holds what lives as long as the connection to a lead. Use from one thread."""

    def __init__(
        self,
        lead: Lead,
        settings: Settings,
        wakeup: WakeUp,
        reload: Callable[[], Future[dict[str, Any]]],
        config: str = "",
    ) -> None:
        """Make an engine. `reload` is called, from any thread, when asked to reload.

        `wakeup` is what `tick` waits at; it outlives the session. `config` is the path
        of the settings file, for who asks.

        Raises ConfigError, StoreError, and Unreadable.
        """
        self.lead = lead
        self.clock = Clock()
        self._wakeup = wakeup
        self.settings = settings
        seen = lead.identity()
        limit = max(_AT_FIRST, settings.deadlines.reload)
        self._made = in_time(lambda: _make(self.load, seen, settings), limit)
        self._workers = ProviderWorkers(self.clock, self.wake)
        self.engine = self._start(settings)
        served_by = describe_process(self.clock(), config)
        self.api = ServiceApi(lambda: self.engine, self.wake, reload, served_by)

    def load(self, settings: Settings, owner: str) -> Mapping[str, Provider]:
        """Make providers, on whatever thread. Raises BurstError."""
        return provider_registry.load_providers(settings, owner)

    def wake(self) -> None:
        """Have the next turn taken now. From any thread."""
        self._wakeup.wake()

    def start(self) -> None:
        """Become the one daemon of this lead, and listen to it.

        Raises ServiceTaken naming the holder, and ConfigError where jobs cannot come
        in the way that the settings say.
        """
        relax_garbage_collector()
        prepare_intake(self.lead, self.settings.intake)
        self.lead.serve(self.api.answer, self.api.holder())
        # The service is the lock: until we had it, another daemon may have written.
        self.engine.reload_records(self.clock())
        self.lead.listen(self.wake, jobs_on_record(self.engine.snapshot.records))

    def tick(self, longest: float | None = None) -> None:
        """Take one turn, then wait for the next to be due, at most `longest` seconds.

        Raises LeadGone, and StoreError if nothing could be recorded or done.
        """
        due = self.engine.tick(self.clock())
        pause = max(0.0, due - self.clock())
        self._wakeup.wait(
            pause if longest is None else min(pause, longest), GATHER_PAUSE
        )

    def provider_maker(self, settings: Settings) -> Callable[[], ProviderSetup]:
        """Return what makes all that other settings need, for whatever thread.

        Raises ConfigError where the settings do not fit what there is.
        """
        self._check_left_out(settings, self.engine.snapshot.records)
        seen, old = self.lead.identity(), self._made

        def make() -> ProviderSetup:
            return _make(self.load, seen, settings, self.settings, old)

        return make

    def replace(self, settings: Settings, made: ProviderSetup) -> list[str]:
        """Go on with other settings, and what was made of them.

        Commands on their way, what is known of bursts, and providers whose settings
        are the same go over. Returns those whose last call is not answered yet, while
        they got other settings. Raises BurstError; then the old settings stay.
        """
        records = self.engine.snapshot.records
        self._check_left_out(settings, records)
        self._check_places(made, records)
        prepare_intake(self.lead, settings.intake)
        before, self._made, self.settings = self._made, made, settings
        self.engine.change(self._parts(settings))
        self.wake()
        return [
            name
            for name, provider in made.providers.items()
            if before.providers.get(name) is not provider and self._workers.busy(name)
        ]

    def close(self) -> None:
        """Take no more turns. Bursts stay."""
        self.engine.close()

    def _start(self, settings: Settings) -> Engine:
        engine = Engine(self._parts(settings), self.clock())
        for name in providers_not_enabled(settings, engine.snapshot.records):
            log.say(
                "provider %s has live bursts but is not enabled: nothing is done"
                " about them; enable it until they are gone",
                name,
                level=logging.WARNING,
            )
        return engine

    def _parts(self, settings: Settings) -> EngineParts:
        return EngineParts(
            lead=self.lead,
            identity=self._made.identity,
            slots=self._made.slots,
            providers=self._made.providers,
            executor=self._workers,
            settings=settings,
            places=self._made.places,
        )

    def _check_places(self, made: ProviderSetup, records: Records) -> None:
        """Raise ConfigError for bursts that their provider could not reach any more."""
        now = self._made.places
        lost = {
            burst.id: why
            for burst in records.live
            if (why := why_out_of_reach(burst.lease, made.places))
            and not why_out_of_reach(burst.lease, now)
        }
        if lost:
            told = "; ".join(f"{burst}: {why}" for burst, why in lost.items())
            raise ConfigError(told, "or take them down first (burst down)")

    def _check_left_out(self, settings: Settings, records: Records) -> None:
        names = providers_not_enabled(settings, records) - providers_not_enabled(
            self.settings, records
        )
        if names:
            raise ConfigError(
                f"provider {', '.join(sorted(names))} has live bursts",
                "take them down first (burst down), then remove it",
            )


def jobs_on_record(records: Records) -> frozenset[JobId]:
    """Return the jobs on record: held by us, or counting on a burst."""
    jobs = {job for burst in records.bursts.values() for job in burst.jobs}
    return frozenset(jobs | records.holds.keys())


def in_time(make: Callable[[], ProviderSetup], limit: float) -> ProviderSetup:
    """Return what is made on a thread of its own, which may take so many seconds.

    Raises ConfigError past the limit, and what making it raises.
    """
    done: Future[ProviderSetup] = Future()

    def run() -> None:
        try:
            done.set_result(make())
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited
            done.set_exception(error)

    # A daemon thread: what hangs must not keep the daemon from its end.
    threading.Thread(target=run, name="make-providers", daemon=True).start()
    if not wait([done], limit).done:
        raise ConfigError(
            f"the providers were not made within {format_fsd(limit)}",
            "burst doctor looks at each; deadlines.reload sets the time they have",
        )
    return done.result()


def _make(
    load: LoadProviders,
    seen: LeadIdentity,
    settings: Settings,
    old_settings: Settings | None = None,
    old: ProviderSetup | None = None,
) -> ProviderSetup:
    """Make what settings need; providers whose tables are the same are the old ones.

    Raises BurstError.
    """
    identity = with_public_endpoint(seen, settings.lead)
    kept: dict[str, Provider] = {}
    if old is not None and old_settings is not None:
        kept = {
            name: provider
            for name, provider in old.providers.items()
            if settings.providers.get(name) == old_settings.providers.get(name)
        }
    tables = {name: t for name, t in settings.providers.items() if name not in kept}
    only = msgspec.structs.replace(settings, providers=tables)
    made = {**kept, **load(only, identity.owner)}
    return ProviderSetup(
        identity=identity,
        slots=find_slots(identity, settings.lead.slots),
        providers={name: made[name] for name in settings.providers if name in made},
        places={name: _place(settings, name, made[name]) for name in made},
    )


def _place(settings: Settings, name: str, provider: Provider) -> str:
    """Return where a provider makes bursts; another type is another place, too."""
    where = provider.place() if isinstance(provider, Placed) else ""
    return f"{settings.providers[name].type} {where}".rstrip()[:_LONGEST_PLACE]


def providers_not_enabled(settings: Settings, records: Records) -> set[str]:
    """Return providers that have live bursts, but are not enabled."""
    enabled = {name for name, table in settings.providers.items() if table.enabled}
    return {burst.lease.provider for burst in records.live} - enabled
