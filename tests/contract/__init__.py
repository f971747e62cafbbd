# SPDX-License-Identifier: MIT
"""Contract suites: what must hold for every implementation of an interface.

Their classes have no prefix `Test`, so that only subclasses are collected.
"""

import pytest

pytest.register_assert_rewrite(
    "tests.contract.identity",
    "tests.contract.jobs",
    "tests.contract.loss",
    "tests.contract.orders",
    "tests.contract.rank_side",
    "tests.contract.serving",
    "tests.contract.storing",
    "tests.contract.watching",
)
