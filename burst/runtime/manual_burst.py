# SPDX-License-Identifier: MIT
"""`run-burst`: an engine in the command's own process, until one burst is done.

It registers the service `burst`, as a daemon does. Where a daemon serves the lead, the
command asks that daemon instead.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

import msgspec

from burst.config import ProviderTable, Seconds, Settings
from burst.core import burst_requests, commands
from burst.core.report import burst_row
from burst.errors import BurstError, ConfigError
from burst.lead import Lead
from burst.model.burst import Burst, BurstId, State
from burst.model.lead import LeadIdentity
from burst.model.ranks import format_hostlist, parse_hostlist
from burst.model.reason import Reason
from burst.runtime.session import Session
from burst.wakeup import WakeUp

# Seconds between two looks at the progress.
_SHOW_EVERY = 0.2
# Seconds that a provider may take to return its offers.
_OFFERS_DEADLINE = 60.0


def find_slot_hosts(identity: LeadIdentity, name: str) -> str:
    """Return the hosts of the rank slot with that name, as a hostlist.

    Raises ConfigError naming the hosts there are.
    """
    stem = f"{name}-"
    hosts = [
        host
        for host in identity.hosts
        if host.startswith(stem) and host.removeprefix(stem).isdigit()
    ]
    if not hosts:
        raise ConfigError(
            f"the lead has no hosts {name}-0, {name}-1, ...:"
            f" it has {format_hostlist(identity.hosts)}",
            "ranks are fixed when the lead starts: declare them by `burst lead"
            " add-slot`, and restart it",
        )
    return format_hostlist(hosts)


def manual_burst_settings(base: Settings, provider: str, slot: str) -> Settings:
    """Return settings with which an engine makes one burst and keeps it."""
    table = base.providers.get(provider) or ProviderTable(type=provider)
    replace = msgspec.structs.replace
    # No standing minimum is kept meanwhile.
    others = {name: replace(each, standing=()) for name, each in base.providers.items()}
    return replace(
        base,
        lead=replace(base.lead, slots=(slot,)),
        deadlines=replace(base.deadlines, idle=Seconds(math.inf)),
        providers={**others, provider: replace(table, standing=())},
    )


def _no_reload() -> Future[dict[str, Any]]:
    raise BurstError(
        "run-burst serves this lead and cannot reload", "try again once it has ended"
    )


class ManualBurst:
    """Makes or deletes one burst with an engine of its own."""

    def __init__(self, lead: Lead, settings: Settings) -> None:
        """Serve the lead. Raises ServiceTaken, and what a daemon's start raises."""
        self._wakeup = WakeUp()
        self._session = Session(lead, settings, self._wakeup, _no_reload)
        self._session.start()

    def up(self, provider: str, slot: str, nodes: int) -> BurstId:
        """Begin to make a burst in the slot, and return its id.

        The burst is for the burstable jobs that wait. Without such jobs it has `nodes`
        nodes, or all of the slot if that is 0. Raises BurstError that says why there is
        no burst.
        """
        session = self._session
        if self._in(slot):
            names = ", ".join(burst.id for burst in self._in(slot))
            raise BurstError(f"{slot} is leased by {names}", "run-burst --down")
        if provider in session.engine.snapshot.records.health:
            # A person asks for it: a provider that was disabled is tried again.
            session.engine.post(lambda tx: commands.enable_provider(tx, provider))
        self._wait_for_offers(provider)
        if not self._in(slot):
            size = nodes or len(self._session.engine.snapshot.world.slots[0].ranks)
            demand = burst_requests.request_nodes(size, provider, slot)
            asked = session.engine.post(
                lambda tx: burst_requests.make_requested_burst(tx, demand)
            )
            session.tick(0.0)
            decision, _ = asked.result(0)
            if decision.reason is not Reason.PROPOSED:
                raise BurstError(burst_requests.describe_request(decision, demand))
        return self._in(slot)[0].id

    def down(self, slot: str) -> list[BurstId]:
        """Begin to delete the bursts in the slot, and return their ids."""
        self._session.tick(0.0)
        found = self._in(slot)
        if not found:
            raise BurstError(f"there is no burst in {slot}", "burst status -a")
        known = self._session.engine.snapshot.world.providers
        for burst in found:
            if burst.lease.provider not in known:
                raise BurstError(
                    f"{burst.id} was made by provider {burst.lease.provider},"
                    " which these settings do not have",
                    "give --provider, or the flags with which it was made",
                )
        for burst in found:
            self._ask_down(burst.id)
        return [burst.id for burst in found]

    def undo(self, slot: str) -> list[BurstId]:
        """Begin to delete bursts in the slot that are not online yet."""
        found = [b.id for b in self._in(slot) if b.state is not State.ONLINE]
        for burst in found:
            self._ask_down(burst)
        return found

    def rows(self, burst: BurstId) -> Iterator[dict[str, Any]]:
        """Yield the burst's row after each tick, without end."""
        while True:
            snapshot = self._session.engine.snapshot
            found = snapshot.records.bursts[burst]
            yield burst_row(found, snapshot.world, snapshot.now)
            self._session.tick(_SHOW_EVERY)

    def close(self) -> None:
        """Release every job that is still held, and stop serving the lead."""
        session = self._session
        held = commands.held_jobs(session.engine.snapshot.records)
        if held:
            session.engine.post(lambda tx: commands.release_jobs(tx, held))
            session.tick(0.0)
        session.close()

    def _ask_down(self, burst_id: str) -> None:
        """Have a burst deleted from the next tick on."""
        note = "taken down by hand"
        self._session.engine.post(
            lambda tx: commands.take_down_burst(tx, burst_id, note)
        )

    def _in(self, slot: str) -> list[Burst]:
        records = self._session.engine.snapshot.records
        hosts = set(parse_hostlist(slot))
        return [b for b in records.live if set(b.lease.hosts) <= hosts]

    def _wait_for_offers(self, provider: str) -> None:
        session = self._session
        ends = session.clock() + _OFFERS_DEADLINE
        session.tick(0.0)
        while session.engine.snapshot.world.providers[provider].offers is None:
            view = session.engine.snapshot.world.providers[provider]
            if session.clock() > ends:
                raise BurstError(
                    f"provider {provider} did not return its offers:"
                    f" {view.trouble or 'no answer'}",
                    f"burst doctor --provider {provider}",
                )
            session.tick(_SHOW_EVERY)
        session.tick(0.0)
