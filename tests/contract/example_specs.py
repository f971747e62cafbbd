# SPDX-License-Identifier: MIT
"""Bursts for the contract of providers whose offer is called `nodes`."""

from __future__ import annotations

from pathlib import Path

import pytest

from burst.provider import BurstSpec
from burst.testing import example_lead, example_spec
from burst.testing.fixtures import ContractFixtures, MakeSpec


class ExampleSpecs(ContractFixtures):
    """Specs of an example lead."""

    @pytest.fixture
    def make_spec(self, tmp_path: Path) -> MakeSpec:
        def make(owner: str, number: int) -> BurstSpec:
            return example_spec(example_lead(tmp_path, owner), number, "nodes")

        return make
