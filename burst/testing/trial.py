# SPDX-License-Identifier: MIT
"""One provider under test: its calls are timed, its answers checked."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest

from burst.errors import BurstError, CertificateError, NotFound, Transient
from burst.kits import certificate
from burst.model.burst import BurstId
from burst.provider import BurstSpec, BurstStatus, Offer, Phase, Provider
from burst.provider_answers import check_offers, check_statuses

_T = TypeVar("_T")


class TrialTiming(msgspec.Struct, frozen=True):
    """Time limits, in seconds."""

    total: float
    """Limit of a wait for a burst to be listed, to run or to be gone."""
    pause: float
    """Pause between two calls of `observe`."""
    prompt: float
    """Limit of one call."""


class Worker:
    """The thread that makes all calls of a provider, as in the daemon.

    A call that never returns fails its test, but does not stop the run.
    """

    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None]
        self._calls = queue.SimpleQueue()
        # `daemon`: at its end, Python does not wait for a call that never returns.
        threading.Thread(target=self._work, daemon=True).start()

    def call(self, call: Callable[[], _T], limit: float) -> _T:
        """Return the result of this call; fail the test after `limit` seconds."""
        answer: Future[_T] = Future()
        self._calls.put((call, answer))
        try:
            return answer.result(limit)
        except TimeoutError:
            if answer.done():
                raise  # the call itself raised it
            pytest.fail(f"a call did not return within {limit:g} s")

    def close(self) -> None:
        """End the thread after the calls in its queue."""
        self._calls.put(None)

    def _work(self) -> None:
        while given := self._calls.get():
            call, answer = given
            try:
                answer.set_result(call())
            except BaseException as error:  # noqa: BLE001  it is raised where it is asked
                answer.set_exception(error)


class Trial:
    """A provider of one owner, and the bursts it was given.

    Several trials stand for several daemons, or for one before and after a restart.
    `within` is the limit of a wait in seconds; by default `patience` of the contract's
    class.
    """

    def __init__(
        self,
        provider: Provider,
        patience: TrialTiming,
        count: Callable[[BurstSpec], int] | None = None,
    ) -> None:
        self.provider = provider
        self.patience = patience
        self._count = count
        self.given: dict[BurstId, BurstSpec] = {}
        self._worker = Worker()
        self._secrets: set[str] = set()

    def offers(self) -> list[Offer]:
        """Return the provider's offers, after the checks that the daemon makes."""
        return list(self._call(lambda: check_offers(self.provider.offers())))

    def give(self, spec: BurstSpec) -> None:
        """Note the burst, to be reaped at the end, and its secret, to find leaks."""
        self.given[spec.burst_id] = spec
        with contextlib.suppress(CertificateError):  # a test may give a bad one
            path = Path(spec.lead.certificate)
            self._secrets.add(certificate.read(path).secret.decode())

    def provision(self, spec: BurstSpec, within: float | None = None) -> None:
        """Provision as the daemon does: again while it raises Transient."""
        self.wait(
            lambda: self.begin(spec),
            f"provision of {spec.burst_id} to go through",
            within,
        )

    def begin(self, spec: BurstSpec) -> bool:
        """Provision once; return False if it raises Transient."""
        try:
            self.provision_once(spec)
        except Transient:
            return False
        return True

    def provision_once(self, spec: BurstSpec) -> None:
        """Provision once, and raise what it raises."""
        self.give(spec)
        self._call(lambda: self.provider.provision(spec))

    def resize(self, spec: BurstSpec, within: float | None = None) -> None:
        """Resize as the daemon does: again while it raises Transient."""
        self.wait(
            lambda: self._resizes(spec),
            f"resize of {spec.burst_id} to go through",
            within,
        )

    def _resizes(self, spec: BurstSpec) -> bool:
        try:
            self.resize_once(spec)
        except Transient:
            return False
        return True

    def resize_once(self, spec: BurstSpec) -> None:
        """Resize once, and raise what it raises."""
        resize = self.provider.resize
        self.give(spec)
        self._call(lambda: resize(spec))

    def observe(self) -> dict[BurstId, BurstStatus]:
        """Return the listed bursts by id, after the checks that the daemon makes."""
        listed = self._call(lambda: tuple(self.provider.observe()))
        found = {status.burst_id: status for status in check_statuses(listed)}
        # Not in what was found: its texts are cut.
        self.check_secrets(msgspec.json.encode(listed).decode())
        return found

    def wait_listed(
        self,
        burst_id: BurstId,
        holds: Callable[[BurstStatus], bool],
        what: str,
        within: float | None = None,
    ) -> BurstStatus:
        """Observe until the burst is listed and `holds` is true; return its status."""
        last: list[BurstStatus | None] = [None]

        def done() -> bool:
            last[0] = self.observe().get(burst_id)
            return last[0] is not None and holds(last[0])

        self.wait(done, lambda: f"{burst_id} {what}; last seen: {last[0]}", within)
        assert last[0]
        return last[0]

    def wait_running(self, spec: BurstSpec, within: float | None = None) -> None:
        """Wait until all followers of the burst run; each must exist once."""
        status = self.wait_listed(
            spec.burst_id,
            lambda status: status.phase is Phase.RUNNING,
            "to run",
            within,
        )
        assert {f.host for f in status.followers} == set(spec.hosts)
        assert {f.phase for f in status.followers} == {Phase.RUNNING}
        self._check_count(
            spec, len(spec.hosts), "not each follower exists exactly once"
        )

    def wait_others_go_on(self, spec: BurstSpec, ended: str) -> None:
        """Wait until the end of one follower is reported; the others must still run."""
        others = set(spec.hosts) - {ended}

        def told(status: BurstStatus) -> bool:
            runs = {f.host for f in status.followers if f.phase is Phase.RUNNING}
            assert others <= runs, f"with {ended}, others ended: {status}"
            return ended not in runs and bool(status.why)

        what = f"to tell why {ended} does not run"
        self.wait_listed(spec.burst_id, told, what)

    def wait_ended(self, burst_id: BurstId) -> None:
        """Wait until an isolated burst reports exit status 0 of its program."""

        def ended(status: BurstStatus) -> bool:
            instance = status.instance
            return instance is not None and instance.exit_status is not None

        status = self.wait_listed(burst_id, ended, "to have run its program")
        assert status.instance
        assert status.instance.exit_status == 0, status

    def wait_empty(self, spec: BurstSpec, within: float | None = None) -> None:
        """Wait until nothing is listed; no follower may exist even before that.

        A list may lag behind, so what was reaped may still be listed for a while.
        """
        self._check_count(spec, 0, "reap raised NotFound, and a follower exists")
        self.wait(lambda: not self.observe(), "the list to be empty", within)
        self._check_count(spec, 0, "a follower exists again after the reap")

    def reap(self, burst_id: BurstId) -> bool:
        """Reap once; return whether it raises NotFound, since nothing is left."""
        try:
            self.reap_once(burst_id)
        except NotFound:
            return True
        except Transient:
            pass  # the caller repeats it, as the daemon does
        return False

    def reap_once(self, burst_id: BurstId) -> None:
        """Reap once, and raise what it raises."""
        self._call(lambda: self.provider.reap(burst_id))

    def reap_all(self, burst_id: BurstId, within: float | None = None) -> None:
        """Reap until nothing is left."""
        self.wait(lambda: self.reap(burst_id), f"the last reap of {burst_id}", within)

    def wait(
        self,
        holds: Callable[[], bool],
        what: str | Callable[[], str],
        within: float | None = None,
    ) -> None:
        """Try until `holds` is true; fail the test after `within` seconds."""
        total = self.patience.total if within is None else within
        end = time.monotonic() + total
        while not holds():
            if time.monotonic() > end:
                words = what if isinstance(what, str) else what()
                pytest.fail(f"waited {total:g} s for {words}")
            time.sleep(self.patience.pause)

    def check_secrets(self, text: str) -> None:
        """Fail if the secret of any certificate is in the text."""
        told = any(secret in text for secret in self._secrets)
        assert not told, "the certificate's secret key is in a text for users"

    def count(self, spec: BurstSpec) -> int | None:
        """Return how many followers exist; None if they cannot be counted."""
        return self._count(spec) if self._count else None

    def close(self) -> None:
        """Reap all bursts that the provider was given."""
        with contextlib.ExitStack() as ends:
            # A call that does not return has it replaced.
            ends.callback(lambda: self._worker.close())  # noqa: PLW0108
            for burst_id in self.given:
                ends.callback(self.reap_all, burst_id)

    def _call(self, call: Callable[[], _T]) -> _T:
        try:
            return self._worker.call(call, self.patience.prompt)
        except BurstError as error:
            self.check_secrets(str(error))
            raise
        except pytest.fail.Exception:
            # The next call must not wait behind this one.
            self._worker = Worker()
            raise

    def _check_count(self, spec: BurstSpec, right: int, wrong: str) -> None:
        """Check how many followers exist.

        One that its place has just told as running may be counted a moment later: a
        batch system tells it before the program is executed.
        """
        count = self._count
        if count is not None:
            self.wait(lambda: count(spec) >= right, wrong)
            assert count(spec) == right, wrong
