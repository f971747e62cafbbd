# SPDX-License-Identifier: MIT
"""The contract of a lead, kept by the lead on real Flux brokers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.contract.lead_contract import GuestContract, LastingContract, LeadContract
from tests.flux_instance import FluxInstance
from tests.flux_pool import FluxPool

pytestmark = pytest.mark.flux


class TestFluxLead(LeadContract, LastingContract, GuestContract):
    @pytest.fixture
    def instance(self, flux_pool: FluxPool) -> Iterator[FluxInstance]:
        with flux_pool.lend() as instance:
            yield instance
