# SPDX-License-Identifier: MIT
"""docs/monitoring.md says of metrics and settings what the code does."""

from __future__ import annotations

from pathlib import Path

import msgspec

from burst.config import HttpSettings
from burst.http.daemon_routes import daemon_routes
from burst.http.metrics.catalog import CATALOG, PREFIX
from burst.runtime.daemon_state import DaemonState
from burst.runtime.tally import Tally

TEXT = (Path(__file__).parents[2] / "docs" / "monitoring.md").read_text("utf-8")


def rows(title: str) -> list[list[str]]:
    """Return the cells of the table whose first column has that title."""
    lines = TEXT.splitlines()
    (head,) = (n for n, line in enumerate(lines) if line.startswith(f"| {title} |"))
    found = []
    for line in lines[head + 2 :]:
        if not line.startswith("|"):
            break
        found.append([cell.strip() for cell in line.strip("|").split(" | ")])
    return found


def test_the_table_has_each_metric_as_it_is() -> None:
    assert rows("metric") == [
        [
            f"`{PREFIX}{metric.name}`",
            metric.kind,
            ", ".join(metric.labels) or "-",
            metric.text,
        ]
        for metric in CATALOG.values()
    ]


def test_the_table_has_each_route() -> None:
    routes = daemon_routes(DaemonState(Tally()))
    assert [row[0] for row in rows("path")] == [f"`{route.path}`" for route in routes]


def test_each_setting_is_told() -> None:
    for field in msgspec.structs.fields(HttpSettings):
        assert f"\n{field.name} = " in TEXT
