# SPDX-License-Identifier: MIT
from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from burst.model.lead import LeadIdentity
from tests.flux_instance import FluxInstance
from tests.flux_pool import FluxPool
from tests.plugins.flux.other_flux import OtherInstance, other_instance


@pytest.fixture(scope="package")
def other() -> Iterator[OtherInstance]:
    with other_instance() as other:
        yield other


@pytest.fixture(scope="module")
def lead(flux_pool: FluxPool) -> Iterator[FluxInstance]:
    """Give a lead that a module's tests have one after another."""
    with flux_pool.lend() as instance:
        yield instance


@pytest.fixture(scope="module")
def identity(lead: FluxInstance) -> LeadIdentity:
    with closing(lead.lead()) as client:
        return client.identity()
