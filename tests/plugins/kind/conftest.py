# SPDX-License-Identifier: MIT
from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.plugins.kind.harness import Desk, open_desk


@pytest.fixture
def desk() -> Iterator[Desk]:
    with open_desk() as desk:
        yield desk
