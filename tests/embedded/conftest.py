# SPDX-License-Identifier: MIT
"""What all tests of the embedded lead have."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """Restore the handlers of signals that a broker in this process has set."""
    before = {
        number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)
    }
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
