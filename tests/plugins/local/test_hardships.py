# SPDX-License-Identifier: MIT
"""The local provider on a host where not all is as it should be."""

from __future__ import annotations

import itertools
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from burst_local import launch
from burst_local.processes import scan_all

from burst.errors import InsufficientCapacity, Refused, Transient
from burst.provider import Phase
from tests.plugins.local.harness import STUBBORN, LocalHarness
from tests.support.reaping import reap_until_gone
from tests.support.waiting import wait_until

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


@pytest.fixture
def small_disk(local: LocalHarness) -> Iterator[Path]:
    """Mount a file system of 64 KiB where followers have their directories."""
    base = local.directory / "run"
    base.mkdir(mode=0o700)
    options = ["-t", "tmpfs", "-o", "size=64k,mode=0700"]
    subprocess.run(["mount", *options, "tmpfs", base], check=True)
    yield base
    (base / "fill").unlink(missing_ok=True)
    killer = local.provider(grace=0)
    for status in killer.observe():
        local.reap_all(killer, status.burst_id)
    # The provider may still have its directory locked.
    subprocess.run(["umount", "--lazy", base], check=True)


def fill(disk: Path) -> None:
    with (
        (disk / "fill").open("wb", buffering=0) as file,
        pytest.raises(OSError, match="No space left"),
    ):
        file.writelines(itertools.repeat(b"x" * 4096))


@needs_root
def test_on_full_disk_a_burst_is_reaped(small_disk: Path, local: LocalHarness) -> None:
    provider, spec = local.begun()
    fill(small_disk)
    provider.reap(spec.burst_id)
    assert local.status(provider).phase is Phase.ENDING
    with pytest.raises(Transient, match="is being reaped"):
        provider.provision(spec)
    # One that ends shows no tags any more a moment before it has ended.
    reap_until_gone(provider, spec.burst_id)
    assert os.listdir(small_disk) == ["fill"]


@needs_root
def test_on_a_full_disk_nothing_is_started_and_it_is_told_until_there_is_room(
    small_disk: Path, local: LocalHarness
) -> None:
    provider, spec = local.provider(), local.spec()
    assert [offer.name for offer in provider.offers()] == ["local"]
    fill(small_disk)
    with pytest.raises(Refused, match=f"the file system of {small_disk} is full; free"):
        provider.offers()
    with pytest.raises(InsufficientCapacity, match="No space left on device; free"):
        provider.provision(spec)
    assert local.pids(spec.burst_id) == set()
    (small_disk / "fill").unlink()
    assert [offer.name for offer in provider.offers()] == ["local"]


def test_without_a_place_to_write_the_grace_is_kept_too(local: LocalHarness) -> None:
    local.script = STUBBORN
    provider, spec = local.ready()
    (local.home.burst(spec.burst_id).path / "ending").mkdir()
    provider.reap(spec.burst_id)
    assert local.status(provider).phase is Phase.ENDING
    local.now += 10
    provider.reap(spec.burst_id)
    # One that ends shows no tags any more a moment before it has ended.
    reap_until_gone(provider, spec.burst_id)


def test_of_followers_that_ended_no_more_is_kept_than_how_the_last_did(
    local: LocalHarness,
) -> None:
    local.script = "exit 1"
    provider, spec = local.provider(), local.spec()
    before = len(launch._children) + len(launch._ends)
    for _ in range(5):
        provider.provision(spec)
        wait_until(lambda: local.all_failed(provider), "their end")
    assert not _zombies()
    assert len(launch._children) + len(launch._ends) == before + len(spec.hosts)
    local.reap_all(provider, spec.burst_id)
    assert len(launch._children) + len(launch._ends) == before


def _zombies() -> set[int]:
    mine = os.getpid()
    return {p.pid for p in scan_all().values() if p.ended and p.parent == mine}


AS_NOBODY = """
import os, sys
from pathlib import Path
from burst.errors import NotFound
from burst_local.provider import LocalProvider, LocalSettings
from burst_local.burst_dirs import ProviderDirectory
base, owner = sys.argv[1:]
os.setgid(65534)
os.setuid(65534)
home = ProviderDirectory(Path(base), owner, "here")
home.open()
for name, rundir in (("burst-0-1", 0), ("burst-0-2", 0o700)):
    deep = home.path / name / "burst-0-0" / "deep"
    deep.mkdir(parents=True, mode=0o700)
    (deep / "file").touch()
    deep.chmod(0)
    deep.parent.chmod(rundir)
    deep.parent.parent.chmod(rundir)
provider = LocalProvider("here", LocalSettings(dir=base, cores=1), owner)
print(len(provider.observe()))
for name in ("burst-0-1", "burst-0-2"):
    try:
        provider.reap(name)
    except NotFound:
        print("reaped")
print(home.path.exists())
"""


@needs_root
def test_a_directory_that_a_job_closed_is_removed(local: LocalHarness) -> None:
    base = local.directory / "nobodys"
    base.mkdir()
    os.chown(base, 65534, 65534)
    local.directory.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-c", AS_NOBODY, base, local.owner],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "2\nreaped\nreaped\nFalse\n", done.stderr


def test_a_host_without_free_files_is_left_for_a_moment(local: LocalHarness) -> None:
    provider, spec = local.provider(), local.spec()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    provider.provision(spec)
    taken = max(int(name) for name in os.listdir("/proc/self/fd"))
    opened = [os.open("/dev/null", os.O_RDONLY) for _ in range(taken)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(opened) + 1, hard))
    try:
        with pytest.raises(Transient, match="Too many open files"):
            provider.reap(spec.burst_id)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for number in opened:
            os.close(number)
    assert len(local.pids(spec.burst_id)) == 2
    local.reap_all(provider, spec.burst_id)
