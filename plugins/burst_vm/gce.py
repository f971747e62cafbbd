# SPDX-License-Identifier: MIT
"""Libcloud's driver of Compute Engine, which keeps no tokens."""

from __future__ import annotations

import os
from typing import Any

from libcloud.compute.drivers.gce import GCENodeDriver


class GceDriver(GCENodeDriver):  # type: ignore[misc]
    """VMs of one project."""

    def __init__(self, *args: Any, **given: Any) -> None:
        # By default Libcloud keeps the token in a file of the project's, so that after
        # a change of the account the old one's would be used.
        super().__init__(*args, **{"credential_file": os.devnull, **given})
