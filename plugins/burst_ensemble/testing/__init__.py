# SPDX-License-Identifier: MIT
"""The contract tests for all algorithms, also in other packages. Needs pytest.

from burst_ensemble.testing import AlgorithmContract

class TestMyAlgorithm(AlgorithmContract):
algorithm = MyAlgorithm
"""

from __future__ import annotations

import pytest

# Before the module is imported, so that its asserts show what they compared.
pytest.register_assert_rewrite("burst_ensemble.testing.algorithm_contract")

from burst_ensemble.testing.algorithm_contract import (  # noqa: E402
    AlgorithmContract,
    example_views,
)

__all__ = ["AlgorithmContract", "example_views"]
