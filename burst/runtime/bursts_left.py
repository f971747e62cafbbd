# SPDX-License-Identifier: MIT
"""Takes down the live bursts of a lead that is lost, or logs the commands for it."""

from __future__ import annotations

import shlex
from pathlib import Path

import msgspec

from burst import log
from burst.config import Settings
from burst.core.provider_health import Outcome
from burst.core.world import LastCall
from burst.errors import BurstError
from burst.model.fsd import format_fsd
from burst.runtime import provider_registry
from burst.runtime.call_line import CallLines
from burst.runtime.clock import Clock
from burst.runtime.engine_config import LoadProviders
from burst.runtime.last_call import ProviderBurst
from burst.runtime.reap_bursts import reap_until_gone
from burst.runtime.session import Session

RECONNECT_S = 300.0
"""How long the daemon tries to reach a lead that went away before it ends: longer than
the restart of a broker. Whoever restarts the lead then restarts the daemon, too."""


class BurstsLeft(msgspec.Struct, frozen=True, kw_only=True):
    """The bursts that were live when the connection to a lead was lost."""

    settings: Settings
    owner: str
    path: Path | None
    """The settings file; None where there is none."""
    bursts: tuple[ProviderBurst, ...] = ()
    listed: frozenset[str] = frozenset()
    """Providers that can list what they made without the lead."""

    @classmethod
    def of(cls, session: Session, path: Path | None) -> BurstsLeft:
        """Return the live bursts of a session that ends."""
        live = session.engine.snapshot.records.live
        return cls(
            settings=session.settings,
            owner=session.owner,
            path=path,
            bursts=tuple((burst.lease.provider, burst.id) for burst in live),
            listed=frozenset(
                name
                for name, provider in session.providers.items()
                if provider.has("list_all")
            ),
        )

    @property
    def _reaps(self) -> bool:
        return self.settings.daemon.on_stop == "reap"

    def say_lost(self) -> None:
        """Log what happens to the bursts of a lead that was just lost."""
        if not self.bursts:
            return
        limit = format_fsd(RECONNECT_S)
        names = ", ".join(burst for _, burst in self.bursts)
        late = (
            "they are taken down" if self._reaps else "they stay until you delete them"
        )
        log.warn(
            "live bursts: %s; they go on if the lead is back within %s; if it is not,"
            " %s",
            names,
            limit,
            late,
        )
        if not self._reaps:
            self.say_commands()

    def end(
        self,
        lines: CallLines,
        load: LoadProviders = provider_registry.load_providers,
    ) -> None:
        """Reap the bursts if `[daemon] on_stop` says so; log how to delete the rest.

        A burst is reaped once no call of `lines` for its provider is under way: it may
        still be making that burst.
        For a daemon that ends without its lead. Deleted bursts stay on record, and the
        next daemon of the lead finds that nothing of them is left.
        """
        if not self.bursts:
            return
        left = self
        if self._reaps:
            left = msgspec.structs.replace(self, bursts=self._reap(lines, load))
        left.say_commands()

    def _reap(self, lines: CallLines, load: LoadProviders) -> tuple[ProviderBurst, ...]:
        """Delete the bursts; return those that are still there."""
        limit = self.settings.deadlines.reap
        clock = Clock()
        ends = clock() + limit
        log.say("deleting all bursts, for at most %s", format_fsd(limit))
        try:
            providers = load(self.settings, self.owner)
        except BurstError as error:
            log.warn("%s", error)
            return self.bursts
        # Those with a call under way come last: it may hang for all of the time.
        busy = {name for name in providers if lines.of(name).busy}
        groups = [providers.keys() - busy, *({name} for name in sorted(busy))]
        gone: set[ProviderBurst] = set()
        for names in groups:
            if not all(lines.of(name).is_quiet(ends - clock()) for name in names):
                continue
            bursts = [key for key in self.bursts if key[0] in names]
            left = reap_until_gone(bursts, providers, _tell, ends - clock())
            gone |= {key for key in bursts if key[1] not in left}
        return tuple(key for key in self.bursts if key not in gone)

    def say_commands(self) -> None:
        """Log how to delete the bursts."""
        for provider in dict.fromkeys(provider for provider, _ in self.bursts):
            names = ", ".join(name for found, name in self.bursts if found == provider)
            how = f"without the lead: {self._command(provider)}"
            if provider not in self.listed:
                how = "start the lead and its daemon again: its type needs the lead"
            log.warn(
                "%s of provider %s: to delete what is left, %s", names, provider, how
            )

    def _command(self, provider: str) -> str:
        words = ["burst", "gc", "--provider", provider, "--owner", self.owner]
        if self.path is not None:
            words += ["-c", str(self.path.absolute())]
        return shlex.join([*words, "--yes"])


def _tell(key: ProviderBurst, call: LastCall) -> None:
    provider, burst = key
    how = call.note
    if call.outcome is Outcome.NOT_FOUND:
        how = "it is gone"
    elif call.outcome is Outcome.OK:
        how = "it is being deleted"
    log.say("%s of provider %s: %s", burst, provider, how)
