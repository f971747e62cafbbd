# SPDX-License-Identifier: MIT
"""The embedded lead: rank 0, with its queue and the loop that serves all sockets."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import zmq

from burst.flux.identity import OWNER_KEY, propose_owner
from burst.log import say
from burst.model.lead import LeadIdentity
from burst.model.resource_set import ResourceSet, shape_of
from burst_embedded.boot import BrokerConfig
from burst_embedded.jobqueue import JobQueue
from burst_embedded.methods import LeadMethods
from burst_embedded.pool import ResourcePool
from burst_embedded.process import SOCKET
from burst_embedded.server import Server
from burst_embedded.store import FileStore
from burst_embedded.tasks import TaskRunner
from burst_embedded.wire import BEAT_S, PROTOCOL, KillTasks, RunTasks

GOODBYE_S = 15.0
"""Seconds that a stopping lead waits for the clients that it has told about it."""


class LeadBroker:
    """Rank 0. Call `run`, which ends by a signal.

    Only the store survives a restart, in `statedir`: it has the owner tag and the
    daemon's records. Jobs, memos and drains are lost.
    """

    def __init__(
        self,
        boot: BrokerConfig,
        resources: ResourceSet,
        rundir: Path,
        statedir: Path | None,
    ) -> None:
        self._hosts = boot.hosts
        self._path = rundir / SOCKET
        self._queue = JobQueue(ResourcePool(resources))
        self._tasks = TaskRunner(boot.hostname, rundir)
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        try:
            self._server = Server(self._context, self._path, boot)
            # The server has the sockets, so no other lead writes to the store now.
            store = FileStore(statedir or rundir)
            # Everything made for this lead has the owner tag: a store keeps its first.
            owner = store.load().get(OWNER_KEY) or propose_owner(boot.hostname)
            # Finds a disk that cannot be written.
            store.write({OWNER_KEY: owner})
        except BaseException:
            self._context.destroy()
            raise
        identity = _identity(boot, resources, self._path, statedir, owner)
        self._methods = LeadMethods(self._queue, identity, self._server)
        functions: dict[str, Callable[..., Any]] = {
            **self._methods.table(),
            "embedded.load": store.load,
            "embedded.write": store.write,
        }
        self._server.answer_by(functions, self._methods.push)
        self._next_beat = 0.0
        self._queue.rank_online(boot.rank)

    def run(self, stop: int) -> None:
        """Serve until the descriptor `stop` is readable."""
        poller = zmq.Poller()
        for source in (*self._server.sockets, self._tasks.fileno(), stop):
            poller.register(source, zmq.POLLIN)
        say("listening on %s, clients at %s", self._hosts[0].bind, self._path)
        while True:
            self._settle()
            ready = dict(poller.poll(self._poll_timeout()))
            if stop in ready:
                return
            if time.monotonic() >= self._next_beat:
                self._next_beat = time.monotonic() + BEAT_S
                self._server.beat()
            self._server.receive()
            for piece in self._tasks.collect():
                self._queue.take(piece)

    def close(self) -> None:
        """Kill the tasks, tell clients that the lead stops, remove its socket file."""
        self._tasks.kill_all()
        deadline = time.monotonic() + GOODBYE_S
        # A client that asks for the second state has read the message of the first.
        for state in ("cleanup", "shutdown"):
            self._methods.enter(state)
            while not self._methods.all_know() and time.monotonic() < deadline:
                self._server.sockets[0].poll(20)
                # Finds clients that end meanwhile, so that they are not waited for.
                self._server.beat()
                self._server.receive()
        self._server.close()
        self._context.term()
        self._path.unlink(missing_ok=True)
        say("stopped")

    def _settle(self) -> None:
        """Start and end jobs until nothing changes, and send clients the changes."""
        self._queue.expire()
        self._queue.schedule()
        while orders := self._queue.orders:
            self._queue.orders = []
            for rank, order in orders:
                self._order(rank, order)
            self._queue.schedule()
        self._methods.push()

    def _order(self, rank: int, order: RunTasks | KillTasks) -> None:
        if rank:
            self._methods.order(rank, order)
        elif isinstance(order, KillTasks):
            self._tasks.kill(order)
        else:
            for piece in self._tasks.run(order):
                self._queue.take(piece)

    def _poll_timeout(self) -> int:
        """Return the milliseconds until a beat or the time limit of a job is due."""
        beat = self._next_beat - time.monotonic()
        due = min(beat, self._queue.next_deadline() - time.time())
        return math.ceil(max(0.0, due) * 1000)


def _identity(
    boot: BrokerConfig,
    resources: ResourceSet,
    control: Path,
    statedir: Path | None,
    owner: str,
) -> LeadIdentity:
    return LeadIdentity(
        kind="embedded",
        version=PROTOCOL,
        uri=f"embedded://{control}",
        owner=owner,
        hosts=tuple(entry.host for entry in boot.hosts),
        shapes=tuple(shape_of(node.children) for node in resources.nodes),
        properties=resources.properties,
        bootstrap=boot.bootstrap,
        endpoint=boot.hosts[boot.rank].connect,
        certificate=str(boot.certificate_path),
        started=boot.read_at,
        statedir=str(statedir or ""),
        follower_module="burst_embedded",
    )
