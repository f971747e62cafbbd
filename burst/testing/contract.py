# SPDX-License-Identifier: MIT
"""The contract of all providers, as tests: subclass `ProviderContract`, run pytest."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import msgspec
import pytest

from burst.errors import (
    ConfigError,
    InsufficientCapacity,
    NotFound,
    ProviderError,
    SpecRefused,
)
from burst.model.burst import BurstId
from burst.provider import BurstSpec, Provider
from burst.testing.backend import Backend
from burst.testing.contract_failures import FailureChecks
from burst.testing.contract_resize import ResizeChecks
from burst.testing.contract_threads import ThreadChecks
from burst.testing.contract_traces import TraceChecks, check_apart
from burst.testing.examples import isolate
from burst.testing.fixtures import Begin, Count, MakeProvider, MakeSpec
from burst.testing.trial import Trial

__all__ = ["Begin", "Count", "MakeProvider", "MakeSpec", "ProviderContract"]


class ProviderContract(FailureChecks, TraceChecks, ThreadChecks, ResizeChecks):
    """The tests that each provider must pass: subclass it, define these fixtures.

    The name of the subclass begins with `Test`.

    `make_provider`
        `make_provider(owner)` returns a new provider object for that owner. All objects
        of one test share a backend: a second object of the same owner is a restart.
    `make_spec`
        `make_spec(owner, number)` returns the spec of a burst of at least two nodes
        that the provider can make. Equal arguments give equal specs; another number
        gives other hosts. `burst.testing.example_spec` returns such specs.
    `make_interrupted`
        `make_interrupted(owner)` returns a provider whose next `provision` raises after
        it has made a part of the burst, as if the process died.
    `misconfigured`
        `misconfigured()` returns a provider with settings with which no call can work,
        such as credentials that are denied. It may raise the error itself.

    If followers can be counted without the provider:

    `count`
        `count(spec)` returns how many followers of a burst exist. Without it, no test
        finds followers that a provider makes but does not list.

    If the backend can be made to fail, or be read without the provider:

    `backend`
        A `burst.testing.Backend` that overrides the methods that are possible. Tests
        that need other methods are skipped; `pytest -rs` lists them.

    Times are attributes of the class: `patience`, `pause`, `prompt`, `lease`, in
    seconds. A test of your own may give each wait of `Trial` another limit, `within=`.

    Bursts are reaped at the end of each test, whatever its result.
    """

    def test_offers_are_sane(self, trial: Trial) -> None:
        offers = trial.offers()
        assert offers, "a provider has an offer"
        for offer in offers:
            assert offer.shape.cores >= 1, offer
        assert trial.offers() == offers, (
            "offers are what can be made at all, not what is free now"
        )

    def test_specs_fit_the_offers(
        self, trial: Trial, spec: BurstSpec, make_spec: MakeSpec
    ) -> None:
        """Check the fixtures: with wrong specs, the other tests say little."""
        offers = {offer.name: offer for offer in trial.offers()}
        assert spec.offer in offers
        offer = offers[spec.offer]
        assert 2 <= len(spec.hosts) <= offer.max_nodes
        assert offer.shape.holds(spec.shape)
        assert make_spec(spec.owner, 0) == spec
        for other in (make_spec(spec.owner, 1), make_spec(f"{spec.owner}-b", 0)):
            assert other.burst_id != spec.burst_id
        assert not set(make_spec(spec.owner, 1).hosts) & set(spec.hosts)

    def test_nothing_is_listed_before_anything_is_made(self, trial: Trial) -> None:
        assert trial.observe() == {}

    def test_a_burst_is_listed_and_then_runs(
        self, trial: Trial, spec: BurstSpec
    ) -> None:
        trial.provision(spec)
        trial.wait_running(spec)
        assert set(trial.observe()) == {spec.burst_id}

    def test_provisioned_twice_it_is_made_once(
        self, trial: Trial, spec: BurstSpec
    ) -> None:
        trial.provision(spec)
        trial.provision(spec)
        trial.wait_running(spec)
        trial.provision(spec)
        trial.wait_running(spec)

    def test_a_restart_finds_what_was_made(
        self, trial: Trial, spec: BurstSpec, begin: Begin
    ) -> None:
        trial.provision(spec)
        restarted = begin(spec.owner)
        restarted.wait_running(spec)
        restarted.provision(spec)
        restarted.wait_running(spec)
        restarted.reap_all(spec.burst_id)
        restarted.wait_empty(spec)

    def test_half_built_it_is_listed_and_completed(
        self, trial: Trial, half_built: BurstSpec
    ) -> None:
        trial.wait_listed(half_built.burst_id, lambda _: True, "to be listed")
        trial.provision(half_built)
        trial.wait_running(half_built)

    def test_half_built_it_can_be_reaped(
        self, trial: Trial, half_built: BurstSpec
    ) -> None:
        trial.reap_all(half_built.burst_id)
        trial.wait_empty(half_built)

    def test_another_owners_burst_is_neither_seen_nor_touched(
        self, trial: Trial, spec: BurstSpec, begin: Begin, make_spec: MakeSpec
    ) -> None:
        """An owner may be called as another, with something after it."""
        other = make_spec(f"{spec.owner}-b", 1)
        stranger = begin(other.owner)
        check_apart({trial: spec, stranger: other})

    def test_reaped_it_is_gone(self, trial: Trial, spec: BurstSpec) -> None:
        trial.provision(spec)
        trial.wait_running(spec)
        trial.reap_all(spec.burst_id)
        trial.wait_empty(spec)
        assert trial.reap(spec.burst_id), "what is gone stays NotFound"

    def test_reaping_what_never_was_is_not_found(self, trial: Trial) -> None:
        assert trial.reap(BurstId("burst-9-000000"))

    def test_reaped_while_it_is_made_it_does_not_come_back(
        self, trial: Trial, spec: BurstSpec
    ) -> None:
        trial.provision(spec)
        trial.reap_all(spec.burst_id)
        trial.wait_empty(spec)
        trial.wait_empty(spec)

    def test_provisioned_while_it_is_reaped_it_still_ends(
        self, trial: Trial, spec: BurstSpec
    ) -> None:
        trial.provision(spec)
        trial.wait_running(spec)
        trial.reap(spec.burst_id)
        with contextlib.suppress(ProviderError):  # it may refuse or accept
            trial.provider.provision(spec)
        trial.reap_all(spec.burst_id)
        trial.wait_empty(spec)

    def test_two_bursts_are_independent(
        self, trial: Trial, spec: BurstSpec, make_spec: MakeSpec
    ) -> None:
        other = make_spec(spec.owner, 1)
        trial.provision(spec)
        trial.provision(other)
        trial.wait_running(spec)
        trial.wait_running(other)
        trial.reap_all(spec.burst_id)
        trial.wait(lambda: set(trial.observe()) == {other.burst_id}, "one to be left")
        trial.wait_running(other)

    @pytest.mark.parametrize("change", ["offer", "nodes", "shape"])
    def test_what_it_does_not_sell_it_declines(
        self, trial: Trial, spec: BurstSpec, change: str
    ) -> None:
        offers = trial.offers()
        most = max(offer.max_nodes for offer in offers)
        cores = max(offer.shape.cores for offer in offers)
        many = tuple(f"{spec.hosts[0]}x{n}" for n in range(most + 1))
        wrong = {
            "offer": msgspec.structs.replace(spec, offer="no-such-offer"),
            "nodes": msgspec.structs.replace(
                spec, hosts=many, ranks=tuple(range(1, most + 2))
            ),
            "shape": msgspec.structs.replace(
                spec, shape=msgspec.structs.replace(spec.shape, cores=cores + 1)
            ),
        }[change]
        # Not Refused itself: the daemon would disable the provider.
        with pytest.raises((SpecRefused, InsufficientCapacity)):
            trial.provision(wrong)
        trial.reap_all(wrong.burst_id)
        trial.wait_empty(wrong)

    def test_isolated_it_tells_how_its_program_ended(
        self, trial: Trial, begin: Begin, spec: BurstSpec
    ) -> None:
        isolated = self._run_isolated(trial, begin, spec)
        trial.reap_all(isolated.burst_id)
        trial.wait_empty(isolated)

    def test_isolated_its_program_runs_once(
        self, trial: Trial, begin: Begin, spec: BurstSpec, backend: Backend
    ) -> None:
        isolated = self._run_isolated(trial, begin, spec)
        assert backend.runs(isolated) == 1

    @pytest.mark.parametrize("call", ["provision", "observe", "reap"])
    def test_misconfigured_it_says_so_in_errors_of_the_taxonomy(
        self, misconfigured: Callable[[], Provider], spec: BurstSpec, call: str
    ) -> None:
        """Credentials may end while bursts live: these are not gone, only not seen."""
        with pytest.raises((ConfigError, ProviderError)) as caught:
            _use(misconfigured(), spec, call)
        assert caught.value.what
        assert not isinstance(caught.value, NotFound), "it cannot know that"

    def _run_isolated(self, trial: Trial, begin: Begin, spec: BurstSpec) -> BurstSpec:
        """Run a program until two daemons have seen its end; return its spec."""
        sold = [offer for offer in trial.offers() if "isolated" in offer.modes]
        if not (self.programs and sold):
            pytest.skip("there is no offer of isolated bursts, or no program runs here")
        isolated = isolate(spec)
        trial.provision(isolated)
        trial.wait_ended(isolated.burst_id)
        # A daemon that lost the answer in a restart provisions the burst again.
        later = begin(spec.owner)
        later.provision(isolated)
        later.wait_ended(isolated.burst_id)
        return isolated


def _use(provider: Provider, spec: BurstSpec, call: str) -> None:
    if call == "provision":
        provider.offers()
        provider.provision(spec)
    elif call == "observe":
        provider.observe()
    else:
        provider.reap(spec.burst_id)
