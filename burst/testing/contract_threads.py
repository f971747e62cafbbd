# SPDX-License-Identifier: MIT
"""The part of the provider contract about concurrent calls."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from burst.provider import BurstSpec
from burst.testing.fixtures import Begin, ContractFixtures, MakeSpec
from burst.testing.trial import Trial


class ThreadChecks(ContractFixtures):
    """Checks providers that allow calls from several threads (`concurrency`)."""

    def test_called_for_two_bursts_at_a_time_it_makes_and_ends_both(
        self, trial: Trial, spec: BurstSpec, make_spec: MakeSpec, begin: Begin
    ) -> None:
        provider = trial.provider
        if provider.concurrency < 2:
            pytest.skip("it does not say that it may be called from several threads")
        specs = [spec, make_spec(spec.owner, 1)]
        # Each trial has a thread of its own that calls the same provider.
        trials = [trial, begin(spec.owner, lambda _: provider)]
        listing = begin(spec.owner, lambda _: provider)
        pairs = list(zip(trials, specs, strict=True))
        _at_a_time([partial(one.provision, made) for one, made in pairs], listing)
        for one, made in pairs:
            one.wait_running(made)
        assert set(listing.observe()) == {made.burst_id for made in specs}
        _at_a_time(
            [partial(one.reap_all, made.burst_id) for one, made in pairs], listing
        )
        for one, made in pairs:
            one.wait_empty(made)


def _at_a_time(calls: Sequence[Callable[[], object]], listing: Trial) -> None:
    """Make these calls concurrently, and list bursts until all have returned."""
    together = threading.Barrier(len(calls))

    def make(call: Callable[[], object]) -> None:
        together.wait()
        call()

    with ThreadPoolExecutor(len(calls)) as pool:
        under_way = [pool.submit(make, call) for call in calls]
        while not all(call.done() for call in under_way):
            listing.observe()
        for call in under_way:
            call.result()
