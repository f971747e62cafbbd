# SPDX-License-Identifier: MIT
"""A site's program in sh keeps the contract of providers, and its followers join."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from burst.lead import Lead
from burst.provider import BurstSpec, Provider
from burst.testing import Backend, ProviderContract
from burst.testing.backend import Moment
from burst.testing.contract import Count, MakeProvider
from tests.plugins.command.played import Site, kill
from tests.support.contract_lead import LeadBackend, WithLead, files_of
from tests.support.fluxlead import short_directory
from tests.support.interrupted import Interrupted


class SiteBackend(LeadBackend):
    def __init__(self, site: Site, lead: Lead) -> None:
        super().__init__(lead)
        self.site = site

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
            return Interrupted(provider, self.unreachable)
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
        return files_of(spec, self.site.path)


class TestCommandProvider(WithLead, ProviderContract):
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
    def make_provider(self, site: Site) -> MakeProvider:
        return site.provider

    @pytest.fixture
    def misconfigured(self, site: Site) -> Callable[[], Provider]:
        return lambda: site.provider("owner-a", program=("/nowhere/site",))

    @pytest.fixture
    def count(self, site: Site) -> Count | None:
        return lambda spec: len(site.nodes(spec.burst_id))
