# SPDX-License-Identifier: MIT
"""Gives Prometheus' client the metrics, made from what is known at each scrape.

Nothing is kept between two scrapes, so a provider or queue that is gone has no value.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from burst import __version__
from burst.http.metrics.catalog import CATALOG, PREFIX, Metric
from burst.http.metrics.from_snapshot import add_snapshot
from burst.http.metrics.from_tally import add_tally
from burst.http.metrics.samples import Labels, Samples, Value
from burst.model.distribution import BOUNDS, Distribution
from burst.runtime.daemon_state import DaemonState


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
