# SPDX-License-Identifier: MIT
"""The real nodes that `make e2e` has made around this run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kubernetes.access import GivenCluster, new_namespace


@pytest.fixture(scope="session")
def cluster() -> Iterator[GivenCluster]:
    """The lab: node-0 and node-1 with kubelets, this process at 10.200.0.1."""
    with GivenCluster(Path(os.environ["KUBECONFIG"])) as found:
        yield found


@pytest.fixture
def namespace(cluster: GivenCluster, request: pytest.FixtureRequest) -> Iterator[str]:
    """A new namespace, named for the test; its removal is begun and not awaited."""
    with new_namespace(cluster, request.node.name) as name:
        yield name
