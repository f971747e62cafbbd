# SPDX-License-Identifier: MIT
"""An embedded follower: joins the lead, runs tasks of jobs, and leaves."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import zmq

from burst.errors import BurstError, ConfigError, LeadError, LeadGone
from burst.log import say
from burst_embedded.boot import BrokerConfig
from burst_embedded.tasks import TaskRunner
from burst_embedded.wire import (
    BEAT_S,
    PROTOCOL,
    KillTasks,
    Response,
    RunTasks,
    decode_response,
    encode_request,
    follower_socket,
)

_AGAIN_S = 0.1
_JOIN = 1


class FollowerBroker:
    """A broker that joins a lead. Call `run`, which ends by a signal or the lead.

    There is no tree: hosts with a `parent` connect to rank 0 too.
    """

    def __init__(self, boot: BrokerConfig, rundir: Path) -> None:
        self._boot = boot
        self._endpoint = boot.hosts[0].connect
        if not self._endpoint:
            raise ConfigError(
                f"{boot.hosts[0].host} has no connect address: no broker can join it",
                "set default_connect in [bootstrap], such as tcp://ADDRESS:%p",
            )
        self._joined = False
        self._heard = 0.0
        self._tasks = TaskRunner(boot.hostname, rundir)
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._socket = follower_socket(self._context, boot)
        try:
            self._socket.connect(self._endpoint)
        except zmq.ZMQError as error:
            self._context.destroy()
            raise ConfigError(
                f"{self._endpoint}: no address to connect to: {error.strerror}",
                "see connect and default_connect in flux-config-bootstrap(5)",
            ) from error

    def run(self, stop: int) -> None:
        """Serve until the descriptor `stop` is readable or the lead stops.

        Waits for a lead that does not answer yet without a deadline, as Flux does. If
        the lead is lost later, it ends after `[heartbeat] timeout`. Raises LeadError if
        the lead refuses it, LeadGone.
        """
        poller = zmq.Poller()
        poller.register(self._socket, zmq.POLLIN)
        for descriptor in (self._tasks.fileno(), stop):
            poller.register(descriptor, zmq.POLLIN)
        say("waiting for the lead at %s as rank %d", self._endpoint, self._boot.rank)
        next_beat = 0.0
        while True:
            if time.monotonic() >= next_beat:
                sent = self._send("alive") if self._joined else self._join()
                next_beat = time.monotonic() + (BEAT_S if sent else _AGAIN_S)
                self._check_lead()
            ready = dict(poller.poll(int(_AGAIN_S * 1000)))
            if stop in ready:
                return
            while self._socket.poll(0):
                if not self._hear(decode_response(self._socket.recv())):
                    return
            for piece in self._tasks.collect():
                self._send("take", piece)

    def close(self) -> None:
        """Kill the tasks, say goodbye, and close."""
        self._tasks.kill_all()
        # Also before it knows that it has joined: the lead may know that by then.
        self._send("goodbye")
        self._socket.close(linger=1000)
        self._context.term()

    def _join(self) -> bool:
        args = PROTOCOL, self._boot.hostname, self._boot.rank, os.getpid()
        return self._send("join", *args, number=_JOIN)

    def _hear(self, said: Response) -> bool:
        """Carry out what the lead says; False if the follower is to end."""
        self._heard = time.monotonic()
        if said.is_farewell:
            say("leaving: the lead is stopping")
            return False
        try:
            order = said.read(RunTasks | KillTasks | None)
        except BurstError as error:
            raise LeadError(f"the lead sends us away: {error}") from error
        if isinstance(order, RunTasks):
            for piece in self._tasks.run(order):
                self._send("take", piece)
        elif isinstance(order, KillTasks):
            self._tasks.kill(order)
        elif said.number == _JOIN:
            self._joined = True
            say("joined as rank %d", self._boot.rank)
        return True

    def _check_lead(self) -> None:
        silent = time.monotonic() - self._heard
        if self._joined and silent > self._boot.heartbeat_timeout:
            raise LeadGone(
                f"no message from the lead for {silent:.0f} s",
                "start the follower again when the lead is back",
            )

    def _send(self, method: str, *args: Any, number: int = 0) -> bool:
        """Send, unless the lead is away; it has to be joined again when it is back."""
        try:
            self._socket.send(encode_request(number, method, args), zmq.NOBLOCK)
        except zmq.Again:
            return False
        return True
