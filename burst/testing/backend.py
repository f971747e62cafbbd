# SPDX-License-Identifier: MIT
"""What the contract does to a provider's backend and reads from it directly."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager
from typing import Literal, NoReturn

import pytest

from burst.provider import BurstSpec, Provider

Moment = Literal["before", "after"]
"""When a crash happens: before anything was requested, or after everything was."""


class Backend:
    """Override the methods that are possible where your provider is tested.

    A check that needs another one is skipped; the reason, which `pytest -rs` prints,
    names the method and what was not tested.
    """

    def unreachable(self) -> AbstractContextManager[object]:
        """Return a context in which no call reaches the backend."""
        missing("unreachable", "a backend that does not answer")

    def stalled(self) -> AbstractContextManager[object]:
        """Return a context in which requests are accepted, and nothing starts."""
        missing("stalled", "a backend in which nothing makes progress")

    def full(self, owner: str) -> Provider:
        """Return a provider with the usual offers, but without free capacity."""
        missing("full", "a backend without free capacity")

    def crashing(self, owner: str, when: Moment) -> Provider:
        """Return a provider whose next `provision` raises any exception.

        It stands for a process that died: `before` the provider requested anything, or
        `after` it requested all, without an answer.
        """
        missing("crashing", f"a crash {when} the request")

    def named(self, owner: str, name: str) -> Provider:
        """Return a provider of that name, as for another `[providers.NAME]` table."""
        missing("named", "two providers of one owner")

    def kill(self, spec: BurstSpec, host: str) -> None:
        """End one follower without the provider, such as by SIGKILL."""
        missing("kill", "a follower that dies")

    def end(self, spec: BurstSpec, host: str) -> None:
        """Have one follower end in order, without its provider's wish.

        As where its host is maintained: its broker ends with 0, and is not replaced.
        """
        missing("end", "a follower that ends in order, unasked")

    def public(self, spec: BurstSpec) -> str:
        """Return all that other users can read of a burst that runs.

        Such as command lines, files, descriptions of jobs and pods, ConfigMaps, labels.
        Not what only followers can read.
        """
        missing("public", "the certificate's secret in what others can read")

    def given(self, spec: BurstSpec) -> str:
        """Return what tells followers where the lead is: broker.toml, variables."""
        missing("given", "the lead's endpoint in what followers are given")

    def left(self, spec: BurstSpec) -> Sequence[str]:
        """Return the names of all files, objects and records that a burst has left."""
        missing("left", "files, certificates and objects that outlive a burst")

    def online(self, spec: BurstSpec) -> AbstractSet[int]:
        """Return the ranks that are online at the lead of this spec.

        For that the lead must be one that runs.
        """
        missing("online", "followers that join a lead")


def missing(method: str, what: str) -> NoReturn:
    """Skip the present test, as this method is not overridden."""
    pytest.skip(f"not tried: {what} (override Backend.{method})")
