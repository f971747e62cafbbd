# SPDX-License-Identifier: MIT
"""The part of the provider contract for providers that resize bursts."""

from __future__ import annotations

import contextlib

import msgspec
import pytest

from burst.errors import (
    InsufficientCapacity,
    NotFound,
    ProviderError,
    Refused,
    SpecRefused,
    Transient,
)
from burst.provider import BurstSpec, Failure, Phase
from burst.testing.backend import Backend
from burst.testing.fixtures import Begin, ContractFixtures
from burst.testing.trial import Trial


class ResizeChecks(ContractFixtures):
    """Checks that bursts grow and shrink; skipped for providers without `resize`."""

    @pytest.fixture
    def resizing(self, trial: Trial) -> Trial:
        """Return the trial of a provider that has `resize`."""
        if not trial.provider.has("resize"):
            pytest.skip("not tried: bursts that grow and shrink (it has no resize)")
        return trial

    @pytest.fixture
    def small(self, resizing: Trial, spec: BurstSpec) -> BurstSpec:
        """Return the spec of a burst that runs with the first follower of `spec`."""
        first = _first(spec)
        resizing.provision(first)
        resizing.wait_running(first)
        return first

    @pytest.fixture
    def whole(self, resizing: Trial, spec: BurstSpec) -> BurstSpec:
        """Return the spec of a burst that runs with all its followers."""
        resizing.provision(spec)
        resizing.wait_running(spec)
        return spec

    @pytest.mark.usefixtures("small")
    def test_grown_it_runs_with_all_its_followers(
        self, resizing: Trial, spec: BurstSpec
    ) -> None:
        resizing.resize(spec)
        resizing.wait_running(spec)
        assert set(resizing.observe()) == {spec.burst_id}
        resizing.reap_all(spec.burst_id)
        resizing.wait_empty(spec)

    @pytest.mark.usefixtures("small")
    def test_grown_twice_it_grows_once(self, resizing: Trial, spec: BurstSpec) -> None:
        resizing.resize(spec)
        resizing.resize(spec)
        resizing.wait_running(spec)
        resizing.resize(spec)
        resizing.provision(spec)
        resizing.wait_running(spec)

    @pytest.mark.usefixtures("small")
    def test_a_restart_goes_on_with_a_growth(
        self, resizing: Trial, spec: BurstSpec, begin: Begin
    ) -> None:
        resizing.resize(spec)
        restarted = begin(spec.owner)
        restarted.resize(spec)
        restarted.wait_running(spec)
        _shrink(restarted, _first(spec))

    @pytest.mark.usefixtures("small")
    def test_reaped_while_it_grows_it_is_gone(
        self, resizing: Trial, spec: BurstSpec
    ) -> None:
        resizing.resize(spec)
        resizing.reap_all(spec.burst_id)
        resizing.wait_empty(spec)
        resizing.wait_empty(spec)

    @pytest.mark.usefixtures("small")
    def test_grown_the_end_of_its_first_follower_is_not_that_of_the_others(
        self, resizing: Trial, spec: BurstSpec, backend: Backend
    ) -> None:
        resizing.resize(spec)
        resizing.wait_running(spec)
        backend.end(spec, spec.hosts[0])
        resizing.wait_others_go_on(spec, spec.hosts[0])
        resizing.reap_all(spec.burst_id)
        resizing.wait_empty(spec)

    def test_shrunk_its_first_followers_go_on(
        self, resizing: Trial, whole: BurstSpec
    ) -> None:
        first = _first(whole)
        _shrink(resizing, first)
        resizing.resize(first)
        resizing.wait_running(first)
        resizing.reap_all(first.burst_id)
        resizing.wait_empty(whole)

    def test_shrunk_it_can_grow_again(self, resizing: Trial, whole: BurstSpec) -> None:
        _shrink(resizing, _first(whole))
        resizing.resize(whole)
        resizing.wait_running(whole)

    def test_another_burst_is_not_touched_when_one_is_resized(
        self, resizing: Trial, whole: BurstSpec, begin: Begin
    ) -> None:
        stranger = begin(f"{whole.owner}-b")
        with pytest.raises(NotFound):
            stranger.resize_once(_first(whole))
        resizing.wait_running(whole)

    def test_what_does_not_exist_is_not_made_by_a_resize(
        self, resizing: Trial, spec: BurstSpec
    ) -> None:
        with pytest.raises(NotFound):
            resizing.resize_once(spec)
        resizing.wait_empty(spec)

    def test_while_it_is_reaped_it_does_not_grow(
        self, resizing: Trial, small: BurstSpec, spec: BurstSpec
    ) -> None:
        resizing.reap(small.burst_id)
        with contextlib.suppress(ProviderError):  # refused, or the burst is gone
            resizing.resize_once(spec)
        resizing.reap_all(spec.burst_id)
        resizing.wait_empty(spec)

    def test_past_what_it_sells_it_does_not_grow(
        self, resizing: Trial, small: BurstSpec
    ) -> None:
        most = max(offer.max_nodes for offer in resizing.offers())
        more = tuple(f"{small.hosts[0]}x{n}" for n in range(most))
        ranks = tuple(range(small.ranks[0], small.ranks[0] + most + 1))
        large = msgspec.structs.replace(small, hosts=(*small.hosts, *more), ranks=ranks)
        # Not Refused itself: the daemon would disable the provider.
        with pytest.raises((SpecRefused, InsufficientCapacity)):
            resizing.resize_once(large)
        resizing.wait_running(small)

    def test_other_followers_are_no_resize(
        self, resizing: Trial, whole: BurstSpec
    ) -> None:
        """Hosts that are neither a prefix nor an extension of its own are refused."""
        last = msgspec.structs.replace(
            whole, hosts=whole.hosts[1:], ranks=whole.ranks[1:]
        )
        with pytest.raises(SpecRefused):
            resizing.resize_once(last)
        resizing.wait_running(whole)

    def test_without_room_its_first_followers_go_on(
        self, small: BurstSpec, spec: BurstSpec, begin: Begin, backend: Backend
    ) -> None:
        """`resize` raises InsufficientCapacity, or `Failure.CAPACITY` shows later."""
        trial = begin(spec.owner, backend.full)
        try:
            trial.resize(spec)
        except InsufficientCapacity:
            trial.wait_running(small)
            return
        trial.wait_listed(
            spec.burst_id,
            lambda s: s.failure is Failure.CAPACITY,
            "to lack capacity for its growth",
        )
        _shrink(trial, small)

    def test_unreachable_a_resize_raises(
        self, resizing: Trial, small: BurstSpec, spec: BurstSpec, backend: Backend
    ) -> None:
        with backend.unreachable(), pytest.raises((Transient, Refused)):
            resizing.resize_once(spec)
        resizing.wait_running(small)

    @pytest.mark.usefixtures("small")
    def test_a_resize_does_not_wait_for_progress(
        self, resizing: Trial, spec: BurstSpec, backend: Backend
    ) -> None:
        with backend.stalled():
            resizing.resize(spec)
            resizing.wait_listed(
                spec.burst_id,
                lambda s: len(s.followers) == len(spec.hosts),
                "to list the followers to come",
            )
        resizing.wait_running(spec)


def _first(spec: BurstSpec) -> BurstSpec:
    """Return the spec of the same burst with only its first follower."""
    return msgspec.structs.replace(spec, hosts=spec.hosts[:1], ranks=spec.ranks[:1])


def _shrink(trial: Trial, small: BurstSpec) -> None:
    """Shrink as the daemon does: resize until the other followers are not listed."""

    def shrunk() -> bool:
        trial.resize(small)
        status = trial.observe().get(small.burst_id)
        assert status is not None, "the burst itself is gone"
        runs = {f.host for f in status.followers if f.phase is Phase.RUNNING}
        assert runs.issuperset(small.hosts), f"its first followers ended: {status}"
        return {f.host for f in status.followers} == set(small.hosts)

    trial.wait(shrunk, "the further followers not to be listed")
    trial.wait_running(small)
