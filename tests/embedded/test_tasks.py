# SPDX-License-Identifier: MIT
"""Processes of jobs on one rank: really started, read, and killed."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from burst_embedded.tasks import TaskRunner
from burst_embedded.wire import OUTPUT_LIMIT, Ended, KillTasks, Output, RunTasks

from tests.support.waiting import HANG_S, wait_until

JOB = 7


@pytest.fixture
def tasks(tmp_path: Path) -> Iterator[TaskRunner]:
    tasks = TaskRunner("burst-0-1", tmp_path, grace=HANG_S)
    yield tasks
    tasks.kill_all()


def order(
    *command: str, ranks: tuple[int, ...] = (0,), cwd: str = "/", **env: str
) -> RunTasks:
    return RunTasks(JOB, ranks, command, cwd, {"PATH": os.environ["PATH"], **env})


def start(tasks: TaskRunner, order: RunTasks) -> None:
    assert list(tasks.run(order)) == []


def until_ended(tasks: TaskRunner, count: int = 1) -> tuple[list[Output], list[Ended]]:
    """Return what tasks wrote until so many have ended."""
    output: list[Output] = []
    ended: list[Ended] = []
    deadline = time.monotonic() + HANG_S
    while len(ended) < count:
        assert time.monotonic() < deadline, (output, ended)
        select.select([tasks.fileno()], [], [], 0.1)
        for piece in tasks.collect():
            (output if isinstance(piece, Output) else ended).append(piece)  # type: ignore[arg-type]
    return output, ended


def text(output: list[Output], stream: int = 1, task: int = 0) -> str:
    pieces = [o.data for o in output if (o.stream, o.task) == (stream, task)]
    return b"".join(pieces).decode()


def until_gone(pid: int) -> None:
    wait_until(lambda: not alive(pid), f"the end of process {pid}", pause=0.02)


def alive(pid: int) -> bool:
    """Tell whether a process exists that is not a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def test_tasks_know_who_and_where_they_are(tasks: TaskRunner) -> None:
    script = "echo $FLUX_TASK_RANK $BURST_HOSTNAME $OWN $(pwd)"
    start(tasks, order("sh", "-c", script, ranks=(2, 5), OWN="x", cwd="/usr"))
    output, ended = until_ended(tasks, 2)
    assert text(output, task=2) == "2 burst-0-1 x /usr\n"
    assert text(output, task=5) == "5 burst-0-1 x /usr\n"
    assert {each.task for each in ended} == {2, 5}


def test_the_environment_is_the_jobs_and_not_ours(
    tasks: TaskRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONLY_OURS", "x")
    start(tasks, order("env"))
    assert "ONLY_OURS" not in text(until_ended(tasks)[0])


@pytest.mark.parametrize("cwd", ["/no/such/dir", ""])
def test_a_directory_that_is_not_there_is_replaced(
    tasks: TaskRunner, tmp_path: Path, cwd: str
) -> None:
    start(tasks, order("pwd", cwd=cwd))
    output, ended = until_ended(tasks)
    assert text(output) == f"{tmp_path}\n"
    assert ended[0].status == 0
    assert ("Could not change dir" in text(output, stream=2)) is bool(cwd)


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [("/no/such/command", 127, "No such file"), ("/etc/passwd", 126, "denied")],
)
def test_a_command_that_cannot_run_says_why(
    tasks: TaskRunner, command: str, code: int, said: str
) -> None:
    start(tasks, order(command))
    output, ended = until_ended(tasks)
    assert ended[0].status == code << 8
    assert said in text(output, stream=2)


def test_a_command_that_cannot_even_be_tried_ends_its_task(tasks: TaskRunner) -> None:
    output, ended = tasks.run(order("null\0byte"))
    assert isinstance(output, Output)
    assert b"burst-0-1" in output.data
    assert ended == Ended(JOB, 0, 126 << 8)


def test_a_broken_pipe_ends_a_command_as_it_does_elsewhere(tasks: TaskRunner) -> None:
    start(tasks, order("sh", "-c", "yes | head -n 1; echo after"))
    output, ended = until_ended(tasks)
    assert text(output) == "y\nafter\n"
    assert "Broken pipe" not in text(output, stream=2)
    assert ended[0].status == 0


def test_kill_ends_the_whole_group(tasks: TaskRunner) -> None:
    start(tasks, order("sh", "-c", "sleep 600 & echo $!; wait"))
    said: list[Output] = []

    def child_is_told() -> bool:
        said.extend(each for each in tasks.collect() if isinstance(each, Output))
        return text(said).endswith("\n")

    wait_until(child_is_told, "its child's pid")
    child = text(said)
    assert alive(int(child))
    tasks.kill(KillTasks(JOB))
    assert until_ended(tasks)[1] == [Ended(JOB, 0, signal.SIGTERM)]
    until_gone(int(child))


def test_kill_leaves_other_jobs_alone(tasks: TaskRunner) -> None:
    start(tasks, order("sleep", "600"))
    tasks.kill(KillTasks(JOB + 1))
    start(tasks, order("echo", "x", ranks=(1,)))
    assert until_ended(tasks)[1] == [Ended(JOB, 1, 0)]


def test_what_ignores_sigterm_is_killed_after_the_grace(tmp_path: Path) -> None:
    tasks = TaskRunner("burst-0-1", tmp_path, grace=0.2)
    start(tasks, order("sh", "-c", "trap '' TERM; echo set; while :; do sleep 1; done"))
    wait_until(lambda: list(tasks.collect()), "it to be deaf to SIGTERM")
    tasks.kill(KillTasks(JOB))
    assert until_ended(tasks)[1] == [Ended(JOB, 0, signal.SIGKILL)]


def test_what_a_task_leaves_behind_ends_with_it(tasks: TaskRunner) -> None:
    start(tasks, order("sh", "-c", "sleep 600 & echo $!"))
    output, ended = until_ended(tasks)
    assert ended[0].status == 0
    until_gone(int(text(output)))


def test_output_is_bounded_and_the_task_goes_on(tasks: TaskRunner) -> None:
    size = OUTPUT_LIMIT * 3
    start(tasks, order("sh", "-c", f"head -c {size} /dev/zero; echo done >&2; exit 4"))
    output, ended = until_ended(tasks)
    assert len(text(output)) == OUTPUT_LIMIT
    assert text(output, stream=2).count("more than is kept") == 1
    assert ended[0].status == 4 << 8


def test_kill_all_leaves_nothing(tasks: TaskRunner) -> None:
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
    before = set(children.read_text().split())  # of other tests' fixtures
    start(tasks, order("sh", "-c", "trap '' TERM; sleep 600", ranks=(0, 1, 2)))
    pids = set(children.read_text().split()) - before
    assert len(pids) == 3
    tasks.kill_all()
    assert not set(children.read_text().split()) & pids
    assert list(tasks.collect()) == []


BROKER = """
import sys, time
from pathlib import Path
from burst_embedded.tasks import TaskRunner
from burst_embedded.wire import RunTasks
tasks = TaskRunner("n0", Path("/"))
list(tasks.run(RunTasks(1, (0,), ("sh", "-c", "echo $$; exec sleep 600"), "/", {})))
while True:
    for piece in tasks.collect():
        sys.stdout.write(piece.data.decode())
        sys.stdout.flush()
    time.sleep(0.01)
"""


def test_a_task_dies_with_its_broker() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", BROKER], stdout=subprocess.PIPE, text=True
    ) as broker:
        assert broker.stdout is not None
        task = int(broker.stdout.readline())
        assert alive(task)
        broker.kill()
    until_gone(task)
