# SPDX-License-Identifier: MIT
"""Gives Prometheus' client the metrics, made at each scrape from what the last tick saw
and recorded, and from what the process has counted since its start.

Nothing is kept between two scrapes, so a provider or queue that is gone has no value,
and neither has what is unknown.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

import msgspec
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from burst import __version__
from burst.config import BudgetSettings
from burst.core import cost
from burst.core.behaviour import behaviour_of
from burst.core.forecast.grades import ALL
from burst.core.money.budget import Budgets
from burst.core.money.ledger import Costs
from burst.core.money.money import Money, to_units
from burst.core.money.periods import sum_of
from burst.core.provider_calls import is_overdue, is_past_lease
from burst.core.provider_health import WORKS, FailureKind, Health, Outcome, Verb
from burst.core.report import slot_rows
from burst.core.world import World
from burst.http.metrics.catalog import CATALOG, PREFIX, Labels, Metric, Samples, Value
from burst.model.burst import Burst, Result, State
from burst.model.distribution import BOUNDS, Distribution
from burst.model.hold import HELD_BY_US
from burst.model.reason import Reason
from burst.runtime.daemon_state import DaemonState
from burst.runtime.snapshot import Snapshot
from burst.runtime.tally import STAGES, Tally

_ERRORS = [each.value for each in Outcome if each not in {*WORKS, Outcome.PENDING}]


class DaemonCollector(Collector):
    """All metrics of a daemon. Any thread may call it."""

    def __init__(self, state: DaemonState) -> None:
        self._state = state

    def collect(self) -> Iterator[Family]:
        """Return each metric of the catalog that has a value now."""
        samples = read_samples(self._state)
        for name, values in samples.values.items():
            yield _family(CATALOG[name], values)


def read_samples(state: DaemonState) -> Samples:
    """Return the values of all metrics.

    While no lead is served, there are only those of the process itself: which bursts
    exist is not known then.
    """
    samples = Samples()
    samples.put("build_info", 1, __version__)
    samples.put("lead_up", not state.why_lead_away())
    served = state.served
    snapshot = served.snapshot() if served is not None else None
    add_tally(samples, state.tally, snapshot.world if snapshot else None)
    if snapshot is not None:
        add_snapshot(samples, snapshot)
    return samples


def _family(metric: Metric, values: dict[Labels, Value]) -> Family:
    name = PREFIX + metric.name
    if metric.kind == "histogram":
        histogram = HistogramMetricFamily(name, metric.text, labels=metric.labels)
        for labels, value in values.items():
            assert isinstance(value, Distribution)
            histogram.add_metric(labels, _buckets(value), value.total)
        return histogram
    plain = GaugeMetricFamily if metric.kind == "gauge" else CounterMetricFamily
    family: GaugeMetricFamily | CounterMetricFamily
    family = plain(name, metric.text, labels=metric.labels)
    for labels, value in values.items():
        assert not isinstance(value, Distribution)
        family.add_metric(labels, float(value))
    return family


def _buckets(found: Distribution) -> list[tuple[str, float]]:
    buckets: list[tuple[str, float]] = []
    upto = 0
    for bound, count in zip((*BOUNDS, math.inf), found.counts, strict=True):
        upto += count
        buckets.append(("+Inf" if math.isinf(bound) else f"{bound:g}", upto))
    return buckets


def add_tally(samples: Samples, tally: Tally, world: World | None) -> None:
    """Add what was counted; for providers and offers in `world` also counts of 0."""
    providers = world.providers if world is not None else {}
    offers = [
        (name, offer.name)
        for name, view in providers.items()
        for offer in view.offers or ()
    ]
    samples.put("tick_duration_seconds", tally.ticks)
    samples.put("tick_failures_total", tally.failed_ticks)
    samples.put("forecast_error_seconds", tally.forecast_errors)
    # Copied in one step each, as the daemon adds to them meanwhile.
    samples.put_all("bursts_started_total", dict(tally.started), offers)
    results = [(*offer, result.value) for offer in offers for result in Result]
    samples.put_all("bursts_ended_total", dict(tally.ended), results)
    stages = [(name, stage) for name in providers for stage in STAGES]
    samples.put_all("stage_duration_seconds", dict(tally.stages), stages)
    calls = [(name, verb.value) for name in providers for verb in Verb]
    samples.put_all("provider_call_duration_seconds", dict(tally.calls), calls)
    errors = [(*call, kind) for call in calls for kind in _ERRORS]
    samples.put_all("provider_call_errors_total", dict(tally.call_errors), errors)


QUARANTINED = "quarantined"
LIVE_STATES = (
    *(state.value for state in State if state is not State.INACTIVE),
    QUARANTINED,
)
SLOT_STATES = ("free", "leased", "occupied", "drained", "unfreed", "quarantined")
_NOT_WAITING = (Reason.RUNNING, Reason.ENDED)


def add_snapshot(samples: Samples, snapshot: Snapshot) -> None:
    """Add the metrics that a snapshot gives."""
    samples.put("last_tick_timestamp_seconds", snapshot.now)
    samples.put("unreadable_records", len(snapshot.records.unreadable))
    notify = snapshot.settings.notify
    if notify.command:
        samples.put("notices_failing", "command" in snapshot.untold, "command")
    if notify.webhook:
        samples.put("notices_failing", "webhook" in snapshot.untold, "webhook")
    _add_bursts(samples, snapshot)
    _add_jobs(samples, snapshot)
    _add_providers(samples, snapshot)
    _add_money(samples, snapshot)
    _add_forecasts(samples, snapshot)


def _add_bursts(samples: Samples, snapshot: Snapshot) -> None:
    world, now = snapshot.world, snapshot.now
    live = snapshot.records.live
    providers = [*world.providers]
    states = Counter((b.lease.provider, _state(b)) for b in live)
    every = [(name, state) for name in providers for state in LIVE_STATES]
    samples.put_all("bursts", states, every)
    made = [burst for burst in live if burst.state is not State.NEW]

    def by_provider(
        name: str, bursts: Iterable[Burst], count: Callable[[Burst], float]
    ) -> None:
        sums: Counter[str] = Counter()
        for burst in bursts:
            # A counter takes floats, too, but its type has only whole numbers.
            sums[burst.lease.provider] += count(burst)  # type: ignore[assignment]
        always = [(provider,) for provider in providers]
        samples.put_all(name, {(key,): n for key, n in sums.items()}, always)

    by_provider("nodes_provisioned", made, lambda burst: burst.lease.nodes)
    by_provider("overdue_bursts", live, is_overdue)
    by_provider("past_lease_bursts", live, lambda b: is_past_lease(b, now))
    by_provider("money_per_hour", live, cost.per_hour)
    orphans = Counter((orphan.provider,) for orphan in snapshot.orphans)
    samples.put_all("orphans", orphans, [(name,) for name in providers])
    if world.lead is not None:
        online = [burst for burst in live if burst.state is State.ONLINE]
        up = {b.id: behaviour_of(b).nodes_up(b, world) or 0 for b in made}
        entries = snapshot.records.entries

        def idle(burst: Burst) -> int:
            entry = entries.get(burst.id)
            return max(0, up[burst.id] - (entry.use.busy if entry else 0))

        by_provider("nodes_up", made, lambda burst: up[burst.id])
        by_provider("nodes_idle", online, idle)


def _state(burst: Burst) -> str:
    return QUARANTINED if burst.quarantined else burst.state.value


def _add_jobs(samples: Samples, snapshot: Snapshot) -> None:
    holds, lead = snapshot.records.holds, snapshot.world.lead
    held = sum(hold.state in HELD_BY_US for hold in holds.values())
    samples.put("held_jobs", held)
    if lead is None:
        return
    jobs = lead.jobs
    waiting = Counter(
        (decision.reason, jobs[job].queue if job in jobs else "")
        for job, decision in snapshot.decisions.items()
    )
    for (reason, queue), number in waiting.items():
        if reason not in _NOT_WAITING:
            samples.put("pending_jobs", number, reason.word, queue)
    rows = slot_rows(snapshot.records, snapshot.world)
    slots = Counter((row["state"],) for row in rows)
    samples.put_all("slots", slots, [(state,) for state in SLOT_STATES])


def _add_providers(samples: Samples, snapshot: Snapshot) -> None:
    now = snapshot.now
    for name, view in snapshot.world.providers.items():
        health = snapshot.records.health.get(name, Health())
        samples.put("provider_up", bool(view.read_at and not view.trouble), name)
        samples.put("provider_breaker_open", health.until > now, name)
        samples.put("provider_disabled", bool(health.disabled), name)
        kinds = (FailureKind.OFFER, FailureKind.UNUSABLE)
        noted = {offer for kind in kinds for offer in health.rows_of(kind)}
        aside = sum(health.set_aside(offer)[0] > now for offer in noted)
        samples.put("offers_set_aside", aside, name)


def _add_money(samples: Samples, snapshot: Snapshot) -> None:
    records = snapshot.records
    settled = sum_of(period.total for period in records.periods.values())
    for kind in msgspec.structs.fields(Costs):
        amount = to_units(getattr(settled, kind.name))
        samples.put("money_settled_total", amount, kind.name)
    samples.put("money_wasted_total", to_units(settled.wasted))
    reserved: Counter[str] = Counter(dict.fromkeys(snapshot.world.providers, 0))
    for entry in records.entries.values():
        reserved[entry.provider] += entry.reserved
    for provider, sum_reserved in reserved.items():
        samples.put("money_reserved", to_units(Money(sum_reserved)), provider)
    userids = snapshot.world.userids
    states = Budgets(snapshot.settings.budget, records, userids, snapshot.now).states()
    for number, state in enumerate(states, 1):
        used = state.used / state.limit if state.limit else 1.0
        samples.put("budget_used_ratio", used, budget_label(state.budget, number))


def budget_label(budget: BudgetSettings, number: int) -> str:
    """Return the name of a budget; a budget of users is named by its number.

    So no metric names a user, since others may read it.
    """
    if budget.match.user:
        return f"users of budget {number}, per {budget.per}"
    return str(budget)


def _add_forecasts(samples: Samples, snapshot: Snapshot) -> None:
    if snapshot.forecasts is None:
        return
    grade = snapshot.forecasts.grades.get(ALL)
    if grade is not None and not math.isclose(grade.forecasts, 0):
        samples.put("forecast_near_ratio", grade.near / grade.forecasts)
        samples.put("forecast_inside_ratio", grade.inside / grade.forecasts)
