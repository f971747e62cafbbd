# SPDX-License-Identifier: MIT
"""All metrics: name, kind, labels, meaning; and their values, before Prometheus' client
makes text of them. docs/metrics.md is made from them.

Names follow Prometheus' conventions: base units, `_total` for counters. No label has
users, jobs or bursts, whose number is unlimited. Money is in the unit of the
prices, which has no name here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple

from burst.model.distribution import Distribution

PREFIX = "flux_burst_"


class Metric(NamedTuple):
    """One metric. Its name is without PREFIX."""

    name: str
    kind: Literal["gauge", "counter", "histogram"]
    text: str
    labels: tuple[str, ...] = ()


_OF_PROVIDER = ("provider",)

_OF_DAEMON = (
    Metric("build_info", "gauge", "Always 1; the version is a label.", ("version",)),
    Metric("lead_up", "gauge", "1 while the lead is served and can be read."),
    Metric(
        "last_tick_timestamp_seconds",
        "gauge",
        "When the last tick was taken, in seconds since the epoch.",
    ),
    Metric("tick_duration_seconds", "histogram", "How long ticks took."),
    Metric(
        "tick_failures_total",
        "counter",
        "Ticks that could not decide or store their records, so nothing was begun.",
    ),
    Metric(
        "notices_failing",
        "gauge",
        "1 while that key of `[notify]` could not send its last notice.",
        ("by",),
    ),
    Metric("unreadable_records", "gauge", "Records in the store that cannot be read."),
)
_OF_BURSTS = (
    Metric(
        "bursts",
        "gauge",
        "Live bursts by state; `quarantined` for those.",
        ("provider", "state"),
    ),
    Metric(
        "nodes_provisioned",
        "gauge",
        "Nodes of bursts whose provider was called and that are not gone.",
        _OF_PROVIDER,
    ),
    Metric("nodes_up", "gauge", "Nodes of these bursts that are online.", _OF_PROVIDER),
    Metric(
        "nodes_idle",
        "gauge",
        "Nodes that are online and have no job, of bursts that are not drained.",
        _OF_PROVIDER,
    ),
    Metric(
        "overdue_bursts",
        "gauge",
        "Bursts that are in their state for longer than its deadline.",
        _OF_PROVIDER,
    ),
    Metric(
        "past_lease_bursts",
        "gauge",
        "Bursts that may not be gone five minutes after their lease.",
        _OF_PROVIDER,
    ),
    Metric(
        "orphans",
        "gauge",
        "Resources at providers with our tag that no record explains.",
        _OF_PROVIDER,
    ),
    Metric(
        "bursts_started_total",
        "counter",
        "Bursts whose provider was called.",
        ("provider", "offer"),
    ),
    Metric(
        "bursts_ended_total",
        "counter",
        "Bursts that are gone.",
        ("provider", "offer", "result"),
    ),
    Metric(
        "stage_duration_seconds",
        "histogram",
        "How long stages of bursts took: `provision` until all followers had started,"
        " `join` from then until online, `online` both together, `drain`, `reap` from"
        " drained until gone, `end` from a failure until gone.",
        ("provider", "stage"),
    ),
)
_OF_JOBS = (
    Metric(
        "pending_jobs",
        "gauge",
        "Burstable jobs that wait, by the reason of the last decision.",
        ("reason", "queue"),
    ),
    Metric("held_jobs", "gauge", "Jobs that the daemon holds."),
    Metric("slots", "gauge", "Rank slots by state.", ("state",)),
    Metric(
        "forecast_error_seconds",
        "histogram",
        "Between the first forecast of a job's start on own nodes and its start.",
    ),
    Metric(
        "forecast_near_ratio",
        "gauge",
        "Fraction of the forecasts that were right within ten minutes.",
    ),
    Metric(
        "forecast_inside_ratio",
        "gauge",
        "Fraction of the forecasts whose interval had the start.",
    ),
)
_OF_PROVIDERS = (
    Metric(
        "provider_up",
        "gauge",
        "1 if the provider's last answer to `observe` was not an error.",
        _OF_PROVIDER,
    ),
    Metric(
        "provider_breaker_open",
        "gauge",
        "1 while the provider gets no bursts after failures in a row.",
        _OF_PROVIDER,
    ),
    Metric(
        "provider_disabled",
        "gauge",
        "1 while the provider refuses credentials, quota or settings.",
        _OF_PROVIDER,
    ),
    Metric(
        "offers_set_aside",
        "gauge",
        "Offers that are not tried for a while.",
        _OF_PROVIDER,
    ),
    Metric(
        "provider_call_duration_seconds",
        "histogram",
        "How long calls of providers took.",
        ("provider", "method"),
    ),
    Metric(
        "provider_call_errors_total",
        "counter",
        "Calls of providers that failed: `capacity`, `transient`, `spec` (this burst"
        " is refused), `refused`, `unexpected`.",
        ("provider", "method", "kind"),
    ),
)
_OF_MONEY = (
    Metric(
        "money_per_hour",
        "gauge",
        "What an hour of the live bursts costs.",
        _OF_PROVIDER,
    ),
    Metric(
        "money_reserved",
        "gauge",
        "What live bursts may cost by their deadlines.",
        _OF_PROVIDER,
    ),
    Metric(
        "money_settled_total",
        "counter",
        "What bursts that are gone have cost, by what it was paid for; all that is on"
        " record, also from before the daemon's start.",
        ("kind",),
    ),
    Metric(
        "money_wasted_total",
        "counter",
        "The settled money that was paid for no job: all kinds but `work`.",
    ),
    Metric(
        "budget_used_ratio",
        "gauge",
        "Settled and reserved as a fraction of the budget's limit, in its present"
        " period.",
        ("budget",),
    ),
)
CATALOG: Mapping[str, Metric] = {
    metric.name: metric
    for group in (_OF_DAEMON, _OF_BURSTS, _OF_JOBS, _OF_PROVIDERS, _OF_MONEY)
    for metric in group
}
"""All metrics by name."""


Labels = tuple[str, ...]
Value = float | Distribution


class Samples:
    """Values of the metrics in CATALOG; any other name raises KeyError."""

    def __init__(self) -> None:
        self.values: dict[str, dict[Labels, Value]] = {}

    def put(self, name: str, value: Value, *labels: str) -> None:
        """Set a value."""
        assert len(labels) == len(CATALOG[name].labels), name
        self.values.setdefault(name, {})[labels] = value

    def put_all(
        self,
        name: str,
        values: Mapping[Any, Value],
        always: Iterable[Labels] = (),
    ) -> None:
        """Set values by `Labels`; 0 or an empty distribution for others in `always`.

        If a series exists before anything happens, the first event shows as an
        increase.
        """
        histogram = CATALOG[name].kind == "histogram"
        for labels in always:
            self.put(name, Distribution() if histogram else 0, *labels)
        for labels, value in values.items():
            self.put(name, value, *labels)
