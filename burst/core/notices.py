# SPDX-License-Identifier: MIT
"""Notices of what a person must know, and which of them are due. Pure; see `runtime`.

Each condition is reported once, and again only after it was over and has come back.
What cannot be read does not end a condition: a provider that does not answer shows no
orphans, but its orphans may still exist.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from burst.core.money.budget import BudgetState
from burst.core.money.money import format_money
from burst.core.orphans import SURE_AFTER, Orphan
from burst.core.provider_calls import is_overdue, is_past_lease
from burst.core.provider_health import FailureKind
from burst.core.records import Records
from burst.core.world import Halt, World
from burst.model.burst import Burst
from burst.model.decision import moment

REPEATED = 3
"""After how many bursts of one offer in a row that did not come up a notice is due."""
HALT_SETTLE_S = 30.0
"""For how many seconds the daemon must begin nothing before a notice is due: longer
than a restart of the store's module takes."""
Severity = Literal["warning", "critical"]


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """One condition that a person must know about."""

    id: str
    """What it is about, such as `breaker/gke`; it stays the same while it lasts."""
    severity: Severity
    text: str
    """A sentence without a full stop."""
    advice: str
    """What to do."""
    settle: float = 0.0
    """The notice is due once the condition has lasted this many seconds."""
    kept_until: float = 0.0
    """The condition does not count as over before this time, in seconds since the
    epoch: otherwise a value that moves around a limit would be reported each time."""

    @property
    def kind(self) -> str:
        """The kind of condition: the first part of the id."""
        return self.id.partition("/")[0]


class Told(msgspec.Struct, frozen=True, array_like=True):
    """A notice that was sent."""

    at: float
    kept_until: float = 0.0


def find_notices(
    records: Records,
    orphans: Iterable[Orphan],
    budgets: Sequence[BudgetState],
    now: float,
    halt: Halt | None = None,
) -> dict[str, Notice]:
    """Return the notices of all present conditions, by id."""
    found = [*_of_providers(records, now), *_of_budgets(budgets)]
    if halt is not None:
        found.append(_of_halt(halt))
    for burst in records.live:
        found += _of_burst(burst, now)
    found += (_of_orphan(orphan) for orphan in orphans)
    return {notice.id: notice for notice in found}


def still_told(
    told: Mapping[str, Told], found: Mapping[str, Notice], world: World, now: float
) -> dict[str, Told]:
    """Return the sent notices whose condition lasts, or may last: not sent again."""
    return {
        name: entry
        for name, entry in told.items()
        if name in found or entry.kept_until > now or _is_unknown(name, world)
    }


def due_notices(
    found: Mapping[str, Notice],
    told: Mapping[str, Told],
    since: Mapping[str, float],
    now: float,
) -> list[Notice]:
    """Return the notices to send now; `since` has when each condition began."""
    return [
        notice
        for name, notice in found.items()
        if name not in told and now - since.get(name, now) >= notice.settle
    ]


def _is_unknown(name: str, world: World) -> bool:
    """Tell whether a condition cannot be read now, as its provider does not answer."""
    kind, _, rest = name.partition("/")
    view = world.providers.get(rest.partition("/")[0]) if kind == "orphan" else None
    return view is not None and bool(view.trouble or not view.read_at)


def _of_providers(records: Records, now: float) -> Iterator[Notice]:
    for name, health in records.health.items():
        if health.disabled:
            yield Notice(
                id=f"disabled/{name}",
                severity="critical",
                text=f"provider {name} is disabled: {health.disabled}",
                advice=f"correct that, then burst enable {name}",
            )
        if health.until:
            failures = max(health.failed.values(), default=0)
            yield Notice(
                id=f"breaker/{name}",
                severity="warning",
                text=f"provider {name} failed {failures} times in a row: it gets no"
                " new bursts for a while",
                advice="burst explain of one of its bursts (burst status -a) says why;"
                f" burst enable {name} ends the pause",
            )
        for offer, aside in health.rows_of(FailureKind.OFFER).items():
            if aside.failures >= REPEATED and not aside.nodes and aside.until > now:
                yield Notice(
                    id=f"failing/{name}/{offer}",
                    severity="warning",
                    text=f"{aside.failures} bursts of {name}/{offer} in a row did not"
                    " come up",
                    advice="burst status -a lists them, burst explain BURST says why",
                    kept_until=aside.until,
                )
        for offer, unusable in health.rows_of(FailureKind.UNUSABLE).items():
            if unusable.until > now:
                yield Notice(
                    id=f"unusable/{name}/{offer}",
                    severity="warning",
                    text=f"{unusable.failures} bursts of {name}/{offer} in a row could"
                    f" not run jobs: {unusable.why}",
                    advice=f"correct that, then burst enable {name}",
                    kept_until=unusable.until,
                )


def _of_halt(halt: Halt) -> Notice:
    return Notice(
        id="halt",
        severity="critical",
        text=halt.text(),
        advice=f"{halt.advice}; the daemon tries again by itself",
        settle=HALT_SETTLE_S,
    )


def _of_burst(burst: Burst, now: float) -> Iterator[Notice]:
    where = f"burst {burst.id} of provider {burst.lease.provider}"
    if burst.quarantined:
        yield Notice(
            id=f"quarantine/{burst.id}",
            severity="critical",
            text=f"{where} is quarantined, so the daemon does not act on it:"
            f" {burst.quarantined}",
            advice=f"burst explain {burst.id}; burst down {burst.id} takes it down",
        )
    if is_overdue(burst):
        yield Notice(
            id=f"overdue/{burst.id}/{burst.state.value}",
            severity="warning",
            text=f"{where} is in state {burst.state.value} past its deadline",
            advice=f"burst explain {burst.id} says what it waits for",
        )
    if is_past_lease(burst, now):
        yield Notice(
            id=f"lease/{burst.id}",
            severity="critical",
            text=f"{where} still exists; its lease ended {moment(burst.lease.end)}",
            advice="check the provider, and delete what is left there",
        )


def _of_orphan(orphan: Orphan) -> Notice:
    return Notice(
        id=f"orphan/{orphan.provider}/{orphan.burst}",
        severity="warning",
        text=f"provider {orphan.provider} shows {orphan.burst}: {orphan.why}",
        advice="it may cost money; burst gc lists it, burst gc --yes deletes it",
        settle=SURE_AFTER,
    )


def _of_budgets(budgets: Sequence[BudgetState]) -> Iterator[Notice]:
    for state in budgets:
        # A budget with limit 0 is spent on purpose.
        if not state.limit or not state.warns:
            continue
        spent = not state.left
        yield Notice(
            id=f"budget-{'spent' if spent else 'warn'}/{state.budget}",
            severity="critical" if spent else "warning",
            text=f"budget {state.budget}: {format_money(state.used)} of"
            f" {format_money(state.limit)} is settled or reserved until"
            f" {moment(state.window.ends)}",
            advice="burst cost shows what for"
            + ("; the budget allows no further purchases" if spent else ""),
            kept_until=state.window.ends,
        )
