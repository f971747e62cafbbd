# SPDX-License-Identifier: MIT
"""One Slurm for the tests of a file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.slurm.slurm_lab import LINUXPROC, SlurmLab, missing
from tests.support.fluxlead import short_directory


@pytest.fixture(scope="module")
def lab(request: pytest.FixtureRequest) -> Iterator[SlurmLab]:
    proctrack = getattr(request, "param", LINUXPROC)
    if lacks := missing(proctrack):
        pytest.skip(f"there is no {lacks}")
    with short_directory() as place, SlurmLab(place, proctrack) as lab:
        yield lab


@pytest.fixture
def cluster(lab: SlurmLab, monkeypatch: pytest.MonkeyPatch) -> SlurmLab:
    for name, value in lab.environment.items():
        monkeypatch.setenv(name, value)
    lab.wait_idle()
    return lab
