# SPDX-License-Identifier: MIT
from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from burst_local.processes import (
    Process,
    ProcessIdentity,
    identity_of,
    is_hidden,
    scan,
    send,
)

from burst.errors import Refused
from tests.support.waiting import HANG_S, wait_until


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    """Run a process in a session of its own, with a tag."""
    process = subprocess.Popen(
        ["sleep", "1000"],
        env={"BURST_ID": "burst-0-abc", "FLUX_URI": "local:///x", "SECRET": "s"},
        start_new_session=True,
    )
    yield process
    process.kill()
    process.wait()


def test_a_process_is_seen_with_its_session_and_our_variables_only(
    child: subprocess.Popen[bytes],
) -> None:
    wait_until(lambda: bool(scan()[child.pid].environ), "its exec")
    found = scan()[child.pid]
    assert found.pid == found.group == found.session == child.pid
    assert found.environ == {"BURST_ID": "burst-0-abc", "FLUX_URI": "local:///x"}
    assert found.identity == identity_of(child.pid)


def test_a_zombie_does_not_run_but_has_a_birth(child: subprocess.Popen[bytes]) -> None:
    before = identity_of(child.pid)
    child.kill()
    wait_until(lambda: child.pid not in scan(), "its end")
    assert identity_of(child.pid) == before


def test_a_name_with_spaces_and_parentheses_is_no_trouble(tmp_path: Path) -> None:
    program = tmp_path / "a) R 1 (b"
    program.symlink_to(sys.executable)
    code = "import sys; sys.stdin.read()"
    with subprocess.Popen([program, "-c", code], stdin=subprocess.PIPE) as process:
        assert scan()[process.pid].session == os.getsid(0)


def _reborn(process: Process) -> Process:
    identity = process.identity
    other = ProcessIdentity(identity.pid, identity.start + 1, identity.boot)
    return msgspec.structs.replace(process, identity=other)


def test_a_signal_reaches_no_other_with_the_pid(child: subprocess.Popen[bytes]) -> None:
    process = scan()[child.pid]
    send(signal.SIGKILL, [_reborn(process)])
    assert child.poll() is None
    send(signal.SIGTERM, [process])
    assert child.wait(HANG_S) == -signal.SIGTERM, "and not by the signal before"
    send(signal.SIGTERM, [process])


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be somebody else")
def test_a_process_of_another_user_is_refused() -> None:
    code = """
import os, signal, sys
from burst_local.processes import scan, send
from burst.errors import Refused
os.setuid(65534)
mine = scan()[1]
try:
    send(signal.SIGTERM, [mine])
except Refused as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert "process 1 belongs to another user; run the daemon as" in done.stdout


def test_without_proc_there_are_no_local_followers(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="need Linux"):
        scan(tmp_path)


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """Make a directory that looks like /proc, without a process."""
    return make_proc(tmp_path)


@pytest.fixture
def open_proc() -> Iterator[Path]:
    """Make one that others can read: each start of pytest closes what `proc` is in."""
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        yield make_proc(Path(place))


def make_proc(place: Path) -> Path:
    boot = place / "sys/kernel/random/boot_id"
    boot.parent.mkdir(parents=True)
    boot.write_text("this-boot\n")
    return place


def add(proc: Path, pid: int, state: str, threads: int) -> Path:
    """Add a process in session 12 that started at tick 777."""
    (proc / str(pid)).mkdir()
    fields = f"{state} 1 12 12 " + "0 " * 13 + f"{threads} 0 777 0"
    (proc / str(pid) / "stat").write_text(f"{pid} (x) {fields}")
    return proc / str(pid)


def test_what_ends_while_it_is_looked_at_is_passed_over(proc: Path) -> None:
    add(proc, 12, "S", 1)
    (proc / "13").mkdir()
    (proc / "not-a-pid").mkdir()
    (found,) = scan(proc).values()
    assert found.identity == ProcessIdentity(12, 777, "this-boot")
    assert found.session == 12
    assert found.environ == {}


@pytest.mark.parametrize(("threads", "runs"), [(2, True), (1, False)])
def test_a_process_lives_as_its_threads(threads: int, runs: bool, proc: Path) -> None:
    add(proc, 12, "Z", threads)
    assert (12 in scan(proc)) == runs


AS_ANOTHER = """
import os, sys
from pathlib import Path
from burst_local.processes import is_hidden, scan
proc = Path(sys.argv[1])
os.setuid(65534)
sys.stdin.readline()
print(sorted(scan(proc)), is_hidden(os.getpid(), proc), is_hidden(1, proc))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be somebody else")
def test_with_hidepid_the_processes_of_others_are_left_out_and_ours_are_seen(
    open_proc: Path,
) -> None:
    proc = open_proc
    add(proc, 1, "S", 1)
    add(proc, 12, "S", 1)
    (proc / "1").chmod(0)
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-c", AS_ANOTHER, proc], stdin=pipe, stdout=pipe, text=True
    ) as looker:
        (proc / str(looker.pid)).mkdir(mode=0)
        said, _ = looker.communicate("look\n", timeout=HANG_S)
        assert said == "[12] True False\n"


def test_a_process_of_ours_that_proc_does_not_show_is_hidden(
    proc: Path, child: subprocess.Popen[bytes]
) -> None:
    assert is_hidden(child.pid, proc)
    assert not is_hidden(child.pid)
    child.kill()
    child.wait()
    assert not is_hidden(child.pid, proc)


@pytest.mark.skipif(os.geteuid() != 0, reason="a process of another user takes root")
def test_a_process_of_another_user_is_seen_with_its_user() -> None:
    drop = ["setpriv", "--reuid=61001", "--regid=61001", "--clear-groups"]
    with subprocess.Popen([*drop, "sleep", "1000"]) as process:
        try:
            wait_until(lambda: scan()[process.pid].user == 61001, "its user")
        finally:
            process.kill()
