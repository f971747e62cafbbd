# SPDX-License-Identifier: MIT
"""Control groups of followers, as directories and as the kernel has them."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from burst_local.cgroups import Cgroups, delegated_group

from tests.support.waiting import wait_until

MOUNTS = "proc /proc proc rw 0 0\ncgroup2 {root} cgroup2 rw 0 0\n"


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """Give a process in the group a/b of a tree of groups in tmp_path/cg."""
    proc = tmp_path / "proc"
    proc.mkdir()
    (proc / "mounts").write_text(MOUNTS.format(root=tmp_path / "cg"))
    (proc / "cgroup").write_text("1:cpu:/x\n0::/a/b\n")
    (tmp_path / "cg/a/b").mkdir(parents=True)
    (tmp_path / "cg/a/b/cgroup.kill").touch()
    return proc


def test_a_group_of_ones_own_is_found_and_none_of_another_user(
    proc: Path, tmp_path: Path
) -> None:
    assert delegated_group(proc, os.geteuid()) == tmp_path / "cg/a/b"
    assert delegated_group(proc, os.geteuid() + 1) is None


@pytest.mark.parametrize(
    "spoil",
    [
        lambda proc: (proc / "mounts").write_text("proc /proc proc rw 0 0\n"),
        lambda proc: (proc / "cgroup").write_text("1:cpu:/x\n"),
        lambda proc: (proc / "cgroup").write_text("0::/../elsewhere\n"),
        lambda proc: (proc.parent / "cg/a/b/cgroup.kill").unlink(),
    ],
    ids=["not mounted", "version 1 alone", "outside of the namespace", "no kill"],
)
def test_without_a_group_that_can_be_used_there_is_none(
    proc: Path, spoil: Callable[[Path], object]
) -> None:
    spoil(proc)
    assert delegated_group(proc, os.geteuid()) is None


def _kernels() -> Path | None:
    lines = Path("/proc/self/mounts").read_text().splitlines()
    mounts = (line.split() for line in lines)
    root = next((Path(f[1]) for f in mounts if f[2] == "cgroup2"), None)
    return root if root and os.access(root, os.W_OK) else None


@pytest.fixture
def group() -> Iterator[Path]:
    """Give a group of the kernel's."""
    group = Path(tempfile.mkdtemp(prefix="burst-test-", dir=_kernels()))
    yield group
    for place in (*group.glob("*/"), group):
        place.rmdir()


@pytest.mark.skipif(not _kernels(), reason="want of a cgroup2 that may be written")
def test_what_left_the_session_of_a_follower_ends_with_its_group(group: Path) -> None:
    groups = Cgroups("o.p", group)
    script = "read go; setsid sleep 1000 & echo; exec sleep 1000"
    with subprocess.Popen(
        ["sh", "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as follower:
        groups.add("burst-0-1", "burst-0-0", follower.pid)
        assert follower.stdin
        assert follower.stdout
        follower.stdin.write(b"go\n")
        follower.stdin.flush()
        follower.stdout.readline()
        (place,) = group.glob("*/")
        assert len((place / "cgroup.procs").read_text().split()) == 2
        groups.kill("burst-0-1", ["burst-0-1"])  # another host, which has no group
        assert groups.remove("burst-0-2")
        follower.kill()
        follower.wait()
        assert not groups.remove("burst-0-1")
        wait_until(lambda: groups.remove("burst-0-1"), "the group's end")
    assert list(group.glob("*/")) == []


@pytest.mark.skipif(not _kernels(), reason="want of a cgroup2 that may be written")
def test_a_follower_that_has_ended_already_leaves_no_trouble(group: Path) -> None:
    groups = Cgroups("o.p", group)
    with subprocess.Popen(["true"]) as follower:
        pass
    groups.add("burst-0-1", "burst-0-0", follower.pid)
    groups.kill("burst-0-1", ["burst-0-0"])
    assert groups.remove("burst-0-1")
