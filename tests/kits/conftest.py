# SPDX-License-Identifier: MIT
from __future__ import annotations

from pathlib import Path

import pytest

from burst.kits.pods.settings import PodSettings
from burst.provider import BurstSpec
from tests.kits.pods import SETTINGS, make_spec


@pytest.fixture
def settings() -> PodSettings:
    return SETTINGS


@pytest.fixture
def spec(tmp_path: Path) -> BurstSpec:
    return make_spec(tmp_path)
