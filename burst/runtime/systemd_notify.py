# SPDX-License-Identifier: MIT
"""Tells systemd that the daemon serves (Type=notify), by the protocol of sd_notify(3).

So a user who starts the unit, or a unit that starts after it, can ask the daemon at
once.
"""

from __future__ import annotations

import logging
import os
import socket

from burst import log


def tell_ready() -> None:
    """Tell systemd once, if it started this process and asks for it: NOTIFY_SOCKET."""
    address = os.environ.pop("NOTIFY_SOCKET", "")
    if not address:
        return
    if address.startswith("@"):
        # Abstract: unix(7).
        address = f"\0{address[1:]}"
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notifying:
            notifying.sendto(b"READY=1", address)
    except OSError as error:
        text = "cannot tell systemd that the daemon is ready: %s"
        log.say(text, error, level=logging.ERROR)
