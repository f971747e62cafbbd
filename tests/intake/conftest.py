# SPDX-License-Identifier: MIT
from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.cli.cli_harness import CliHarness, open_harness
from tests.flux_instance import FluxInstance, flux_instance
from tests.intake.modes import Serve, make_serve
from tests.intake.user_cli import UserCli


@pytest.fixture
def extra() -> dict[str, Any]:
    """Return tables for the lead's configuration; tests parametrize it."""
    return {}


@pytest.fixture
def instance(extra: Mapping[str, Any]) -> Iterator[FluxInstance]:
    with flux_instance(extra) as instance:
        yield instance


@pytest.fixture
def user(instance: FluxInstance) -> UserCli:
    return UserCli(instance)


@pytest.fixture
def cli(instance: FluxInstance) -> Iterator[CliHarness]:
    with open_harness(instance) as cli:
        yield cli


@pytest.fixture
def serve(cli: CliHarness, user: UserCli) -> Serve:
    return make_serve(cli, user)
