# SPDX-License-Identifier: MIT
"""A provider whose calls meet trouble, for `Backend.crashing`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from burst.provider import BurstSpec, Provider
from burst.testing import WrappedProvider

Trouble = Callable[[], AbstractContextManager[object]]


class Interrupted(WrappedProvider):
    """Each `provision` is in a context of trouble, such as `Backend.unreachable`.

    What raises in it is as a process that died there; then all is well again.
    """

    def __init__(self, provider: Provider, trouble: Trouble) -> None:
        super().__init__(provider)
        self._trouble = trouble

    def provision(self, spec: BurstSpec) -> None:
        with self._trouble():
            super().provision(spec)
