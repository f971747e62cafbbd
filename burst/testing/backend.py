# SPDX-License-Identifier: MIT
"""What a test does to a provider's backend, and sees of it, past the provider."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager
from typing import Literal, NoReturn

import pytest

from burst.provider import BurstSpec, Provider

Moment = Literal["before", "after"]
"""Of a crash: before anything was asked for, or after all was and without an answer."""


class Backend:
    """Subclass it, override what can be done where your provider is tested.

    A check that needs a method which is not overridden is skipped; the reason that
    pytest prints (`-rs`) names the method and what was not tried.
    """

    def unreachable(self) -> AbstractContextManager[object]:
        """While it is entered no call reaches the backend, such as an API server."""
        missing("unreachable", "a backend that does not answer")

    def stalled(self) -> AbstractContextManager[object]:
        """While it is entered what is asked for is accepted, and nothing starts."""
        missing("stalled", "a backend in which nothing makes progress")

    def full(self, owner: str) -> Provider:
        """Return a provider that sells as always, for whose bursts there is no room."""
        missing("full", "a backend without free capacity")

    def crashing(self, owner: str, when: Moment) -> Provider:
        """Return a provider whose next `provision` raises any exception.

        It stands for a process that died: `before` the provider asked for anything,
        or `after` it asked for all, when the answer did not arrive.
        """
        missing("crashing", f"a crash {when} the request")

    def named(self, owner: str, name: str) -> Provider:
        """Return a provider of that name, as of another `[providers.NAME]` table."""
        missing("named", "two providers of one owner")

    def kill(self, spec: BurstSpec, host: str) -> None:
        """End one follower in a way that nobody asked for, such as by SIGKILL."""
        missing("kill", "a follower that dies")

    def public(self, spec: BurstSpec) -> str:
        """Return all that others can read of a burst that runs.

        Such as command lines, files that others may read, descriptions of jobs and
        pods, ConfigMaps, labels. Not what only followers can read.
        """
        missing("public", "the certificate's secret in what others can read")

    def given(self, spec: BurstSpec) -> str:
        """Return what followers are given to find the lead: broker.toml, variables."""
        missing("given", "the lead's endpoint in what followers are given")

    def left(self, spec: BurstSpec) -> Sequence[str]:
        """Return the names of all that is left of a burst: files, objects, records."""
        missing("left", "files, certificates and objects that outlive a burst")

    def online(self, spec: BurstSpec) -> AbstractSet[int]:
        """Return the ranks that are online at the lead of this spec.

        For that the lead has to be a real one, such as the embedded lead.
        """
        missing("online", "followers that join a lead")


def missing(method: str, what: str) -> NoReturn:
    """Skip the present test and say of which method that is for want."""
    pytest.skip(f"not tried: {what} (override Backend.{method})")
