# SPDX-License-Identifier: MIT
from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cli.cli_harness import CliHarness, DaemonProcess, open_harness
from tests.embedded_instance import EmbeddedInstance, embedded_instance


@pytest.fixture
def instance() -> Iterator[EmbeddedInstance]:
    with embedded_instance() as instance:
        yield instance


@pytest.fixture
def cli(instance: EmbeddedInstance) -> Iterator[CliHarness]:
    with open_harness(instance) as cli:
        yield cli


@pytest.fixture(scope="module")
def shared() -> Iterator[tuple[EmbeddedInstance, CliHarness, DaemonProcess]]:
    """One instance with a daemon, for tests that leave it as they found it."""
    with (
        embedded_instance() as instance,
        open_harness(instance) as cli,
        cli.daemon() as daemon,
    ):
        yield instance, cli, daemon
