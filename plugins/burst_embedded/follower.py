# SPDX-License-Identifier: MIT
"""The embedded follower: a client that joins the lead and runs tasks of jobs."""

from __future__ import annotations

import errno
import os
import select
from collections.abc import Iterable
from pathlib import Path

from burst.errors import BurstError, ConfigError, LeadError, LeadGone
from burst.flux.handle import ResponseMessage
from burst.flux.rpc import decode_response
from burst.log import say
from burst_embedded.boot import BrokerConfig
from burst_embedded.handle import EmbeddedHandle
from burst_embedded.methods import JOIN
from burst_embedded.tasks import TaskRunner
from burst_embedded.wire import ANSWER, PROTOCOL, Ended, Output, RunTasks, decode_order

_AGAIN_S = 0.1
_IDLE_S = 1.0


class FollowerBroker:
    """A broker that joins a lead. Call `run`: a signal or the lead ends it.

    There is no tree: hosts with a `parent` connect to rank 0, too.
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

        It waits without a deadline for a lead that does not answer yet, as Flux does.
        Raises LeadError if the lead rejects it, LeadGone if the connection is lost
        later: then the lead has lost this follower, too.
        """
        where, rank = self._boot.hosts[0].connect, self._boot.rank
        say("waiting for the lead at %s as rank %d", where, rank)
        while not self._handle:
            try:
                self._handle = EmbeddedHandle(where, self._boot)
            except LeadGone:
                if _is_readable(stop, _AGAIN_S):
                    return
        self._serve(self._handle, stop)

    def close(self) -> None:
        """Kill the tasks, say goodbye, and close."""
        self._tasks.kill_all()
        if self._handle:
            self._handle.close()

    def _serve(self, handle: EmbeddedHandle, stop: int) -> None:
        """Join, and carry out orders. Raises LeadError, LeadGone."""
        for descriptor in (self._tasks.fileno(), stop):
            handle.watch(descriptor)
        who = {"version": PROTOCOL, "hostname": self._boot.hostname}
        asked = {**who, "rank": self._boot.rank, "pid": os.getpid()}
        joining = handle.send(JOIN, asked, streaming=True)
        while not _is_readable(stop):
            while said := handle.receive():
                assert isinstance(said, ResponseMessage)
                if said.errnum == errno.ENODATA:
                    say("leaving: the lead is stopping")
                    handle.drop()
                    return
                self._hear(said)
                if said.payload == ANSWER and said.matchtag == joining:
                    say("joined as rank %d", self._boot.rank)
            self._tell(self._tasks.collect())
            handle.wait(_IDLE_S)

    def _hear(self, said: ResponseMessage) -> None:
        """Carry out an order; ignore an empty answer. Raises LeadError."""
        error = decode_response(JOIN, said)
        if isinstance(error, BurstError):
            raise LeadError(
                f"the lead does not accept this follower: {error}"
            ) from error
        if said.payload == ANSWER:
            return
        order = decode_order(said.payload)
        if isinstance(order, RunTasks):
            self._tell(self._tasks.run(order))
        else:
            self._tasks.kill(order)

    def _tell(self, pieces: Iterable[Output | Ended]) -> None:
        assert self._handle is not None
        # If the lead is gone, `receive` raises that, after its last messages.
        for piece in pieces:
            self._handle.send("embedded.take", {"piece": piece})


def _is_readable(descriptor: int, seconds: float = 0.0) -> bool:
    return bool(select.select([descriptor], [], [], seconds)[0])
