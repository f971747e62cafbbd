# SPDX-License-Identifier: MIT
from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cli.cli_harness import DaemonProcess, Desk, open_desk
from tests.embedded_instance import EmbeddedInstance, embedded_instance


@pytest.fixture
def instance() -> Iterator[EmbeddedInstance]:
    with embedded_instance() as instance:
        yield instance


@pytest.fixture
def desk(instance: EmbeddedInstance) -> Iterator[Desk]:
    with open_desk(instance) as desk:
        yield desk


@pytest.fixture(scope="module")
def shared() -> Iterator[tuple[EmbeddedInstance, Desk, DaemonProcess]]:
    """One instance with a daemon, for tests that leave it as they found it."""
    with (
        embedded_instance() as instance,
        open_desk(instance) as desk,
        desk.daemon() as daemon,
    ):
        yield instance, desk, daemon
