# SPDX-License-Identifier: MIT
"""LocalProvider keeps the contract, with any program as follower."""

from __future__ import annotations

from burst.testing import ProviderContract
from tests.contract.local_contract import WithLocalProvider


class TestLocalProvider(WithLocalProvider, ProviderContract):
    pass
