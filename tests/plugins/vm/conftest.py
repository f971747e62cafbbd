# SPDX-License-Identifier: MIT
"""A cloud for each test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.plugins.vm.fake_cloud import FakeCloud


@pytest.fixture
def cloud(tmp_path: Path) -> FakeCloud:
    return FakeCloud(tmp_path)
