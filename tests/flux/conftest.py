# SPDX-License-Identifier: MIT
from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.flux.site import Site, open_site


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    with open_site() as site:
        monkeypatch.setenv("PYTHONPATH", site.packages)
        yield site
