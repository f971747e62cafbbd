# SPDX-License-Identifier: MIT
"""LocalProvider keeps the contract: with any program as follower, and with Flux."""

from __future__ import annotations

from tests.contract.local_contract import LocalContract


class TestLocalProvider(LocalContract):
    pass
