# SPDX-License-Identifier: MIT
"""The alerts and queries of manifests/parts/monitoring, and series that fire each."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from burst.http.metrics.catalog import CATALOG, PREFIX

PART = Path(__file__).parents[2] / "manifests" / "parts" / "monitoring"
_SERIES_OF = {"histogram": ("_bucket", "_sum", "_count")}
SERIES = {
    f"{PREFIX}{metric.name}{suffix}": {*metric.labels, *(("le",) if suffix else ())}
    for metric in CATALOG.values()
    for suffix in _SERIES_OF.get(metric.kind, ("",))
}
"""The names of all series, and their labels."""


class AlertCase(NamedTuple):
    """Series with which an alert fires, and with which it does not."""

    fires: Mapping[str, str]
    calm: Mapping[str, str]
    labels: Mapping[str, str] = {}
    """Those of the alert that fires, without its severity."""


def _one(metric: str, fires: str, calm: str = "0x120", **labels: str) -> AlertCase:
    text = ", ".join(f'{key}="{value}"' for key, value in labels.items())
    series = f"{PREFIX}{metric}{{{text}}}"
    return AlertCase({series: fires}, {series: calm}, labels)


_ENDED = 'flux_burst_bursts_ended_total{provider="gke", offer="n2", result="timeout"}'
_CAME = 'flux_burst_stage_duration_seconds_count{provider="gke", stage="online"}'
CASES: Mapping[str, AlertCase] = {
    "BurstDaemonDown": AlertCase({}, {"flux_burst_build_info": "1x120"}),
    "BurstLeadAway": _one("lead_up", "0x120", "1x120"),
    "BurstTicksFail": _one("tick_failures_total", "0+1x120"),
    "BurstNothingJoined": AlertCase(
        {_ENDED: "0x60 1x60", _CAME: "0x120"},
        {_ENDED: "0x60 1x60", _CAME: "0x70 1x60"},
        {"provider": "gke"},
    ),
    "BurstBreakerOpen": _one("provider_breaker_open", "0x100 1x5 0x10", provider="gke"),
    "BurstProviderDisabled": _one("provider_disabled", "1x120", provider="gke"),
    "BurstOrphan": _one("orphans", "2x120", provider="gke"),
    "BurstOverdue": _one("overdue_bursts", "1x120", provider="gke"),
    "BurstPastLease": _one("past_lease_bursts", "1x120", provider="gke"),
    "BurstQuarantined": _one("bursts", "1x120", provider="gke", state="quarantined"),
    "BurstRecordsUnreadable": _one("unreadable_records", "1x120"),
    "BurstNoticesFail": _one("notices_failing", "1x120", by="webhook"),
    "BurstBudgetWarn": _one("budget_used_ratio", "0.8x120", "1x120", budget="all"),
    "BurstBudgetSpent": _one("budget_used_ratio", "1x120", "0.99x120", budget="all"),
}
"""By alert; a value each minute for two hours, in promtool's notation."""
ONE_DOWN = AlertCase(
    {"up": "1x60 0x60", "flux_burst_build_info": "1x60"},
    {"up": "1x120", "flux_burst_build_info": "1x120"},
)
"""BurstDaemonDown for one of several daemons."""


def of_lead(lead: str, series: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the series as Prometheus has them of one of several leads."""
    for text, values in series.items():
        name, _, labels = text.rstrip("}").partition("{")
        several = ", ".join(filter(None, (labels, f'instance="{lead}"')))
        yield f"{name}{{{several}}}", values


def rules() -> list[dict[str, Any]]:
    """Return the alert rules."""
    groups = rule_groups()["groups"]
    return [rule for group in groups for rule in group["rules"]]


def rule_groups() -> dict[str, Any]:
    """Return what a file of rules for Prometheus itself has."""
    spec: dict[str, Any] = yaml.safe_load((PART / "rules.yaml").read_text())["spec"]
    return spec


def panels() -> list[dict[str, Any]]:
    """Return the panels of the dashboard."""
    text = (PART / "dashboard.json").read_text("utf-8")
    return list(json.loads(text)["panels"])


def queries() -> Iterator[str]:
    """Yield each query of dashboard and rules as Prometheus gets it."""
    for panel in panels():
        for target in panel["targets"]:
            yield target["expr"].replace("$__rate_interval", "1m")
    for rule in rules():
        yield rule["expr"]


def series_in(query: str) -> set[str]:
    """Return the names of series in a query."""
    return set(re.findall(rf"\b{PREFIX}\w+", query))


def labels_in(query: str) -> set[str]:
    """Return the labels that a query selects or sums by."""
    selected = re.findall(r"(\w+)\s*(?:=~|!~|!=|=)\s*\"", query)
    by = re.findall(r"\bby \(([^)]*)\)", query)
    return {*selected, *(word.strip() for words in by for word in words.split(","))}


def filled(template: str, labels: Mapping[str, str]) -> str:
    """Return an annotation with the labels of an alert."""
    return re.sub(r"\{\{ \$labels\.(\w+) \}\}", lambda m: labels[m[1]], template)
