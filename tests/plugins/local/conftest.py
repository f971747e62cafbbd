# SPDX-License-Identifier: MIT
from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.plugins.local.harness import Bench, open_bench


@pytest.fixture
def bench() -> Iterator[Bench]:
    with open_bench() as bench:
        yield bench
