# SPDX-License-Identifier: MIT
"""An engine connected to a lead, as the daemon and `run-burst` use it."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, NamedTuple

import msgspec

from burst import log
from burst.config import Settings
from burst.config.file import LOOKED_FOR
from burst.core.observation import why_out_of_reach
from burst.core.records import Records, jobs_on_record
from burst.errors import BurstError, ConfigError
from burst.extensions import load_all, naming_package
from burst.lead import Accounting, Lead, ServiceRequest, WholeQueue
from burst.provider import Provider
from burst.runtime import provider_registry
from burst.runtime.bank_reader import BankReader
from burst.runtime.call_line import CallLines
from burst.runtime.clock import Clock
from burst.runtime.connect import require_owner
from burst.runtime.daemon_package import (
    PackageHost,
    RunningPackage,
)
from burst.runtime.engine import Engine
from burst.runtime.engine_config import (
    RELOAD_S,
    ConfigMaker,
    EngineConfig,
    make_config,
)
from burst.runtime.executor import ProviderWorkers
from burst.runtime.forecaster import Forecaster
from burst.runtime.lead_upkeep import prepare_intake
from burst.runtime.lead_watch import AccessWatch, AddressWatch
from burst.runtime.ledger_archive import LedgerArchive, LedgerArchiver, archive_path
from burst.runtime.notifier import Notifier
from burst.runtime.queue_follower import QueueFollower
from burst.runtime.service_answers import Row, describe_process
from burst.runtime.service_api import ServiceApi
from burst.runtime.side_threads import SideThreads
from burst.runtime.subuid_file import SubuidFile
from burst.runtime.tally import Tally
from burst.wakeup import WakeUp

# Seconds from an event to the tick that deals with it. Nodes that join together and
# jobs that are submitted together cause one event each, within a millisecond; one tick
# serves them all.
GATHER_PAUSE = 0.001
# Seconds that plug-ins have at least to make the providers at the start. This is longer
# than in a reload, as the start also imports their modules, and the SDK of a cloud
# takes long to import.
_FIRST_LIMIT = 60.0


def relax_garbage_collector() -> None:
    """Have the garbage collector visit old objects less often.

    Tens of thousands of jobs are kept for hours and are in no cycles; visiting them
    took half of the time of a tick. The thresholds count the objects that were made
    since the last collection and not freed. So garbage in cycles, such as that of an
    error, grows to some 50,000 objects, a few megabytes, before it is collected.
    """
    gc.set_threshold(20_000, 2, 100)


class DaemonProcess(NamedTuple):
    """What a session is told of the daemon, which may have several in turn."""

    config: str = ""
    """Path of the settings file, which `burst status` shows; empty for none."""
    tally: Tally | None = None
    """The counts of the process, shared by all its sessions; None to begin new ones."""
    notifier: Notifier | None = None
    """Tells the notices of all sessions of the process; None: no notice is told."""
    lines: CallLines | None = None
    """The calls of providers, of all sessions of the process; None to begin new lines.
    """
    reload_limit: float = RELOAD_S
    """How long a reload may take to make the providers, in seconds."""


class Session:
    """All objects that live as long as a connection to a lead. Use from one thread."""

    def __init__(
        self,
        lead: Lead,
        settings: Settings,
        wakeup: WakeUp,
        reload: Callable[[], Future[dict[str, Any]]],
        process: DaemonProcess = DaemonProcess(),  # noqa: B008 - it is immutable
    ) -> None:
        """Make providers and an engine. Raises ConfigError, StoreError, Unreadable.

        `tick` waits at `wakeup`, which outlives the session. The service calls
        `reload`, on any thread.
        """
        self.lead = lead
        self.clock = Clock()
        self._wakeup = wakeup
        self._access = AccessWatch(lead, self.clock())
        seen = lead.identity()
        limit = max(_FIRST_LIMIT, process.reload_limit)
        making = ConfigMaker(lambda: make_config(self.load, seen, settings), limit)
        self._config = making.result()
        self._workers = ProviderWorkers(self.clock, self.wake, process.lines)
        self._tally = process.tally or Tally()
        self._reload_limit = process.reload_limit
        forecaster = (
            Forecaster(lead, self.wake, self.clock, self._tally.forecast_error)
            if isinstance(lead, WholeQueue)
            else None
        )
        self._queue = QueueFollower(lead, forecaster)
        self._archiver = LedgerArchiver(LedgerArchive(archive_path(seen)))
        self._banks = (
            BankReader(lead, self.wake, self.clock)
            if isinstance(lead, Accounting)
            else None
        )
        self._address = AddressWatch(self.wake)
        served_by = describe_process(self.clock(), process.config)
        self.api = ServiceApi(lambda: self.engine, self.wake, reload, served_by)
        host = PackageHost(
            lambda: self.engine.snapshot,
            lead,
            self.clock,
            self._call_service,
        )
        self.packages: dict[str, RunningPackage] = {}
        for name, package in load_all("burst.daemon").items():
            with naming_package("burst.daemon", name):
                self.packages[name] = package(host)
        beside = SideThreads(
            forecaster,
            self._archiver,
            self._banks,
            self._tally,
            process.notifier,
            SubuidFile(),
        )
        self.engine = Engine(lead, self._config, self._workers, self.clock(), beside)
        self._path = process.config
        for name, running in self.packages.items():
            with naming_package("burst.daemon", name):
                self.api.add_owners(running.methods())

    @property
    def settings(self) -> Settings:
        """The settings in use."""
        return self._config.settings

    @property
    def owner(self) -> str:
        """The owner tag of all that is made for the lead."""
        return self._config.identity.owner

    @property
    def providers(self) -> Mapping[str, Provider]:
        """The providers in use, by name."""
        return self._config.providers

    def load(self, settings: Settings, owner: str) -> Mapping[str, Provider]:
        """Make the enabled providers. From any thread. Raises BurstError."""
        return provider_registry.load_providers(settings, owner)

    def _call_service(self, method: str, payload: dict[str, Any]) -> Row:
        request = ServiceRequest(method, payload, os.geteuid(), owner=True)
        return self.api.answer(request)

    def wake(self) -> None:
        """Make the next tick due now. From any thread."""
        self._wakeup.wake()

    def start(self) -> None:
        """Become the only daemon of this lead, and listen to it.

        Raises ServiceTaken naming the holder, ConfigError if the lead lacks what the
        intake mode needs, and Denied if the lead is another user's, also for root.
        """
        require_owner(self._config.identity, os.geteuid())
        relax_garbage_collector()
        prepare_intake(self.lead, self.settings)
        self.lead.serve(self.api.answer, self.api.holder(), self.api.admit)
        # The service is the lock: another daemon may have written until we had it.
        self.engine.reload_records(self.clock(), self.clock.mark)
        self._log_not_enabled()
        self._read_banks()
        self._queue.follow(self._config)
        engine = self.engine
        self.lead.listen(self.wake, lambda: jobs_on_record(engine.snapshot.records))

    def start_packages(self) -> None:
        """Start what other packages run beside the ticks."""
        for name, package in self.packages.items():
            with naming_package("burst.daemon", name):
                package.start()

    def tick(self, longest: float | None = None) -> None:
        """Take one tick, then wait until the next is due, at most `longest` seconds.

        Raises LeadGone.
        """
        began = time.monotonic()
        self._follow_lead()
        due = self.engine.tick(self.clock())
        if self.engine.snapshot.world.halt:
            self._tally.failed_tick()
        else:
            self._tally.tick(time.monotonic() - began)
        pause = max(0.0, due - self.clock())
        self._wakeup.wait(
            pause if longest is None else min(pause, longest), GATHER_PAUSE
        )

    def make_config(self, settings: Settings) -> ConfigMaker:
        """Begin to make the providers of other settings, within the reload limit.

        Raises ConfigError if the settings remove or disable a provider that has live
        bursts.
        """
        self._check_left_out(settings)
        seen, old = self.lead.identity(), self._config
        return ConfigMaker(
            lambda: make_config(self.load, seen, settings, old),
            self._reload_limit,
            self.wake,
        )

    def replace(self, config: EngineConfig) -> list[str]:
        """Use other settings from the next tick on.

        Waiting commands, what is known of bursts, and providers with unchanged settings
        are kept. Returns the providers with changed settings that are still in a call.
        Raises BurstError; then the old settings stay.
        """
        # `config` has the identity of when it began to be made. Flux may have read its
        # own configuration again since.
        identity, before = config.identity, self._config.identity
        moved = before.moved if identity.endpoint == before.endpoint else self.clock()
        identity = msgspec.structs.replace(
            identity,
            access=before.access,
            queues=before.queues,
            limits=before.limits,
            moved=moved,
        )
        config = msgspec.structs.replace(config, identity=identity)
        self._check_left_out(config.settings)
        self._check_places(config)
        prepare_intake(self.lead, config.settings)
        # The last that may fail, so that all that follows is done.
        self._queue.follow(config)
        old, self._config = self._config, config
        self.engine.change(config)
        self._read_banks()
        self.wake()
        return [
            name
            for name, provider in config.providers.items()
            if old.providers.get(name) is not provider and self._workers.busy(name)
        ]

    def close(self) -> None:
        """End. Bursts stay as they are."""
        for name, package in self.packages.items():
            try:
                with naming_package("burst.daemon", name):
                    package.close()
            except BurstError as error:
                log.warn("%s", error)
        self._queue.close()
        if self._banks is not None:
            self._banks.close()
        self._address.close()
        self.engine.close()
        self._archiver.close()

    def _follow_lead(self) -> None:
        """Use the lead's present access, queues, limits and address from now on."""
        known, now = self._config.identity, self.clock()
        identity = self._access.follow(known, self.settings.daemon.cadence, now)
        identity = self._address.follow(identity, self.settings.lead, now)
        if identity is not known:
            self._config = msgspec.structs.replace(self._config, identity=identity)
            self.engine.change(self._config)

    def _read_banks(self) -> None:
        if self._banks is not None:
            self._banks.start()

    def _log_not_enabled(self) -> None:
        if not self.providers:
            log.warn(
                "no provider is enabled, so no burst can be made: %s",
                f"enable one in {self._path}"
                if self._path
                else f"no settings file was read ({LOOKED_FOR}); name one with -c",
            )
        for name in providers_not_enabled(self.settings, self._records):
            log.warn(
                "provider %s has live bursts but is not enabled: the daemon neither"
                " observes nor deletes them; enable it until they are gone",
                name,
            )

    @property
    def _records(self) -> Records:
        return self.engine.snapshot.records

    def _check_places(self, config: EngineConfig) -> None:
        """Raise ConfigError if a provider would no longer reach its live bursts."""
        lost = {
            burst.id: why
            for burst in self._records.live
            if (why := why_out_of_reach(burst.lease, config.places))
            and not why_out_of_reach(burst.lease, self._config.places)
        }
        if lost:
            told = "; ".join(f"{burst}: {why}" for burst, why in lost.items())
            raise ConfigError(told, "or take them down first (burst down)")

    def _check_left_out(self, settings: Settings) -> None:
        records = self._records
        names = providers_not_enabled(settings, records)
        names -= providers_not_enabled(self.settings, records)
        if names:
            raise ConfigError(
                f"provider {', '.join(sorted(names))} has live bursts",
                "take them down first (burst down), then remove it",
            )


def providers_not_enabled(settings: Settings, records: Records) -> set[str]:
    """Return providers that have live bursts, but are not enabled."""
    enabled = {name for name, table in settings.providers.items() if table.enabled}
    return {burst.lease.provider for burst in records.live} - enabled
