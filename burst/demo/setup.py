# SPDX-License-Identifier: MIT
"""What a demo is played with."""

from __future__ import annotations

import msgspec

from burst.demo.kinds import Kind
from burst.demo.place import Place
from burst.demo.processes import Processes
from burst.demo.stop import Stop
from burst.demo.view import View


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """For the story and for what comes after it."""

    kind: Kind
    place: Place
    processes: Processes
    view: View
    stop: Stop
