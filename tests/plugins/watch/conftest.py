# SPDX-License-Identifier: MIT
"""The instance and the commands of tests/cli."""

from tests.cli.conftest import cli, instance, served, shared

__all__ = ["cli", "instance", "served", "shared"]
