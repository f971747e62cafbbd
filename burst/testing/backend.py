# SPDX-License-Identifier: MIT
"""What the contract's tests do to a provider's backend and read from it directly."""

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
    """Access to the backend of a provider under test; override what is possible there.

    A test that needs a method that is not overridden is skipped; the reason, which
    `pytest -rs` prints, names the method and what was not tested.
    """

    def unreachable(self) -> AbstractContextManager[object]:
        """Return a context in which no call reaches the backend."""
        missing("unreachable", "a backend that does not answer")

    def stalled(self) -> AbstractContextManager[object]:
        """Return a context in which requests are accepted, but nothing starts.

        If that is possible, nothing ends either: a `reap` that waits is then found.
        """
        missing("stalled", "a backend in which nothing makes progress")

    def full(self, owner: str) -> Provider:
        """Return a provider with the usual offers, but without free capacity."""
        missing("full", "a backend without free capacity")

    def crashing(self, owner: str, when: Moment) -> Provider:
        """Return a provider whose next `provision` raises any exception.

        The exception stands for the death of the process: `before` the provider has
        requested anything, or `after` it has requested everything, without an answer.
        """
        missing("crashing", f"a crash {when} the request")

    def named(self, owner: str, name: str) -> Provider:
        """Return a provider with this name, as of another `[providers.NAME]` table."""
        missing("named", "two providers of one owner")

    def kill(self, spec: BurstSpec, host: str) -> None:
        """Kill one follower without the provider, such as by SIGKILL."""
        missing("kill", "a follower that dies")

    def end(self, spec: BurstSpec, host: str) -> None:
        """End one follower cleanly, without a request of its provider.

        This happens when its host is maintained: its broker exits with status 0, and
        is not replaced.
        """
        missing("end", "a follower that ends in order, unasked")

    def public(self, spec: BurstSpec) -> str:
        """Return all text about a running burst that other users can read.

        Examples are command lines, files, descriptions of jobs and pods, ConfigMaps and
        labels. Leave out what only followers can read.
        """
        missing("public", "the certificate's secret in what others can read")

    def given(self, spec: BurstSpec) -> str:
        """Return what tells followers where the lead is: broker.toml, variables."""
        missing("given", "the lead's endpoint in what followers are given")

    def environment(self, spec: BurstSpec) -> str:
        """Return the variables of all followers, each as a line `NAME=VALUE`."""
        missing("environment", "variables that users' jobs inherit from followers")

    def runs(self, spec: BurstSpec) -> int:
        """Return how often the program of an isolated burst was started."""
        missing("runs", "an isolated burst whose program is run again")

    def left(self, spec: BurstSpec) -> Sequence[str]:
        """Return the names of all files, objects and records that a burst has left."""
        missing("left", "files, certificates and objects that outlive a burst")

    def online(self, spec: BurstSpec) -> AbstractSet[int]:
        """Return the ranks that are online at the lead of this spec.

        This needs a lead that runs.
        """
        missing("online", "followers that join a lead")


def missing(method: str, what: str) -> NoReturn:
    """Skip the current test, which needs this method, as it is not overridden."""
    pytest.skip(f"not tried: {what} (override Backend.{method})")
