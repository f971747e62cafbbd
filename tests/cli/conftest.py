# SPDX-License-Identifier: MIT
from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cli.cli_harness import CliHarness, DaemonProcess, open_harness
from tests.embedded_instance import EmbeddedInstance, embedded_instance

Shared = tuple[EmbeddedInstance, CliHarness, DaemonProcess]
Quiet = tuple[EmbeddedInstance, CliHarness]


@pytest.fixture
def instance() -> Iterator[EmbeddedInstance]:
    with embedded_instance() as instance:
        yield instance


@pytest.fixture
def cli(instance: EmbeddedInstance) -> Iterator[CliHarness]:
    with open_harness(instance) as cli:
        yield cli


@pytest.fixture(scope="module")
def shared() -> Iterator[Shared]:
    """One instance with a daemon, for tests that leave it as they found it."""
    with (
        embedded_instance() as instance,
        open_harness(instance) as cli,
        cli.daemon() as daemon,
    ):
        yield instance, cli, daemon


@pytest.fixture
def served(shared: Shared) -> CliHarness:
    """Types commands about that instance."""
    return shared[1]


@pytest.fixture(scope="module")
def unserved() -> Iterator[Quiet]:
    """One instance without a daemon, for tests that leave it as they found it."""
    with embedded_instance() as instance, open_harness(instance) as cli:
        yield instance, cli


@pytest.fixture
def quiet(unserved: Quiet) -> CliHarness:
    """Types commands about that instance."""
    return unserved[1]
