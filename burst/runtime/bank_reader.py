# SPDX-License-Identifier: MIT
"""Asks flux-accounting for users' banks and limits, on a thread of its own.

No tick waits for it. An answer is valid for LIFETIME_S; without a valid answer, banks
are not verified.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import msgspec

from burst import log
from burst.errors import BurstError
from burst.lead import Accounting
from burst.model.accounting import AccountingFacts
from burst.model.banks import NOT_VERIFIED, Banks
from burst.model.fsd import format_fsd

ASK_EVERY_S = 15.0
"""Seconds between two requests. A user who has just got a bank, or is no longer over a
limit, waits this long for bursts. An answer of ten thousand associations takes the job
manager some 30 ms."""
ACCOUNTING_S = 10.0
"""How long flux-accounting may take to answer, in seconds. It usually answers within a
second; after this deadline it counts as hung, and its last answer stays valid for
LIFETIME_S. Only at the daemon's start do jobs with a bank wait for the answer."""
LIFETIME_S = 3600.0
"""How long an answer is valid, in seconds. Associations change rarely, and while the
database is down for an upgrade, a budget must not open to every user who names its
bank."""
_GONE = "flux-accounting has ended"


class BankReader:
    """Runs the thread. Call `current` from any thread, the rest from the engine's."""

    def __init__(
        self,
        lead: Accounting,
        wake: Callable[[], None],
        clock: Callable[[], float],
        pause: float = ASK_EVERY_S,
    ) -> None:
        """The thread pauses `pause` seconds between requests."""
        self._lead, self._wake, self._clock = lead, wake, clock
        self._pause = pause
        self._answered_at = 0.0
        self._closing = threading.Event()
        self._banks = self._late = NOT_VERIFIED
        self._facts: AccountingFacts | None = None
        self._said = ""
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread, if it was not started."""
        if self._thread is None:
            limit = format_fsd(ACCOUNTING_S)
            self._late = Banks(unverified=f"flux-accounting did not answer in {limit}")
            self._banks = Banks(awaited_until=self._clock() + ACCOUNTING_S)
            self._thread = threading.Thread(
                target=self._run, name="bank-reader", daemon=True
            )
            self._thread.start()

    def current(self) -> Banks:
        """Return what is known of banks now; the same object until that changes."""
        banks = self._banks
        if banks.awaited_until and self._clock() >= banks.awaited_until:
            return self._late
        return banks

    def facts(self) -> AccountingFacts | None:
        """Return limits, their use, and the weights of usage; None if not known."""
        return self._facts

    def close(self) -> None:
        """End the thread, without waiting for a request under way."""
        self._closing.set()

    def _run(self) -> None:
        while not self._closing.is_set():
            banks, facts = self._banks, self._facts
            self._banks = self._ask()
            if self._banks is not banks or _differ(self._facts, facts):
                self._wake()
            self._closing.wait(self._pause)

    def _ask(self) -> Banks:
        """Return what is known after one more request."""
        asked_at = self._clock()
        try:
            found = self._lead.associations(ACCOUNTING_S)
        except BurstError as error:
            return self._without_answer(str(error))
        except Exception as error:  # noqa: BLE001 - the thread must go on
            log.failure("asking flux-accounting for banks", error=error)
            return self._without_answer(repr(error))
        if found is None:
            return self._without_answer("")
        self._answered_at = self._clock()
        self._say("")
        facts, found = found.facts, msgspec.structs.replace(found, facts=None)
        if facts is not None:
            self._facts = msgspec.structs.replace(facts, read_at=asked_at)
        if found == self._banks.associations:
            return self._banks
        return Banks(found)

    def _without_answer(self, why: str) -> Banks:
        """Return the last answer while it is valid; after that, why there is none."""
        held = self._banks.associations is not None
        told = why or _GONE
        if held and self._clock() < self._answered_at + LIFETIME_S:
            self._say(f"{told}; its last answer is used for {format_fsd(LIFETIME_S)}")
            return self._banks
        if held or why:
            self._say(f"{told}; the banks that jobs name are used")
        self._facts = None
        now = Banks(unverified=why) if why else NOT_VERIFIED
        return self._banks if now == self._banks else now

    def _say(self, trouble: str) -> None:
        """Log what changed."""
        if trouble and trouble != self._said:
            log.warn("banks are not verified: %s", trouble)
        elif self._said and not trouble:
            log.say("banks are verified again")
        self._said = trouble


def _differ(one: AccountingFacts | None, other: AccountingFacts | None) -> bool:
    """Tell whether they differ in anything but the time at which they were read."""
    if one is None or other is None:
        return one is not other
    return msgspec.structs.replace(one, read_at=other.read_at) != other
