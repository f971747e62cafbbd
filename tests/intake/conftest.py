# SPDX-License-Identifier: MIT
from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.flux_instance import FluxInstance, flux_instance
from tests.intake.desk import Typist


@pytest.fixture
def extra() -> dict[str, Any]:
    """Return tables for the lead's configuration; tests parametrize it."""
    return {}


@pytest.fixture
def instance(extra: Mapping[str, Any]) -> Iterator[FluxInstance]:
    with flux_instance(extra) as instance:
        yield instance


@pytest.fixture
def typist(instance: FluxInstance) -> Typist:
    return Typist(instance)
