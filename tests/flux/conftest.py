# SPDX-License-Identifier: MIT
from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.flux.site import Site, open_site
from tests.flux_pool import FluxPool


@pytest.fixture
def site(flux_pool: FluxPool, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    with open_site(pool=flux_pool) as site:
        # Before what is there, which may say where this project itself is.
        monkeypatch.setenv("PYTHONPATH", site.packages, prepend=os.pathsep)
        yield site
