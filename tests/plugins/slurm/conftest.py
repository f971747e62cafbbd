# SPDX-License-Identifier: MIT
"""A fake Slurm for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.plugins.slurm.fake_cluster import FakeCluster
from tests.support.fluxlead import short_directory


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeCluster]:
    with short_directory() as path:
        cluster = FakeCluster(path)
        monkeypatch.setenv("PATH", f"{cluster.bin}:/usr/bin:/bin")
        yield cluster
        cluster.close()
