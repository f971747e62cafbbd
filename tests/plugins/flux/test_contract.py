# SPDX-License-Identifier: MIT
"""FluxProvider keeps the contract on a real Flux, by followers of an embedded lead."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from burst.lead import Lead
from burst.provider import BurstSpec, Provider
from burst.testing import Backend, ProviderContract
from burst.testing.backend import Moment
from burst.testing.fixtures import Count, MakeProvider
from tests.flux_instance import FLUX, MISSING
from tests.plugins.flux.other_flux import OtherInstance
from tests.support.contract_lead import WithLead, files_of
from tests.support.follower_processes import ProcessBackend, followers
from tests.support.interrupted import Interrupted

pytestmark = [pytest.mark.flux, pytest.mark.skipif(not FLUX, reason=MISSING)]


class OtherBackend(ProcessBackend):
    def __init__(self, other: OtherInstance, lead: Lead) -> None:
        super().__init__(lead)
        self.other = other

    def unreachable(self) -> AbstractContextManager[object]:
        return self.other.away()

    def stalled(self) -> AbstractContextManager[object]:
        return self.other.stopped()

    def full(self, owner: str) -> Provider:
        return Interrupted(self.other.provider(owner), self.other.disabled)

    def crashing(self, owner: str, when: Moment) -> Provider:
        if when == "before":
            return Interrupted(self.other.provider(owner), self.other.away)
        self.other.lose_an_answer()
        return self.other.provider(owner)

    def named(self, owner: str, name: str) -> Provider:
        return self.other.provider(owner, name)

    def public(self, spec: BurstSpec) -> str:
        jobs = [self.other.flux("job", "info", j, "jobspec") for j in self.other.jobs()]
        return "\n".join([*followers(spec).values(), *jobs])

    def given(self, spec: BurstSpec) -> str:
        [config] = self.other.files.rglob("broker.toml")
        return config.read_text()

    def left(self, spec: BurstSpec) -> Sequence[str]:
        return [*files_of(spec, self.other.files), *self.other.jobs()]


class TestFluxProvider(WithLead, ProviderContract):
    pause = 1.0
    ends_leases = True
    lease = 4.0

    @pytest.fixture
    def backend(self, other: OtherInstance, lead: Lead) -> Backend:
        return OtherBackend(other, lead)

    @pytest.fixture
    def make_provider(self, other: OtherInstance) -> MakeProvider:
        return other.provider

    @pytest.fixture
    def misconfigured(
        self, other: OtherInstance, tmp_path: Path
    ) -> Callable[[], Provider]:
        # What it writes is not reaped.
        elsewhere = str(tmp_path / "files")
        return lambda: other.provider("owner-a", flux="/nowhere/flux", dir=elsewhere)

    @pytest.fixture
    def count(self) -> Count | None:
        return lambda spec: len(followers(spec))
