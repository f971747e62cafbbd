# SPDX-License-Identifier: MIT
"""A streaming request that is made again whenever it ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from burst import log
from burst.errors import BurstError
from burst.flux.handle import ResponseMessage
from burst.flux.loop import Loop
from burst.flux.rpc import decode_response

RETRY_S = 0.5
"""Pause before a stream that ended is requested again: reloading a module takes about
as long."""


class Stream:
    """Receives the responses to one streaming request, on a loop's thread."""

    def __init__(
        self,
        loop: Loop,
        topic: str,
        payload: Mapping[str, Any],
        taken: Callable[[bytes], None],
        ended: Callable[[BurstError], bool],
    ) -> None:
        """`taken` gets each payload; `ended` gets the error that ended the stream.

        If `ended` returns True, the request is made again.
        """
        self._loop = loop
        self._topic = topic
        self._payload = payload
        self._taken = taken
        self._ended = ended
        self._flowing = True
        self._tag = 0
        """Matchtag of the last request."""
        self._opened = 0
        """How often it was opened or closed."""

    def close(self) -> None:
        """Cancel the request; it is not made again. From the loop's thread.

        Responses that still come are ignored.
        """
        self._opened += 1
        if self._loop.on_response.pop(self._tag, None):
            self._loop.handle.send(f"{self._topic}-cancel", {"matchtag": self._tag})

    def open(self) -> None:
        """Make the request. From the loop's thread."""
        tag = self._loop.handle.send(self._topic, self._payload, streaming=True)
        self._tag = tag
        self._opened += 1

        def take(response: ResponseMessage) -> None:
            if response.errnum == 0:
                self._flowing = True
                self._taken(response.payload)
                return
            del self._loop.on_response[tag]
            error = decode_response(self._topic, response)
            assert isinstance(error, BurstError)
            if not self._ended(error):
                return
            if self._flowing:  # logged once, however often a retry fails
                log.say(
                    "the stream %s ended and is requested again: %s", self._topic, error
                )
            self._flowing = False
            opened = self._opened
            self._loop.after(RETRY_S, lambda: self._retry(opened))

        self._loop.on_response[tag] = take

    def _retry(self, opened: int) -> None:
        if opened == self._opened:
            self.open()
