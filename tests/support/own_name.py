# SPDX-License-Identifier: MIT
"""The name of who runs the tests, who may have none, as in a container."""

from __future__ import annotations

import os

import pytest

from burst.kits.user_names import user_name

OWN_NAME = user_name(os.geteuid())
needs_name = pytest.mark.skipif(
    OWN_NAME.isdecimal(), reason="who runs the tests has no name on this host"
)
