# SPDX-License-Identifier: MIT
from __future__ import annotations

from tests.cli.conftest import cli, instance, quiet, served, shared, unserved

__all__ = ["cli", "instance", "quiet", "served", "shared", "unserved"]
