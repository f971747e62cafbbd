# SPDX-License-Identifier: MIT
"""The network of a site: a bridge in the first box, on which the others are.

Nothing of it leaves the machine, and each site has the same addresses.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from tests.site.box import Box

DEVICE = "eth0"


def address(number: int) -> str:
    """Return the address of the box of this number, which counts from 0."""
    return f"10.77.0.{number + 1}"


def connect(boxes: Sequence[Box]) -> None:
    """Put the boxes on one network, and have all know the names of all."""
    names = [f"{address(number)} {box.name}" for number, box in enumerate(boxes)]
    head = boxes[0]
    _ip(head, f"link add {DEVICE} type bridge")
    _ip(head, f"addr add {address(0)}/24 dev {DEVICE}")
    _ip(head, f"link set {DEVICE} up")
    for number, box in enumerate(boxes):
        box.write("/etc/hosts", "\n".join(["127.0.0.1 localhost", *names, ""]))
        if number:
            port = f"port{number}"
            _ip(head, f"link add {port} type veth peer name {DEVICE} netns {box.pid}")
            _ip(head, f"link set {port} master {DEVICE} up")
            _ip(box, f"addr add {address(number)}/24 dev {DEVICE}")
            _ip(box, f"link set {DEVICE} up")


def _ip(box: Box, words: str) -> None:
    # The process ids that ip takes are this machine's.
    enter = ["nsenter", f"--net=/proc/{box.pid}/ns/net", "ip", *words.split()]
    done = subprocess.run(enter, check=False, capture_output=True, text=True)
    assert done.returncode == 0, (words, done.stderr)
