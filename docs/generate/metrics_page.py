# SPDX-License-Identifier: MIT
"""docs/metrics.md: each metric of the daemon, and each alert of manifests/."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from burst.http.metrics.catalog import CATALOG, PREFIX

RULES = Path(__file__).parents[2] / "manifests/parts/monitoring/rules.yaml"

_HEAD = """\
# Metrics and alerts

This page is made from the code and from `manifests/parts/monitoring/rules.yaml` by
`make docs`. [monitoring.md](monitoring.md) says how to reach them.

## Metrics

No label names a user, a job or a burst. Money is in the unit of the prices. A metric
that cannot be read now has no value. Counters and histograms begin at 0 when the daemon
starts, except those of money, which begin with the amounts on record.

| metric | kind | labels | meaning |
|---|---|---|---|
"""
_ALERTS = """
## Alerts

| alert | severity | what it says | what to do |
|---|---|---|---|
"""


def metrics_page() -> str:
    """Return the text of docs/metrics.md."""
    return _HEAD + "".join(_metrics()) + _ALERTS + "".join(_alerts())


def _metrics() -> Iterator[str]:
    for metric in CATALOG.values():
        name, labels = f"{PREFIX}{metric.name}", ", ".join(metric.labels) or "-"
        yield f"| `{name}` | {metric.kind} | {labels} | {metric.text} |\n"


def _alerts() -> Iterator[str]:
    rules: dict[str, Any] = yaml.safe_load(RULES.read_text(encoding="utf-8"))
    for group in rules["spec"]["groups"]:
        for rule in group["rules"]:
            told = rule["annotations"]
            says = re.sub(r"\{\{ \$labels\.(\w+) \}\}", r"*\1*", told["summary"])
            severity = rule["labels"]["severity"]
            alert, act = rule["alert"], told["description"]
            yield f"| `{alert}` | {severity} | {says} | {act} |\n"
