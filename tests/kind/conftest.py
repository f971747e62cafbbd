# SPDX-License-Identifier: MIT
"""The one cluster that all tests have which need one beside what a burst makes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kind.kindnear import NearCluster
from tests.kubelab.kind import hostimage
from tests.support.fluxlead import short_directory

IMAGE = "local.test/burst:1"


@pytest.fixture(scope="session")
def near() -> Iterator[NearCluster]:
    """Give it; its tests are of the group `near`, so that one worker makes it."""
    hostimage.make(IMAGE)
    with short_directory() as directory:
        cluster = NearCluster(directory, IMAGE)
        try:
            cluster.make()
            yield cluster
        finally:
            cluster.delete()
