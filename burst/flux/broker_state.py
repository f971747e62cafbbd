# SPDX-License-Identifier: MIT
"""Whether the lead's broker shuts down in an orderly manner.

Each broker goes through the states of src/broker/state_machine.c, and tells those who
ask `state-machine.monitor` of each change while it still serves local clients, seconds
before it closes their connections. A broker that crashes tells nothing. The numbers of
states differ between versions of Flux, so the name of the state is asked for.
"""

from __future__ import annotations

from typing import Any

from burst.errors import BurstError
from burst.flux.loop import Loop
from burst.flux.stream import Stream

# The states that come after `run`. None of them leads back to it.
_LAST = frozenset(
    {"cleanup", "shutdown", "finalize", "goodbye", "unload-builtins", "exit"}
)


class BrokerState:
    """Follows the state of the broker on a loop's thread."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._stream = Stream(
            loop, "state-machine.monitor", {}, self._changed, lambda _: False
        )
        self.ends = False
        """Whether the broker has said that it shuts down. Read it from any thread."""

    def start(self) -> None:
        """Begin to follow."""
        self._loop.post(self._stream.open)

    def _changed(self, _payload: bytes) -> None:
        self._loop.ask("state-machine.get", {}, self._take)

    def _take(self, answer: dict[str, Any] | BurstError) -> None:
        # A broker that does not answer any more has not said that it shuts down.
        if not isinstance(answer, BurstError) and answer["state"] in _LAST:
            self.ends = True
