# SPDX-License-Identifier: MIT
"""`kill -9` of daemon, lead, follower and munged while guests' jobs run."""

from __future__ import annotations

import json
import os
import re
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.multiuser.lab import MUNGE_SOCKET, OWNER, UIDS, end_process
from tests.multiuser.system_instance import SystemInstance
from tests.support.waiting import wait_until

pytestmark = pytest.mark.multiuser

RUN = (b"sleep", b"tail", b"flux-shell")
TASKS = (b"sleep\0", b"tail\0")
# So often a follower is killed until something outlives it.
_TRIES = 20
LENT = ("--setattr=burstable", "--requires=burst", "-c4")


def processes(
    instance: SystemInstance, holds: Callable[[bytes, int], bool]
) -> set[int]:
    """Return the processes of which that holds, by command line and user."""
    found = set()
    for pid in instance.lab.pids():
        with suppress(OSError):
            entry = Path(f"/proc/{pid}")
            if holds((entry / "cmdline").read_bytes(), entry.stat().st_uid):
                found.add(pid)
    return found


def guests_processes(instance: SystemInstance) -> set[int]:
    """Return what guests' jobs run, with the IMPs that started them."""
    guests = {UIDS["ann"], UIDS["bob"]}
    return processes(
        instance,
        lambda command, user: (
            (user in guests and any(name in command for name in RUN))
            or b"flux-imp\x00exec" in command
        ),
    )


def sleepers(instance: SystemInstance) -> int:
    """Return how many tasks of guests sleep."""
    guests = {UIDS["ann"], UIDS["bob"]}
    return len(
        processes(
            instance,
            lambda command, user: user in guests and command.startswith(TASKS),
        )
    )


def start_job(instance: SystemInstance, *command: str) -> str:
    """Have a job of ann's run on two lent nodes; return its id once it does."""
    job = instance.flux("ann", "submit", *LENT, "-N2", *(command or ("sleep", "inf")))
    wait_until(lambda: sleepers(instance) == 2, lambda: instance.jobs("{id} {status}"))
    return job


def wait_for_nothing(instance: SystemInstance) -> None:
    """Wait until nothing of any burst is left."""
    wait_until(
        lambda: not instance.followers() and not guests_processes(instance),
        lambda: (instance.followers(), guests_processes(instance)),
    )
    wait_until(lambda: not directories(instance), lambda: directories(instance))


def directories(instance: SystemInstance) -> list[Path]:
    """Return the directories of bursts; of providers while those are removed."""
    place = instance.directory / "p"
    try:
        return list(place.glob("*/*"))
    except FileNotFoundError:
        return [place]


def kill_a_follower(instance: SystemInstance, job: str) -> None:
    """Kill one of the followers on which a job of ann's runs, and see the job end."""
    instance.kill_follower(instance.followers()[0])
    assert instance.wait_for_end("ann", job).returncode != 0


def last_burst(instance: SystemInstance) -> dict[str, Any]:
    """Return what is told of the burst that was made last."""
    return max(instance.bursts(), key=lambda burst: float(burst["t_submit"]))


def told_to_kill(instance: SystemInstance) -> set[int]:
    """Return the processes that root is told to kill by the last burst's note."""
    burst = last_burst(instance)
    told = re.search(r"as root: kill -9 ([\d ]+\d)", json.dumps(burst))
    return {int(pid) for pid in told[1].split()} if told else set()


def test_what_a_guest_runs_after_its_follower_was_killed_is_told_until_it_ends(
    system: SystemInstance,
) -> None:
    system.write_settings(deadlines={"reap": "3s"})
    with system.daemon():
        # Flux's shell may see that its broker is gone, and end what it runs.
        for _ in range(_TRIES):
            job = start_job(system)
            kill_a_follower(system, job)
            # Processes that end with their job may be told of at first.
            wait_until(
                lambda: (
                    told_to_kill(system) == guests_processes(system) != set()
                    or last_burst(system)["state"] == "inactive"
                ),
                lambda: (system.bursts(), guests_processes(system)),
            )
            if last_burst(system)["state"] == "reap":
                break
        else:
            pytest.fail(f"in {_TRIES} attempts nothing outlived its follower")
        for pid in told_to_kill(system):
            # It may end by itself yet.
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        wait_for_nothing(system)
        after = system.flux("bob", "submit", *LENT, "-N1", "id", "-u")
        assert system.wait_for_end("bob", after).stdout.split() == [str(UIDS["bob"])]


@pytest.fixture
def group() -> Iterator[Path]:
    """Give a control group that was delegated to the owner of the instance."""
    mounts = (line.split() for line in Path("/proc/mounts").read_text().splitlines())
    root = next((fields[1] for fields in mounts if fields[2] == "cgroup2"), None)
    if root is None:
        pytest.skip("want of a cgroup2 that is mounted")
    group = Path(tempfile.mkdtemp(prefix="burst-test-", dir=root))
    for path in (group, group / "cgroup.procs"):
        os.chown(path, UIDS[OWNER], UIDS[OWNER])
    yield group
    for place in (*group.glob("*/"), group):
        place.rmdir()


def test_a_guests_processes_end_with_the_daemons_own_control_group(
    system: SystemInstance, group: Path
) -> None:
    leaves = "setsid sleep 600 & exec sleep 600"
    with system.daemon(group=group):
        job = system.flux("ann", "submit", *LENT, "-N2", "sh", "-c", leaves)
        wait_until(
            lambda: (
                len(list(group.glob("*/"))) == 2 and len(guests_processes(system)) >= 8
            ),  # IMP, shell, and two of sleep
            lambda: guests_processes(system),
        )
        kill_a_follower(system, job)
        wait_for_nothing(system)
        wait_until(lambda: not list(group.glob("*/")), "the groups' end")


def test_a_killed_lead_leaves_no_process_of_the_guest(system: SystemInstance) -> None:
    with system.daemon() as daemon:
        start_job(system)
        lead = system.broker("lead-0")
        lead.kill()
        lead.wait()
        system.start()
        wait_until(
            lambda: (
                daemon.log().count(" serves ") >= 2 or daemon.process.poll() is not None
            ),
            daemon.log,
        )
        wait_for_nothing(system)
        job = system.flux("bob", "submit", *LENT, "-N1", "id", "-u")
        assert system.wait_for_end("bob", job).stdout.split() == [str(UIDS["bob"])]


def test_jobs_that_run_outlive_a_killed_munged(system: SystemInstance) -> None:
    with system.daemon():
        # A job that ends well once this has ended.
        lasts = system.lab.start(OWNER, "sleep", "inf")
        watch = ("tail", "-f", f"--pid={lasts.pid}", "/dev/null")
        job = start_job(system, *watch)
        system.lab.kill_munged()
        try:
            said = system.try_flux("bob", "submit", *LENT, "-N1", "id", "-u")
            assert said.returncode != 0
            assert str(MUNGE_SOCKET) in said.stderr
            end_process(lasts)
            assert system.wait_for_end("ann", job).returncode == 0
            assert system.status("ann")["daemon"]
        finally:
            system.lab.start_munged()
        after = system.flux("bob", "submit", *LENT, "-N1", "id", "-u")
        assert system.wait_for_end("bob", after).stdout.split() == [str(UIDS["bob"])]
        wait_for_nothing(system)
