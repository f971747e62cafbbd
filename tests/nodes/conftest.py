# SPDX-License-Identifier: MIT
"""The real nodes that `make e2e` has made around this run."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.kubelab.cluster import Cluster, Joined
from tests.kubernetes.access import new_namespace


@pytest.fixture(scope="session")
def cluster() -> Cluster:
    """The lab: node-0 and node-1 with kubelets, this process at 10.200.0.1."""
    return Joined(os.environ["KUBELAB"])


@pytest.fixture
def namespace(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[str]:
    """A new namespace, named for the test; its removal is begun and not awaited."""
    with new_namespace(cluster, request.node.name) as name:
        yield name
