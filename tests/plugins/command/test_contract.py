# SPDX-License-Identifier: MIT
"""A site's program in sh keeps the contract of providers, and its followers join."""

from __future__ import annotations

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
from burst.testing.contract import Count, MakeProvider, MakeSpec
from tests.embedded_instance import embedded_instance
from tests.plugins.command.played import Site, kill
from tests.support.fluxlead import short_directory


class Dying(WrappedProvider):
    """A provider whose first `provision` reaches no site; then there is one."""

    def __init__(self, provider: Provider, down: Path) -> None:
        super().__init__(provider)
        self._down = down

    def provision(self, spec: BurstSpec) -> None:
        self._down.touch()
        try:
            super().provision(spec)
        finally:
            self._down.unlink()


class SiteBackend(Backend):
    def __init__(self, site: Site, lead: Lead) -> None:
        self.site = site
        self.lead = lead

    def unreachable(self) -> AbstractContextManager[object]:
        return self.site.knob("down")

    def stalled(self) -> AbstractContextManager[object]:
        return self.site.knob("stalled")

    def full(self, owner: str) -> Provider:
        (self.site.path / "full").touch()
        return self.site.provider(owner)

    def crashing(self, owner: str, when: Moment) -> Provider:
        provider = self.site.provider(owner)
        if when == "before":
            return Dying(provider, self.site.path / "down")
        (self.site.path / "cut").touch()
        return provider

    def named(self, owner: str, name: str) -> Provider:
        return self.site.provider(owner, name)

    def kill(self, spec: BurstSpec, host: str) -> None:
        kill(self.site.nodes(spec.burst_id)[host])

    def public(self, spec: BurstSpec) -> str:
        lines = [
            Path(f"/proc/{pid}/cmdline").read_text()
            for pid in self.site.nodes(spec.burst_id).values()
        ]
        return "\n".join([*lines, (self.site.path / "asked").read_text()])

    def given(self, spec: BurstSpec) -> str:
        [config] = (self.site.path / "shared").rglob("broker.toml")
        return config.read_text()

    def left(self, spec: BurstSpec) -> Sequence[str]:
        found = [p for p in self.site.path.rglob("*") if spec.burst_id in str(p)]
        rundirs = Path("/tmp").glob(f"{spec.burst_id}-*")
        return [str(path) for path in [*found, *rundirs]]

    def online(self, spec: BurstSpec) -> AbstractSet[int]:
        return self.lead.observe().online


@pytest.fixture(scope="module")
def lead() -> Iterator[Lead]:
    with embedded_instance() as instance, closing(instance.lead()) as lead:
        lead.listen(lambda: None)
        yield lead


class TestCommandProvider(ProviderContract):
    patience = 90.0
    pause = 0.1
    ends_leases = True
    lease = 5.0

    @pytest.fixture
    def site(self) -> Iterator[Site]:
        with short_directory() as path:
            site = Site(path)
            yield site
            site.close()

    @pytest.fixture
    def backend(self, site: Site, lead: Lead) -> Backend:
        return SiteBackend(site, lead)

    @pytest.fixture
    def identity(self, lead: Lead) -> LeadIdentity:
        return lead.identity()

    @pytest.fixture
    def make_provider(self, site: Site) -> MakeProvider:
        return site.provider

    @pytest.fixture
    def make_interrupted(self, site: Site) -> MakeProvider:
        return lambda owner: Dying(site.provider(owner), site.path / "down")

    @pytest.fixture
    def make_spec(self, identity: LeadIdentity) -> MakeSpec:
        def make(owner: str, number: int) -> BurstSpec:
            lead = msgspec.structs.replace(identity, owner=owner)
            spec = example_spec(lead, number, "nodes")
            no_gpus = msgspec.structs.replace(spec.shape, gpus=0)
            return msgspec.structs.replace(spec, shape=no_gpus)

        return make

    @pytest.fixture
    def misconfigured(self, site: Site) -> Callable[[], Provider]:
        return lambda: site.provider("owner-a", program=("/nowhere/site",))

    @pytest.fixture
    def count(self, site: Site) -> Count | None:
        return lambda spec: len(site.nodes(spec.burst_id))
