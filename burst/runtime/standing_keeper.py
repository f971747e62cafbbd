# SPDX-License-Identifier: MIT
"""Has the engine request the nodes that standing minimums lack; logs refusals."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any

from burst import log
from burst.config import Settings
from burst.core.burst_requests import keep_minimums
from burst.core.records import Records
from burst.core.standing import minimums_at


class StandingKeeper:
    """Requests nodes by a command, as a person would. Use from the engine's thread."""

    def __init__(self, post: Callable[..., Future[Any]]) -> None:
        """`post` is `Engine.post`."""
        self._post = post
        self._again = -math.inf
        self.refused: Mapping[str, str] = {}
        """By the text of a standing minimum: why it lacks nodes."""

    def ask(self, records: Records, settings: Settings, now: float) -> None:
        """Have the tick request missing nodes; after a refusal, once per cadence."""
        if all(each.missing(records) <= 0 for each in minimums_at(settings, now)):
            self.refused = {}
        elif not self.refused or not now < self._again:
            self._again = now + settings.daemon.cadence
            self._post(keep_minimums).add_done_callback(self._note)

    def _note(self, answer: Future[dict[str, str]]) -> None:
        error = answer.exception()
        refused = {"the settings": str(error)} if error else answer.result()
        for text, why in refused.items():
            if self.refused.get(text) != why:
                line = "standing minimum of %s is not met: %s"
                log.say(line, text, why, level=logging.WARNING)
        self.refused = refused
