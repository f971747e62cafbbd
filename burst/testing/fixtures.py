# SPDX-License-Identifier: MIT
"""The fixtures of the provider contract: those that an author overrides, and others."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterator

import pytest

from burst.provider import BurstSpec, Provider
from burst.testing.backend import Backend
from burst.testing.trial import Trial, TrialTiming

MakeProvider = Callable[[str], Provider]
MakeSpec = Callable[[str, int], BurstSpec]
Count = Callable[[BurstSpec], int]
Begin = Callable[..., Trial]

_MISSING = "override the fixture {}: the docstring of ProviderContract says how"


class ContractFixtures:
    """The fixtures of `ProviderContract`, whose docstring describes them."""

    patience = 60.0
    """Seconds until a burst must be listed, run or be gone."""
    pause = 0.2
    """Seconds between two calls of `observe`."""
    prompt = 90.0
    """Seconds within which one call must return."""
    ends_leases = False
    """Whether the provider promises to end a burst at its `lease_end` by itself."""
    lease = 5.0
    """Seconds that the lease of such a burst lasts; must be longer than its start."""
    programs = False
    """Whether the programs of isolated bursts really run where this is tested."""

    @pytest.fixture
    def make_provider(self) -> MakeProvider:
        raise NotImplementedError(_MISSING.format("make_provider"))

    @pytest.fixture
    def make_spec(self) -> MakeSpec:
        raise NotImplementedError(_MISSING.format("make_spec"))

    @pytest.fixture
    def make_interrupted(self) -> MakeProvider:
        raise NotImplementedError(_MISSING.format("make_interrupted"))

    @pytest.fixture
    def misconfigured(self) -> Callable[[], Provider]:
        raise NotImplementedError(_MISSING.format("misconfigured"))

    @pytest.fixture
    def count(self) -> Count | None:
        return None

    @pytest.fixture
    def backend(self) -> Backend:
        return Backend()

    @pytest.fixture
    def begin(
        self, make_provider: MakeProvider, count: Count | None
    ) -> Iterator[Begin]:
        """Return a function that begins trials. Their bursts are reaped at the end."""
        patience = TrialTiming(self.patience, self.pause, self.prompt)
        with contextlib.ExitStack() as trials:

            def begin_one(owner: str, make: MakeProvider = make_provider) -> Trial:
                trial = Trial(make(owner), patience, count)
                trials.callback(trial.close)
                return trial

            yield begin_one

    @pytest.fixture
    def owner(self) -> str:
        """Return an owner that no other run of the tests has."""
        return f"owner-{uuid.uuid4().hex[:8]}"

    @pytest.fixture
    def trial(self, begin: Begin, owner: str) -> Trial:
        return begin(owner)

    @pytest.fixture
    def spec(self, make_spec: MakeSpec, owner: str) -> BurstSpec:
        return make_spec(owner, 0)

    @pytest.fixture
    def half_built(
        self, begin: Begin, make_interrupted: MakeProvider, spec: BurstSpec
    ) -> BurstSpec:
        """Return the spec of a burst whose provision stopped half way."""
        trial = begin(spec.owner, make_interrupted)
        trial.give(spec)
        with pytest.raises(Exception):  # noqa: B017, PT011  any: it stands for a crash
            trial.provider.provision(spec)
        return spec
