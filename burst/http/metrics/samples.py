# SPDX-License-Identifier: MIT
"""Values of metrics by name and labels, before they become Prometheus' text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from burst.http.metrics.catalog import CATALOG
from burst.model.distribution import Distribution

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
