# SPDX-License-Identifier: MIT
"""SlurmProvider keeps the contract on a real Slurm."""

from __future__ import annotations

import pytest

from burst.testing import ProviderContract
from tests.plugins.slurm.slurm_contract import WithSlurmProvider

pytestmark = pytest.mark.slurm


class TestSlurmProvider(WithSlurmProvider, ProviderContract):
    lease = 20.0
