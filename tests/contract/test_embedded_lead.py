# SPDX-License-Identifier: MIT
"""The embedded lead keeps the contract of a lead."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.contract.lead_contract import LastingContract, LeadContract
from tests.embedded_instance import EmbeddedInstance, embedded_instance


class TestEmbeddedLead(LeadContract, LastingContract):
    @pytest.fixture
    def instance(self) -> Iterator[EmbeddedInstance]:
        with embedded_instance() as instance:
            yield instance
