# SPDX-License-Identifier: MIT
"""One lab for the tests here, and a system instance for each test."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.multiuser.lab import Lab
from tests.multiuser.system_instance import SystemInstance, system_instance


@pytest.fixture(scope="session")
def lab() -> Iterator[Lab]:
    """Give a lab; all that runs in it ends with the session."""
    with Lab() as lab:
        yield lab


@pytest.fixture
def extra() -> dict[str, Any]:
    """Return tables for the lead's configuration; tests parametrize it."""
    return {}


@pytest.fixture
def system(lab: Lab, extra: Mapping[str, Any]) -> Iterator[SystemInstance]:
    """Give a system instance of the lab's users."""
    with system_instance(lab, extra) as instance:
        yield instance
