# SPDX-License-Identifier: MIT
from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cli.cli_harness import CliHarness, open_harness
from tests.flux_instance import FluxInstance
from tests.intake.modes import Serve, make_serve
from tests.intake.user_cli import UserCli


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
