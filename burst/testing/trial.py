# SPDX-License-Identifier: MIT
"""One provider under test: calls are timed, answers checked, everything reaped."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import msgspec
import pytest

from burst.errors import BurstError, NotFound, Transient
from burst.kits import certificate
from burst.model.burst import BurstId
from burst.provider import BurstSpec, BurstStatus, Offer, Phase, Provider

_T = TypeVar("_T")


class Patience(msgspec.Struct, frozen=True):
    """How long things may take, in seconds."""

    total: float
    """Until what was asked for shows, runs or is gone."""
    pause: float
    """Between two looks."""
    prompt: float
    """For one call to return."""


class Trial:
    """A provider of one owner, and the bursts it was given.

    Several trials stand for several daemons, or for one before and after a restart.
    """

    def __init__(
        self,
        provider: Provider,
        patience: Patience,
        count: Callable[[BurstSpec], int] | None = None,
    ) -> None:
        self.provider = provider
        self.patience = patience
        self._count = count
        self.given: dict[BurstId, BurstSpec] = {}
        self._secrets: set[str] = set()

    def offers(self) -> list[Offer]:
        """Return what it sells."""
        return list(self._call(self.provider.offers))

    def give(self, spec: BurstSpec) -> None:
        """Note what it will be given, and the secret that it may tell nobody."""
        self.given[spec.burst_id] = spec
        path = Path(spec.lead.certificate)
        self._secrets.add(certificate.read(path).secret.decode())

    def provision(self, spec: BurstSpec) -> None:
        """Provision as the daemon does: again for as long as it is Transient."""
        self.give(spec)

        def done() -> bool:
            try:
                self._call(lambda: self.provider.provision(spec))
            except Transient:
                return False
            return True

        self.wait(done, f"provision of {spec.burst_id} to go through")

    def observe(self) -> dict[BurstId, BurstStatus]:
        """Return what it lists, by id. Checks what holds for every list."""
        listed = self._call(self.provider.observe)
        found = {status.burst_id: status for status in listed}
        assert len(found) == len(listed), f"an id is listed twice: {listed}"
        encoded = msgspec.json.encode(found)
        assert msgspec.json.decode(encoded, type=dict[BurstId, BurstStatus]) == found
        for status in listed:
            hosts = [follower.host for follower in status.followers]
            assert len(set(hosts)) == len(hosts), f"a follower is there twice: {status}"
        self._check_secrets(encoded.decode())
        return found

    def wait_listed(
        self, burst_id: BurstId, holds: Callable[[BurstStatus], bool], what: str
    ) -> BurstStatus:
        """Observe until the burst is listed and this holds of it; return its status."""
        last: list[BurstStatus | None] = [None]

        def done() -> bool:
            last[0] = self.observe().get(burst_id)
            return last[0] is not None and holds(last[0])

        self.wait(done, lambda: f"{burst_id} {what}; last seen: {last[0]}")
        assert last[0]
        return last[0]

    def wait_running(self, spec: BurstSpec) -> None:
        """Wait until all followers of the burst run, each of them once."""
        status = self.wait_listed(
            spec.burst_id, lambda status: status.phase is Phase.RUNNING, "to run"
        )
        assert {f.host for f in status.followers} == set(spec.hosts)
        assert {f.phase for f in status.followers} == {Phase.RUNNING}
        self._check_count(spec, len(spec.hosts), "not each follower exists once")

    def wait_ended(self, burst_id: BurstId) -> None:
        """Wait until an isolated burst tells of its program's good end."""

        def ended(status: BurstStatus) -> bool:
            instance = status.instance
            return instance is not None and instance.exit_status is not None

        status = self.wait_listed(burst_id, ended, "to have run its program")
        assert status.instance
        assert status.instance.exit_status == 0, status

    def wait_empty(self, spec: BurstSpec) -> None:
        """Wait until nothing is listed; what was reaped may linger there.

        That it does not exist must be true at once.
        """
        self._check_count(spec, 0, "it said NotFound, and there is something left")
        self.wait(lambda: not self.observe(), "the list to be empty")
        self._check_count(spec, 0, "it came back")

    def reap(self, burst_id: BurstId) -> bool:
        """Reap once; return whether it says that nothing is left."""
        try:
            self._call(lambda: self.provider.reap(burst_id))
        except NotFound:
            return True
        except Transient:
            pass  # the daemon calls again, and so does who called this
        return False

    def reap_all(self, burst_id: BurstId) -> None:
        """Reap until nothing is left."""
        self.wait(lambda: self.reap(burst_id), f"the last reap of {burst_id}")

    def wait(self, holds: Callable[[], bool], what: str | Callable[[], str]) -> None:
        """Try until it holds. Fails when patience is at its end."""
        end = time.monotonic() + self.patience.total
        while not holds():
            if time.monotonic() > end:
                words = what if isinstance(what, str) else what()
                pytest.fail(f"waited {self.patience.total:g} s for {words}")
            time.sleep(self.patience.pause)

    def _call(self, call: Callable[[], _T]) -> _T:
        begin = time.monotonic()
        try:
            return call()
        except BurstError as error:
            self._check_secrets(str(error))
            raise
        finally:
            took = time.monotonic() - begin
            assert took <= self.patience.prompt, f"a call took {took:.3g} s"

    def _check_count(self, spec: BurstSpec, right: int, wrong: str) -> None:
        if self._count:
            assert self._count(spec) == right, wrong

    def _check_secrets(self, text: str) -> None:
        told = any(secret in text for secret in self._secrets)
        assert not told, "the certificate's secret was told"
