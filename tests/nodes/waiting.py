# SPDX-License-Identifier: MIT
"""Waits with longer pauses: each look starts programs beside the pods it waits for."""

from __future__ import annotations

from functools import partial

from tests.support import waiting

wait_until = partial(waiting.wait_until, pause=0.3)
