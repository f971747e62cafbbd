# SPDX-License-Identifier: MIT
from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.cli.cli_harness import CliHarness, open_harness
from tests.flux_instance import FluxInstance
from tests.flux_pool import FluxPool
from tests.intake.modes import TABLES, Serve, make_serve
from tests.intake.user_cli import UserCli, use_scheduler


@pytest.fixture
def mode() -> str:
    """Return how jobs come to the daemon; tests parametrize it."""
    return ""


@pytest.fixture
def extra(mode: str) -> Mapping[str, Any]:
    """Return what this mode needs in the lead's configuration."""
    return TABLES.get(mode, {})


@pytest.fixture
def instance(
    flux_pool: FluxPool, extra: Mapping[str, Any], mode: str
) -> Iterator[FluxInstance]:
    """Give an instance for this mode, in that of the scheduler with ours loaded.

    It reads the tables while it runs: one lead will do for all modes but that.
    """
    ours = mode == "scheduler"
    prepare = use_scheduler if ours else None
    with flux_pool.lend(prepare=prepare) as instance:
        if extra:
            instance.reload_config(extra)
        yield instance
        if ours:
            instance.rpc("sched-burst.lend", {"jobs": {}, "ranks": ""})
            instance.rpc("sched-burst.starts", {"starts": {}})


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
