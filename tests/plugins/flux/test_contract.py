# SPDX-License-Identifier: MIT
"""FluxProvider keeps the contract on a real Flux, by followers of an embedded lead."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager, closing
from pathlib import Path

import msgspec
import pytest

from burst.lead import Lead
from burst.model.lead import LeadIdentity
from burst.provider import BurstSpec, Provider
from burst.testing import Backend, ProviderContract, WrappedProvider, example_spec
from burst.testing.backend import Moment
from burst.testing.fixtures import Count, MakeProvider, MakeSpec
from tests.embedded_instance import embedded_instance
from tests.flux_instance import FLUX, MISSING
from tests.plugins.flux.other_flux import OtherInstance, kill, rundirs
from tests.plugins.slurm.slurm_contract import followers
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.flux, pytest.mark.skipif(not FLUX, reason=MISSING)]


class Dying(WrappedProvider):
    """A provider whose first `provision` reaches no instance; then there is one."""

    def __init__(self, other: OtherInstance, owner: str) -> None:
        super().__init__(other.provider(owner))
        self._other = other

    def provision(self, spec: BurstSpec) -> None:
        with self._other.away():
            super().provision(spec)


class Closed(Dying):
    """A provider whose instance takes no job."""

    def provision(self, spec: BurstSpec) -> None:
        with self._other.disabled():
            self.provider.provision(spec)


class OtherBackend(Backend):
    def __init__(self, other: OtherInstance, lead: Lead) -> None:
        self.other = other
        self.lead = lead

    def unreachable(self) -> AbstractContextManager[object]:
        return self.other.away()

    def stalled(self) -> AbstractContextManager[object]:
        return self.other.stopped()

    def full(self, owner: str) -> Provider:
        return Closed(self.other, owner)

    def crashing(self, owner: str, when: Moment) -> Provider:
        if when == "before":
            return Dying(self.other, owner)
        self.other.lose_an_answer()
        return self.other.provider(owner)

    def named(self, owner: str, name: str) -> Provider:
        return self.other.provider(owner, name)

    def kill(self, spec: BurstSpec, host: str) -> None:
        self._signal(spec, host, signal.SIGKILL)

    def end(self, spec: BurstSpec, host: str) -> None:
        self._signal(spec, host, signal.SIGTERM)

    def _signal(self, spec: BurstSpec, host: str, number: signal.Signals) -> None:
        rank = spec.ranks[spec.hosts.index(host)]
        # Before that it may not heed a signal.
        wait_until(lambda: rank in self.online(spec), f"{host} to join")
        for pid, line in followers(spec).items():
            if f"--hostname {host} " in line:
                kill(pid, number)

    def public(self, spec: BurstSpec) -> str:
        jobs = [self.other.flux("job", "info", j, "jobspec") for j in self.other.jobs()]
        return "\n".join([*followers(spec).values(), *jobs])

    def given(self, spec: BurstSpec) -> str:
        [config] = self.other.files.rglob("broker.toml")
        return config.read_text()

    def left(self, spec: BurstSpec) -> Sequence[str]:
        files = self.other.files.rglob("*")
        found = [path for path in files if spec.burst_id in str(path)]
        return [*map(str, [*found, *rundirs(spec)]), *self.other.jobs()]

    def online(self, spec: BurstSpec) -> AbstractSet[int]:
        return self.lead.observe().online


class TestFluxProvider(ProviderContract):
    patience = 90.0
    pause = 1.0
    prompt = 60.0
    ends_leases = True
    lease = 8.0

    @pytest.fixture(scope="class")
    @classmethod
    def lead(cls) -> Iterator[Lead]:
        with embedded_instance() as instance, closing(instance.lead()) as lead:
            lead.listen(lambda: None)
            yield lead

    @pytest.fixture
    def identity(self, lead: Lead) -> LeadIdentity:
        return lead.identity()

    @pytest.fixture
    def backend(self, other: OtherInstance, lead: Lead) -> Backend:
        return OtherBackend(other, lead)

    @pytest.fixture
    def make_provider(self, other: OtherInstance) -> MakeProvider:
        return other.provider

    @pytest.fixture
    def make_interrupted(self, other: OtherInstance) -> MakeProvider:
        return lambda owner: Dying(other, owner)

    @pytest.fixture
    def make_spec(self, identity: LeadIdentity) -> MakeSpec:
        def make(owner: str, number: int) -> BurstSpec:
            mine = msgspec.structs.replace(identity, owner=owner)
            spec = example_spec(mine, number, "nodes")
            no_gpus = msgspec.structs.replace(spec.shape, gpus=0)
            return msgspec.structs.replace(spec, shape=no_gpus)

        return make

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
