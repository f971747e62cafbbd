# SPDX-License-Identifier: MIT
"""SlurmProvider keeps the contract, and its followers join; Slurm is a fake."""

from __future__ import annotations

from burst.testing import ProviderContract
from tests.plugins.slurm.slurm_contract import WithSlurmProvider


class TestSlurmProvider(WithSlurmProvider, ProviderContract):
    lease = 4.0
