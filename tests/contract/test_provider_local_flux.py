# SPDX-License-Identifier: MIT
"""LocalProvider keeps the contract with Flux brokers for followers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet

import pytest
from burst_local.launch import follower_command

from burst.lead_setup.lead_plan import PlannedSlot
from burst.model.shape import Shape
from burst.provider import BurstSpec
from burst.testing import example_spec
from burst.testing.contract import MakeSpec
from tests.contract.local_contract import LocalContract
from tests.support.fluxlead import FluxLead, flux_lead, needs_flux


@pytest.fixture(scope="module")
def lead() -> Iterator[FluxLead]:
    slots = [PlannedSlot(hosts=f"burst-{n}-[0-1]", shape=Shape(1)) for n in (0, 1)]
    with flux_lead(*slots) as lead:
        yield lead


@pytest.mark.flux
@needs_flux
class TestLocalProviderOnFlux(LocalContract):
    command = staticmethod(follower_command("flux"))

    @pytest.fixture
    def make_spec(self, lead: FluxLead) -> MakeSpec:
        def make(owner: str, number: int) -> BurstSpec:
            return example_spec(lead.identity(owner), number, "local")

        return make

    @pytest.fixture
    def online(self, lead: FluxLead) -> Callable[[], AbstractSet[int]] | None:
        hosts = lead.identity("any").hosts
        return lambda: {hosts.index(host) for host in lead.online()}
