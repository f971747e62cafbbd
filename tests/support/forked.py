# SPDX-License-Identifier: MIT
"""Our programs as processes that need not start a Python and import all anew.

    process = Forked(["burst", "daemon", "-c", path], output=log)

A server that has imported all forks for each of them, so that it costs a tenth. They
are processes as others are: with a pid, signals, an exit status. What needs an
environment that the interpreter reads as it starts, or what others read in /proc, is
started as a program instead.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import multiprocessing
import os
import pkgutil
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from multiprocessing import connection
from multiprocessing.process import BaseProcess
from typing import IO, Any

import burst.cli
import burst.embedded
import burst.runtime

_FORK = multiprocessing.get_context("fork")
_LARGEST = 200_000
_PACKAGES = (burst.cli, burst.embedded, burst.runtime)


class Forked:
    """A process of `python -m MODULE ARGUMENT...`; it has what a Popen has."""

    def __init__(
        self,
        argv: Sequence[str],
        output: IO[Any],
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.args = argv
        self.returncode: int | None = None
        self._status, theirs = socket.socketpair()
        given = {"argv": list(argv), "environment": dict(environment or os.environ)}
        with theirs, open(os.devnull, "rb") as nothing:
            fds = [nothing.fileno(), output.fileno(), output.fileno(), theirs.fileno()]
            socket.send_fds(_server(), [json.dumps(given).encode()], fds)
        self.pid = int(self._status.recv(64))

    def poll(self) -> int | None:
        """Return its exit status, if it has ended."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0.0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Return its exit status once it has ended. Raises TimeoutExpired."""
        if self.returncode is None:
            if not select.select([self._status], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
            self.returncode = int(self._status.recv(64))
            self._status.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        """Send it SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send it SIGKILL."""
        self.send_signal(signal.SIGKILL)


_servers: list[socket.socket] = []
_starting = threading.Lock()


def _server() -> socket.socket:
    """Return the connection to this process's server, which ends with it."""
    with _starting:
        if not _servers:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs:
                process = subprocess.Popen(
                    [sys.executable, "-m", __name__, str(theirs.fileno())],
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    process_group=0,
                )
            _servers.append(ours)
            atexit.register(process.wait)
            atexit.register(ours.close)
    return _servers[0]


def _serve(requests: socket.socket) -> None:
    """Fork for each request, and tell of each process's end, until nobody asks."""
    running: dict[int, tuple[BaseProcess, int]] = {}
    while True:
        for ready in connection.wait([requests, *running]):
            if isinstance(ready, int):
                process, status = running.pop(ready)
                process.join()
                _tell(status, process.exitcode)
                os.close(status)
                continue
            text, fds, _, _ = socket.recv_fds(requests, _LARGEST, 4)
            if not text:
                return
            process = _FORK.Process(target=_become, args=(json.loads(text), fds))
            process.start()
            status = fds.pop()
            running[process.sentinel] = process, status
            _tell(status, process.pid)
            for fd in fds:
                os.close(fd)


def _tell(fd: int, number: int | None) -> None:
    with contextlib.suppress(BrokenPipeError):
        os.write(fd, str(number).encode())


def _become(given: dict[str, Any], fds: list[int]) -> None:
    """Take on standard files and environment, and run the program."""
    for number, fd in enumerate(fds[:3]):
        os.dup2(fd, number)
    for fd in fds:
        os.close(fd)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", buffering=1, closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115
    os.environ.clear()
    os.environ.update(given["environment"])
    module, *sys.argv[1:] = given["argv"]
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    finally:
        # As at the end of a program. What would still come, to forget all modules, is
        # most of what a process costs.
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()


def _main() -> None:
    for package in _PACKAGES:
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)
    gc.freeze()
    _serve(socket.socket(fileno=int(sys.argv[1])))


if __name__ == "__main__":
    _main()
