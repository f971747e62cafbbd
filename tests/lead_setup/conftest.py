# SPDX-License-Identifier: MIT
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.fluxlead import short_directory


@pytest.fixture
def place() -> Iterator[Path]:
    """Give a directory that is not there yet, for the files of a lead."""
    with short_directory() as path:
        yield path / "lead"
