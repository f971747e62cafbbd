# SPDX-License-Identifier: MIT
"""With which status the lead's container ends: a Job whose pod is deleted goes on."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.waiting import HANG_S, wait_until

SCRIPT = Path(__file__).parents[2] / "manifests" / "base" / "lead" / "start.sh"
SHELLS = [name for name in ("bash", "dash") if shutil.which(name)]
Start = Callable[[str], subprocess.Popen[bytes]]


@pytest.fixture(params=SHELLS)
def start(request: pytest.FixtureRequest, tmp_path: Path) -> Start:
    """Return what runs the script with `flux` being the lines of a shell script."""
    own = tmp_path / "own"
    text = SCRIPT.read_text()
    for path, place in {
        "own=/mnt/flux/burst": f"own={own}",
        "state=/var/lib/burst/state": f"state={tmp_path / 'state'}",
        "/etc/burst/curve/curve.cert": str(tmp_path / "curve.cert"),
    }.items():
        assert text.count(path) == 1
        text = text.replace(path, place)
    (tmp_path / "curve.cert").touch()

    def run(flux: str) -> subprocess.Popen[bytes]:
        (tmp_path / "flux").write_text(f"#!/bin/sh\n{flux}\n")
        (tmp_path / "flux").chmod(0o755)
        path = f"{tmp_path}:{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, "OWN": str(tmp_path)}
        return subprocess.Popen([request.param, "-c", text], env=environment)

    return run


@pytest.mark.parametrize("status", [0, 1, 3])
def test_it_ends_as_its_broker_does(start: Start, status: int) -> None:
    assert start(f"exit {status}").wait(HANG_S) == status


@pytest.mark.parametrize("status", [0, 1])
def test_a_signal_ends_the_broker_in_order_and_the_pod_has_failed(
    start: Start, tmp_path: Path, status: int
) -> None:
    """It waits for the broker, which takes its time."""
    ends = f"sleep 0.3; touch $OWN/ended; exit {status}"
    broker = f"trap '{ends}' TERM; touch $OWN/ready; while :; do sleep 0.05; done"
    started = start(broker)
    wait_until((tmp_path / "ready").exists, "the broker")
    started.send_signal(signal.SIGTERM)
    assert started.wait(HANG_S) == 128 + signal.SIGTERM
    assert (tmp_path / "ended").exists()


def test_a_broker_that_ends_gets_no_further_signal(
    start: Start, tmp_path: Path
) -> None:
    told = tmp_path / "told"
    broker = (
        "trap 'echo told >> $OWN/told' TERM; touch $OWN/ready\n"
        "until [ -e $OWN/leave ]; do sleep 0.05; done"
    )
    started = start(broker)
    wait_until((tmp_path / "ready").exists, "the broker")
    started.send_signal(signal.SIGTERM)
    wait_until(told.exists, "the signal")
    started.send_signal(signal.SIGTERM)
    time.sleep(1)  # what would be told once more has been
    (tmp_path / "leave").touch()
    assert started.wait(HANG_S) == 128 + signal.SIGTERM
    assert told.read_text() == "told\n"


def test_a_broker_that_a_signal_killed_is_not_a_job_that_is_complete(
    start: Start,
) -> None:
    assert start("kill -KILL $$").wait(HANG_S) == 128 + signal.SIGKILL
