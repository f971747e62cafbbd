# SPDX-License-Identifier: MIT
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from burst.kits.kube import Cluster
from burst.provider import BurstSpec
from tests.kits.kubeserver import Said, api_server, cluster_of
from tests.kits.played_namespace import Namespace
from tests.kits.pods import make_spec


@pytest.fixture
def spec(tmp_path: Path) -> BurstSpec:
    return make_spec(tmp_path)


@pytest.fixture
def server() -> Iterator[Said]:
    with api_server() as said:
        yield said


@pytest.fixture
def cluster(server: Said) -> Cluster:
    return cluster_of(server)


@pytest.fixture
def namespace(server: Said) -> Iterator[Namespace]:
    with closing(Namespace(server)) as namespace:
        yield namespace
