# SPDX-License-Identifier: MIT
"""An account with one cluster for each test, of one server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from burst.provider import BurstSpec
from burst.testing import example_lead, example_spec
from tests.plugins.eks.moto_eks import MotoEks, MotoServer


@pytest.fixture(scope="session")
def server() -> Iterator[MotoServer]:
    server = MotoServer()
    yield server
    server.close()


@pytest.fixture
def eks(server: MotoServer) -> MotoEks:
    return MotoEks(server)


@pytest.fixture
def spec(tmp_path: Path) -> BurstSpec:
    return example_spec(example_lead(tmp_path, "owner-a"), 0, "nodes")
