# SPDX-License-Identifier: MIT
"""A cloud for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.plugins.vm.fake_cloud import FakeCloud
from tests.plugins.vm.hypervisor import Hypervisor, booting
from tests.plugins.vm.moto_cloud import MotoCloud


@pytest.fixture
def cloud(tmp_path: Path) -> FakeCloud:
    return FakeCloud(tmp_path)


@pytest.fixture
def hosts() -> Iterator[Hypervisor]:
    """Yield an imitation of EC2 over the wire, whose VMs run on this host."""
    with booting(MotoCloud) as hosts:
        yield hosts
