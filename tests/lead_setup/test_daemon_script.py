# SPDX-License-Identifier: MIT
"""The program of rc1.d that starts the daemon; stand-ins for flux and the daemon."""

import os
import subprocess
from pathlib import Path

import pytest

from burst.lead_setup.start_files import rc1_daemon_script
from tests.support.waiting import wait_until

_DAEMON = """\
import pathlib, time
here = pathlib.Path({here!r})
with (here / "starts").open("a") as file:
    file.write("start\\n")
while not (here / "stop").exists():
    time.sleep(0.01)
"""


def test_the_daemon_finds_the_slurm_of_the_shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_JWT", "hush")
    monkeypatch.setenv("SLURM_CONF", "/the site/slurm.conf")
    monkeypatch.delenv("SLURM_CONF_SERVER", raising=False)
    script = rc1_daemon_script(tmp_path)
    assert "until env 'SLURM_CONF=/the site/slurm.conf' /" in script
    assert "hush" not in script
    monkeypatch.delenv("SLURM_CONF")
    assert "until /" in rc1_daemon_script(tmp_path)


def test_a_daemon_that_was_stopped_stays_so_where_its_lead_was_started_anew(
    tmp_path: Path,
) -> None:
    (tmp_path / "burst").mkdir()
    (tmp_path / "burst" / "__init__.py").touch()
    (tmp_path / "burst" / "__main__.py").write_text(_DAEMON.format(here=str(tmp_path)))
    flux = tmp_path / "flux"
    flux.write_text("#!/bin/sh\necho 0\n")
    flux.chmod(0o755)
    script = tmp_path / "script"
    script.write_text(rc1_daemon_script(tmp_path))
    path = f"{tmp_path}:{os.environ['PATH']}"
    environ = {**os.environ, "PATH": path, "PYTHONPATH": str(tmp_path)}
    starts, lock = tmp_path / "starts", tmp_path / "daemon.lock"

    def start_lead() -> None:
        subprocess.run(["/bin/sh", script], env=environ, cwd=tmp_path, check=True)

    def waiting() -> int:
        inode = f":{lock.stat().st_ino} "
        locks = Path("/proc/locks").read_text().splitlines()
        return sum(inode in line and "->" in line for line in locks)

    def is_free() -> bool:
        taken = ["flock", "--nonblock", str(lock), "true"]
        return subprocess.run(taken, check=False).returncode == 0

    try:
        start_lead()
        wait_until(starts.exists, "the daemon was not started")
        start_lead()
        start_lead()
        wait_until(lambda: waiting() == 2, waiting)
    finally:
        (tmp_path / "stop").touch()
    wait_until(lambda: waiting() == 0 and is_free(), waiting)
    assert starts.read_text() == "start\n"

    start_lead()
    wait_until(lambda: starts.read_text() == "start\nstart\n", starts.read_text)
