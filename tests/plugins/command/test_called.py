# SPDX-License-Identifier: MIT
"""A `begin` that outlives the daemon that called it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
from burst_command.protocol import noted, running

from burst.errors import NotFound, Transient
from burst.provider import Phase
from tests.plugins.command.says import BURST, Says, row
from tests.support.waiting import wait_until

STILL = "an earlier daemon called, still runs as process"
SLOW = """\
case $1 in
begin) echo begin >> "$0.calls"; until [ -e "$0.go" ]; do sleep 0.05; done
    mv "$0.next" "$0.listed" ;;
list) cat "$0.listed" ;;
end) rm -f "$0.listed"; echo '[]' > "$0.listed" ;;
esac
"""


@pytest.fixture
def slow(tmp_path: Path) -> Says:
    """A program that makes a burst once there is a file `program.go`."""
    says = Says(tmp_path)
    says.script(SLOW)
    (tmp_path / "program.listed").write_text("[]")
    (tmp_path / "program.next").write_bytes(msgspec.json.encode([row()]))
    return says


@contextmanager
def orphaned(says: Says, limit: float = 60.0) -> Iterator[subprocess.Popen[bytes]]:
    """Call `begin` as a daemon does that is killed meanwhile."""
    place = says.path / "shared" / "owner.site" / BURST
    place.mkdir(parents=True, mode=0o700)
    for each in (place.parent, place.parent.parent):
        each.chmod(0o700)
    argv = noted([*says.settings.program, "begin"], place / "begin", limit)
    child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        calls = says.path / "program.calls"
        wait_until(
            lambda: calls.exists() or child.poll() is not None, "the program to run"
        )
        yield child
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def test_nothing_is_begun_beside_it(slow: Says) -> None:
    provider, spec = slow.provider(), slow.spec()
    with orphaned(slow) as child:
        with pytest.raises(Transient, match=STILL):
            provider.provision(spec)
        assert [status.phase for status in provider.observe()] == [Phase.PENDING]
        (slow.path / "program.go").touch()
        child.wait()
    provider.provision(spec)
    assert (slow.path / "program.calls").read_text().splitlines() == ["begin"]
    assert [status.phase for status in provider.observe()] == [Phase.RUNNING]


def test_it_is_not_told_that_nothing_is_left_meanwhile(slow: Says) -> None:
    provider, spec = slow.provider(), slow.spec()
    with orphaned(slow) as child:
        with pytest.raises(Transient, match=STILL):
            provider.reap(spec.burst_id)
        (slow.path / "program.go").touch()
        child.wait()
    provider.reap(spec.burst_id)
    with pytest.raises(NotFound):
        provider.reap(spec.burst_id)


def test_it_is_killed_after_its_time_limit(slow: Says) -> None:
    """Not by the next daemon: there may be none."""
    provider, spec = slow.provider(), slow.spec()
    note = slow.path / "shared" / "owner.site" / BURST / "begin"
    with orphaned(slow, limit=0.3):
        # timeout(1) kills itself with the program, which may end a little later.
        wait_until(lambda: not running(note), "the program to be killed")
    with pytest.raises(NotFound):
        provider.reap(spec.burst_id)


@pytest.mark.parametrize(
    "other",
    [
        lambda text: "",
        lambda text: text.splitlines()[0],
        lambda text: text.replace("\n", "0\n"),
        lambda text: text.replace(f"{os.getpid()} (", "4194305 ("),
    ],
    ids=["empty", "torn", "of another boot", "no process"],
)
def test_another_process_is_none(tmp_path: Path, other: Callable[[str], str]) -> None:
    note = tmp_path / "note"
    boot = Path("/proc/sys/kernel/random/boot_id").read_text()
    own = Path("/proc/self/stat").read_text() + boot
    note.write_text(own)
    assert running(note) == os.getpid()
    note.write_text(other(own))
    assert running(note) == 0


def test_the_process_is_noted_before_the_program_runs(slow: Says) -> None:
    (slow.path / "program.go").touch()
    slow.provider().provision(slow.spec())
    note = slow.path / "shared" / "owner.site" / BURST / "begin"
    assert note.read_text().endswith(
        Path("/proc/sys/kernel/random/boot_id").read_text()
    )
    assert running(note) == 0
