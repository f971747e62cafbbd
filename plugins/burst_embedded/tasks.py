# SPDX-License-Identifier: MIT
"""Start, read and kill the processes of jobs on one rank. One loop drives it.

Each task is a process group of its own. When the task ends, the rest of its group is
killed. When the broker is killed, so is the task, but its children may survive, as with
a Flux broker.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from burst_embedded import launch
from burst_embedded.wire import OUTPUT_LIMIT, Ended, KillTasks, Output, RunTasks

KILL_GRACE_S = 5.0
"""Seconds from SIGTERM to SIGKILL, as in Flux's job shell."""
_STDERR = 2
_CANNOT_RUN = 126 << 8
_CUT = b"burst: it wrote more than is kept; the rest is lost\n"
_CHUNK = 64 * 1024


class _Task:
    """One process, our ends of its pipes, and how many bytes it may still write."""

    def __init__(self, job: int, rank: int, process: subprocess.Popen[bytes]) -> None:
        self.job = job
        self.rank = rank
        self.process = process
        self.pidfd = os.pidfd_open(process.pid)
        self.allowance = OUTPUT_LIMIT
        assert process.stdout is not None
        assert process.stderr is not None
        self.pipes = {1: process.stdout.fileno(), _STDERR: process.stderr.fileno()}
        for pipe in self.pipes.values():
            os.set_blocking(pipe, False)


class TaskRunner:
    """Runs all tasks of this rank.

    `fileno` becomes readable when `collect` has something to yield.
    """

    def __init__(self, host: str, home: Path, grace: float = KILL_GRACE_S) -> None:
        self._host = host
        self._home = home
        self._grace = grace
        self._selector = selectors.EpollSelector()
        self._tasks: list[_Task] = []
        self._last_call: dict[int, float] = {}

    def fileno(self) -> int:
        """Return the descriptor to poll."""
        return self._selector.fileno()

    def run(self, order: RunTasks) -> Iterator[Output | Ended]:
        """Start processes; yield the end of those that cannot be started."""
        for task in order.tasks:
            try:
                self._start(order, task)
            except (OSError, ValueError) as error:
                text = f"burst: cannot start a task on {self._host}: {error}\n"
                yield Output(order.job, task, _STDERR, text.encode())
                yield Ended(order.job, task, _CANNOT_RUN)

    def kill(self, order: KillTasks) -> None:
        """Send SIGTERM to a job's tasks; `collect` sends SIGKILL after the grace."""
        if any(task.job == order.job for task in self._tasks):
            self._last_call.setdefault(order.job, time.monotonic() + self._grace)
            self._signal(signal.SIGTERM, order.job)

    def collect(self) -> Iterator[Output | Ended]:
        """Yield new output and ends of tasks, without waiting."""
        self._end_the_stubborn()
        for key, _ in self._selector.select(0):
            task, stream = key.data
            if stream:
                yield from self._read(task, stream)
        for key, _ in self._selector.select(0):
            task, stream = key.data
            if not stream:
                yield from self._close(task)

    def kill_all(self) -> None:
        """Kill all tasks and wait for them; unread output is dropped."""
        self._signal(signal.SIGKILL)
        for task in list(self._tasks):
            for _ in self._close(task):
                pass

    def _start(self, order: RunTasks, rank: int) -> None:
        command = [sys.executable, "-I", "-S", launch.__file__, str(os.getpid())]
        process = subprocess.Popen(
            [*command, order.cwd, str(self._home), *order.command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={
                **order.environment,
                "FLUX_TASK_RANK": str(rank),
                "BURST_HOSTNAME": self._host,
            },
            process_group=0,
        )
        task = _Task(order.job, rank, process)
        self._tasks.append(task)
        self._selector.register(task.pidfd, selectors.EVENT_READ, (task, 0))
        for stream, pipe in task.pipes.items():
            self._selector.register(pipe, selectors.EVENT_READ, (task, stream))

    def _read(self, task: _Task, stream: int) -> Iterator[Output]:
        """Yield the content of a pipe, up to the task's allowance; drop the rest."""
        data = b""
        with contextlib.suppress(BlockingIOError):
            data = os.read(task.pipes[stream], _CHUNK)
            if not data:
                self._selector.unregister(task.pipes.pop(stream))
        data = data[: task.allowance]
        task.allowance -= len(data)
        if data:
            yield Output(task.job, task.rank, stream, data)
            if not task.allowance:
                yield Output(task.job, task.rank, _STDERR, _CUT)

    def _close(self, task: _Task) -> Iterator[Output | Ended]:
        # The pid, which is also the group's id, is not reused before `wait`.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(task.process.pid, signal.SIGKILL)
        for stream in list(task.pipes):
            yield from self._read(task, stream)
        for descriptor in (task.pidfd, *task.pipes.values()):
            self._selector.unregister(descriptor)
        os.close(task.pidfd)
        code = task.process.wait()
        for pipe in (task.process.stdout, task.process.stderr):
            assert pipe is not None
            pipe.close()
        self._tasks.remove(task)
        if not any(each.job == task.job for each in self._tasks):
            self._last_call.pop(task.job, None)
        yield Ended(task.job, task.rank, -code if code < 0 else code << 8)

    def _end_the_stubborn(self) -> None:
        now = time.monotonic()
        for job, last_call in self._last_call.items():
            if last_call <= now:
                self._signal(signal.SIGKILL, job)

    def _signal(self, number: signal.Signals, job: int | None = None) -> None:
        for task in self._tasks:
            if job is None or task.job == job:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(task.process.pid, number)
