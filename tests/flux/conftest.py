# SPDX-License-Identifier: MIT
from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.flux.site import Site, open_site
from tests.flux_pool import FluxPool


@pytest.fixture
def site(flux_pool: FluxPool, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    with open_site(pool=flux_pool) as site:
        site.offer_provider(monkeypatch)
        yield site
