# SPDX-License-Identifier: MIT
"""Libcloud's driver of Compute Engine, which waits longer and keeps no tokens."""

from __future__ import annotations

import os
from typing import Any

from libcloud.compute.drivers.gce import GCENodeDriver

_OPERATION_S = 180.0
"""How long to wait until a VM is made, in seconds: Libcloud's own default. A want of
capacity is often told only after a minute or two."""


class GceDriver(GCENodeDriver):  # type: ignore[misc]
    """VMs of one project."""

    def __init__(self, *args: Any, **given: Any) -> None:
        # By default Libcloud keeps the token in a file of the project's, so that after
        # a change of the account the old one's would be used.
        super().__init__(*args, **{"credential_file": os.devnull, **given})
        # Libcloud ends this wait, too, after the timeout of a request. That of requests
        # is already set by now, and stays.
        self.connection.timeout = _OPERATION_S
