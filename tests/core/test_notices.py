# SPDX-License-Identifier: MIT
"""Which conditions a person must know of, and that each is told once."""

import pytest

from burst.config import BudgetSettings, Settings
from burst.core.lifecycle import apply, quarantine
from burst.core.money.budget import Budgets
from burst.core.notices import Notice, Told, due_notices, find_notices, still_told
from burst.core.orphans import Orphan
from burst.core.provider_health import FailureRecord, Health
from burst.core.records import Records
from burst.core.world import Halt, ProviderView
from burst.model.burst import BurstId, State
from burst.model.event import Event
from tests.builders import T0, but, view, world
from tests.core.money.budgets import entry
from tests.lifecycles import WHOLE_WAY, leased, run

NOW = T0 + 1000


def found(records: Records, *orphans: Orphan) -> dict[str, Notice]:
    return find_notices(records, orphans, [], NOW)


def test_a_store_that_refuses_the_records_is_told_once_it_lasts() -> None:
    halt = Halt("writing to the store", NOW, "no space left", "make room")
    told = find_notices(Records(), (), [], NOW, halt)
    assert told["halt"].severity == "critical"
    assert "no space left" in told["halt"].text
    assert told["halt"].advice == "make room; the daemon tries again by itself"
    assert due_notices(told, {}, {"halt": NOW}, NOW + 29) == []
    assert due_notices(told, {}, {"halt": NOW}, NOW + 30) == [told["halt"]]


def test_of_a_daemon_that_is_well_nothing_is_told() -> None:
    well = Health(
        rows={
            "offer/a": FailureRecord(2, NOW + 9),
            "offer/b": FailureRecord(9, NOW + 9, nodes=4),
            "offer/c": FailureRecord(9, NOW - 1),
        }
    )
    burst = run(*WHOLE_WAY[:4])
    assert not found(Records(bursts={burst.id: burst}, health={"gke": well}))


def test_providers_that_are_not_used() -> None:
    ill = Health(
        rows={
            "method/offers": FailureRecord(why="no credentials"),
            "offer/n2": FailureRecord(3, NOW + 9),
        },
        failed={"observe": 4},
        until=NOW - 1,
    )
    told = found(Records(health={"gke": ill}))
    assert [*told] == ["disabled/gke", "breaker/gke", "failing/gke/n2"]
    assert told["disabled/gke"].severity == "critical"
    assert told["disabled/gke"].text == "provider gke is disabled: no credentials"
    # Until it works again, also while one attempt decides.
    assert "failed 4 times in a row" in told["breaker/gke"].text
    assert told["failing/gke/n2"].text == "3 bursts of gke/n2 in a row did not come up"
    assert told["failing/gke/n2"].kept_until == NOW + 9
    assert told["failing/gke/n2"].kind == "failing"


def test_bursts_that_a_person_must_see_to() -> None:
    drains = leased(run(*WHOLE_WAY[:8]), end=NOW - 400)
    late = apply(drains, Event(T0 + 100, "overdue", {"note": "drain: a job"}))
    stuck = quarantine(late, "nobody knows", T0 + 200)
    told = found(Records(bursts={stuck.id: stuck}))
    name = stuck.id
    assert [*told] == [f"quarantine/{name}", f"overdue/{name}/drain", f"lease/{name}"]
    assert told[f"quarantine/{name}"].text.endswith("not act on it: nobody knows")
    gone = but(stuck, state=State.INACTIVE)
    assert not found(Records(bursts={gone.id: gone}))


def test_an_orphan_is_told_once_it_is_sure() -> None:
    orphan = Orphan("gke", BurstId("burst-0-abc"), "no record of it", ())
    told = found(Records(), orphan)
    (name,) = told
    assert name == "orphan/gke/burst-0-abc"
    assert due_notices(told, {}, {name: NOW - 59}, NOW) == []
    assert due_notices(told, {}, {}, NOW) == []
    assert due_notices(told, {}, {name: NOW - 60}, NOW) == [told[name]]
    assert due_notices(told, {name: Told(NOW)}, {name: NOW - 60}, NOW) == []


@pytest.mark.parametrize(
    ("used", "kind", "severity"),
    [(79, "", ""), (80, "budget-warn", "warning"), (100, "budget-spent", "critical")],
)
def test_budgets(used: int, kind: str, severity: str) -> None:
    live = entry(used, made=NOW)
    records = Records(entries={live.burst: live})
    settings = but(
        Settings(), budget=(BudgetSettings(limit=100.0), BudgetSettings(limit=0.0))
    )
    states = Budgets(settings.budget, records, {}, NOW).states()
    told = [*find_notices(records, (), states, NOW).values()]
    assert [(notice.kind, notice.severity) for notice in told] == (
        [(kind, severity)] if kind else []
    )
    for notice in told:
        assert notice.id == f"{kind}/everything, per month"
        assert notice.kept_until == states[0].window.ends
        assert f"{used}.00 of 100.00" in notice.text


def test_what_is_over_is_told_again_and_what_lasts_is_not() -> None:
    now = Notice(id="breaker/gke", severity="warning", text="x", advice="y")
    told = {
        "breaker/gke": Told(T0),
        "breaker/old": Told(T0),
        "budget-warn/all": Told(T0, NOW + 1),
        "budget-warn/past": Told(T0, NOW - 1),
    }
    seen = world(view())
    kept = still_told(told, {now.id: now}, seen, NOW)
    assert [*kept] == ["breaker/gke", "budget-warn/all"]


def test_what_cannot_be_read_is_not_over() -> None:
    orphan = {"orphan/gke/burst-0-abc": Told(T0)}
    for provider, kept in (
        (ProviderView(read_at=NOW), False),
        (ProviderView(read_at=NOW, trouble="no answer"), True),
        (ProviderView(), True),
    ):
        seen = but(world(view()), providers={"gke": provider})
        assert bool(still_told(orphan, {}, seen, NOW)) == kept
    # Of a provider that the settings have no more nothing is known, and nothing told.
    seen = but(world(view()), providers={})
    assert not still_told(orphan, {}, seen, NOW)
