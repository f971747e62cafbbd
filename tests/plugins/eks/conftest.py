# SPDX-License-Identifier: MIT
"""An account with one cluster for each test, of one server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.plugins.eks.account import Account
from tests.plugins.eks.moto_eks import EksServer


@pytest.fixture(scope="session")
def server() -> Iterator[EksServer]:
    server = EksServer()
    yield server
    server.close()


@pytest.fixture
def eks(server: EksServer, tmp_path: Path) -> Account:
    return Account(server, tmp_path)
