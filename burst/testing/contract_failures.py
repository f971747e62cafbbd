# SPDX-License-Identifier: MIT
"""The part of the provider contract about failures."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from burst.errors import (
    CertificateError,
    ConfigError,
    InsufficientCapacity,
    ProviderError,
    Refused,
    Transient,
)
from burst.provider import BurstSpec, Failure, Phase
from burst.testing.backend import Backend, Moment
from burst.testing.fixtures import Begin, ContractFixtures
from burst.testing.trial import Trial

_BOTH = pytest.mark.parametrize("when", ["before", "after"])


class FailureChecks(ContractFixtures):
    """Backends that are unreachable, stalled or full; crashes; followers that die."""

    @pytest.fixture
    def crashed(
        self, backend: Backend, begin: Begin, spec: BurstSpec, when: Moment
    ) -> BurstSpec:
        """Return the spec of a burst during whose provision the daemon died."""
        trial = begin(spec.owner, lambda owner: backend.crashing(owner, when))
        trial.give(spec)
        with pytest.raises(Exception):  # noqa: B017, PT011  any: it stands for a crash
            trial.provider.provision(spec)
        return spec

    def test_unreachable_it_raises_and_never_says_that_nothing_is_there(
        self, trial: Trial, spec: BurstSpec, backend: Backend
    ) -> None:
        broken = backend.unreachable()
        trial.provision(spec)
        trial.wait_running(spec)
        # `reap` is the last: it may note that the burst is to end before it raises.
        calls: list[Callable[[], object]] = [
            trial.observe,
            lambda: trial.provision_once(spec),
            lambda: trial.reap_once(spec.burst_id),
        ]
        with broken:
            for call in calls:
                with pytest.raises((Transient, Refused)):
                    call()
        trial.wait_listed(spec.burst_id, lambda _: True, "to be listed again")

    def test_a_follower_that_dies_is_told_with_a_reason(
        self, trial: Trial, spec: BurstSpec, backend: Backend
    ) -> None:
        trial.provision(spec)
        trial.wait_running(spec)
        backend.kill(spec, spec.hosts[-1])
        trial.wait_listed(
            spec.burst_id,
            lambda status: status.phase is not Phase.RUNNING and bool(status.why),
            "to be reported as not running, with a reason",
        )

    def test_the_end_of_one_follower_is_not_that_of_the_others(
        self, trial: Trial, spec: BurstSpec, backend: Backend
    ) -> None:
        """The daemon waits for the jobs on the others before it reaps the burst."""
        trial.provision(spec)
        trial.wait_running(spec)
        backend.end(spec, spec.hosts[0])
        trial.wait_others_go_on(spec, spec.hosts[0])
        trial.reap_all(spec.burst_id)
        trial.wait_empty(spec)

    def test_provision_does_not_wait_for_progress(
        self, trial: Trial, spec: BurstSpec, backend: Backend
    ) -> None:
        with backend.stalled():
            trial.begin(spec)
            trial.wait_listed(
                spec.burst_id, lambda s: s.phase is Phase.PENDING, "to be pending"
            )
        trial.provision(spec)
        trial.wait_running(spec)

    def test_reap_does_not_wait_for_progress(
        self, trial: Trial, spec: BurstSpec, backend: Backend
    ) -> None:
        trial.provision(spec)
        trial.wait_running(spec)
        with backend.stalled():
            trial.reap(spec.burst_id)
        trial.reap_all(spec.burst_id)
        trial.wait_empty(spec)

    def test_without_room_it_says_so_by_insufficient_capacity(
        self, begin: Begin, spec: BurstSpec, backend: Backend
    ) -> None:
        """`provision` raises it, or the burst fails later with `Failure.CAPACITY`."""
        trial = begin(spec.owner, backend.full)
        try:
            trial.provision(spec)
        except InsufficientCapacity:
            pass
        else:
            trial.wait_listed(
                spec.burst_id,
                lambda s: s.failure is Failure.CAPACITY,
                "to fail for want of capacity",
            )
        trial.reap_all(spec.burst_id)
        trial.wait_empty(spec)

    @_BOTH
    def test_after_a_crash_at_the_request_it_is_made_once(
        self, crashed: BurstSpec, trial: Trial
    ) -> None:
        trial.observe()
        trial.provision(crashed)
        trial.wait_running(crashed)

    @_BOTH
    def test_after_a_crash_at_the_request_nothing_outlives_the_reaping(
        self, crashed: BurstSpec, trial: Trial
    ) -> None:
        trial.reap_all(crashed.burst_id)
        trial.wait_empty(crashed)

    @pytest.mark.parametrize("content", [None, b"", b"no certificate"])
    def test_a_certificate_that_cannot_be_used_is_an_error_of_the_taxonomy(
        self, trial: Trial, spec: BurstSpec, tmp_path: Path, content: bytes | None
    ) -> None:
        """A provider that does not read the file may succeed. Other errors are bugs."""
        path = tmp_path / "unusable.cert"
        if content is not None:
            path.touch(mode=0o600)
            path.write_bytes(content)
        lead = msgspec.structs.replace(spec.lead, certificate=str(path))
        trial.given[spec.burst_id] = spec
        with contextlib.suppress(ProviderError, ConfigError, CertificateError):
            trial.provision_once(msgspec.structs.replace(spec, lead=lead))
