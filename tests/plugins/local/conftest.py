# SPDX-License-Identifier: MIT
from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.plugins.local.harness import LocalHarness, open_bench


@pytest.fixture
def local() -> Iterator[LocalHarness]:
    with open_bench() as local:
        yield local
