# SPDX-License-Identifier: MIT
"""An embedded follower: a client that joins the lead and runs tasks of jobs."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from burst.errors import BurstError, ConfigError, LeadError, LeadGone
from burst.flux.handle import ResponseMessage
from burst.flux.rpc import decode_response
from burst.log import say
from burst_embedded.boot import BrokerConfig
from burst_embedded.handle import EmbeddedHandle
from burst_embedded.methods import JOIN, STATE
from burst_embedded.tasks import TaskRunner
from burst_embedded.wire import ANSWER, PROTOCOL, Ended, Output, RunTasks, decode_order

_AGAIN_S = 0.1
_IDLE_S = 1.0


class FollowerBroker:
    """A broker that joins a lead. Call `run`, which ends by a signal or the lead.

    There is no tree: hosts with a `parent` connect to rank 0 too.
    """

    def __init__(self, boot: BrokerConfig, rundir: Path) -> None:
        if not boot.hosts[0].connect:
            raise ConfigError(
                f"{boot.hosts[0].host} has no connect address: no broker can join it",
                "set default_connect in [bootstrap], such as tcp://ADDRESS:%p",
            )
        self._boot = boot
        self._handle: EmbeddedHandle | None = None
        self._tasks = TaskRunner(boot.hostname, rundir)

    def run(self, stop: int) -> None:
        """Serve until the descriptor `stop` is readable or the lead stops.

        Waits for a lead that does not answer yet without a deadline, as Flux does. If
        the lead is lost later, it ends after `[heartbeat] timeout`. Raises LeadError if
        the lead refuses it, LeadGone.
        """
        where, rank = self._boot.hosts[0].connect, self._boot.rank
        say("waiting for the lead at %s as rank %d", where, rank)
        while not self._connects():
            if _is_readable(stop, _AGAIN_S):
                return
        try:
            self._serve(stop)
        except LeadGone:
            self._await_lead(stop)

    def close(self) -> None:
        """Kill the tasks, say goodbye, and close."""
        self._tasks.kill_all()
        if self._handle:
            self._handle.close()

    def _connects(self) -> bool:
        if self._handle:
            self._handle.close()
        try:
            self._handle = EmbeddedHandle(self._boot.hosts[0].connect, self._boot)
        except LeadGone:
            self._handle = None
        return self._handle is not None

    def _serve(self, stop: int) -> None:
        """Join, and carry out orders. Raises LeadError, LeadGone."""
        assert self._handle is not None
        for descriptor in (self._tasks.fileno(), stop):
            self._handle.watch(descriptor)
        who = {"version": PROTOCOL, "hostname": self._boot.hostname}
        asked = {**who, "rank": self._boot.rank, "pid": os.getpid()}
        self._handle.send(JOIN, asked, streaming=True)
        state = self._handle.send(STATE, {}, streaming=True)
        states = 0
        while not _is_readable(stop):
            for said in self._received(self._handle):
                if said.matchtag == state:
                    states += 1
                elif said.payload == ANSWER:
                    say("joined as rank %d", self._boot.rank)
                else:
                    self._take_order(said.payload)
            if states > 1:
                say("leaving: the lead is stopping")
                return
            self._tell(self._tasks.collect())
            self._handle.wait(_IDLE_S)

    def _received(self, handle: EmbeddedHandle) -> Iterator[ResponseMessage]:
        while said := handle.receive():
            assert isinstance(said, ResponseMessage)
            error = decode_response(JOIN, said)
            if isinstance(error, BurstError):
                raise LeadError(f"the lead sends us away: {error}") from error
            yield said

    def _take_order(self, payload: bytes) -> None:
        order = decode_order(payload)
        if isinstance(order, RunTasks):
            self._tell(self._tasks.run(order))
        else:
            self._tasks.kill(order)

    def _tell(self, pieces: Iterable[Output | Ended]) -> None:
        assert self._handle is not None
        for piece in pieces:
            self._handle.send("embedded.take", {"piece": piece})

    def _await_lead(self, stop: int) -> None:
        """Wait for a lead that was lost: it has lost this follower, too.

        Raises LeadError once it is back, LeadGone after `[heartbeat] timeout`.
        """
        deadline = time.monotonic() + self._boot.heartbeat_timeout
        while time.monotonic() < deadline:
            if self._connects():
                raise LeadError("the lead has lost it; start it again")
            for _ in self._tasks.collect():
                continue  # nobody is there to be told
            if _is_readable(stop, _AGAIN_S):
                return
        raise LeadGone(
            f"no message from the lead for {self._boot.heartbeat_timeout:g} s",
            "start the follower again when the lead is back",
        )


def _is_readable(descriptor: int, seconds: float = 0.0) -> bool:
    return bool(select.select([descriptor], [], [], seconds)[0])
