# SPDX-License-Identifier: MIT
from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.plugins.kind.harness import KindHarness, open_desk


@pytest.fixture
def kind() -> Iterator[KindHarness]:
    with open_desk() as kind:
        yield kind
