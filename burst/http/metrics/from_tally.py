# SPDX-License-Identifier: MIT
"""Metrics from what the process has counted since its start."""

from __future__ import annotations

from burst.core.provider_health import WORKS, Outcome, Verb
from burst.core.world import World
from burst.http.metrics.samples import Samples
from burst.model.burst import Result
from burst.runtime.tally import STAGES, Tally

_ERRORS = [each.value for each in Outcome if each not in {*WORKS, Outcome.PENDING}]


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
