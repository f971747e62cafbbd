# SPDX-License-Identifier: MIT
"""Guests' jobs on local followers of a real system instance."""

from __future__ import annotations

import pytest

from tests.multiuser.lab import GUESTS, UIDS
from tests.multiuser.system_instance import SystemInstance
from tests.support.waiting import wait_until

pytestmark = pytest.mark.multiuser

WHO = ("sh", "-c", "id -u; flux getattr hostname")


def test_jobs_of_guests_run_on_followers_as_themselves(system: SystemInstance) -> None:
    with system.daemon():
        jobs = {
            guest: system.flux(
                guest, "submit", "-N3", "--setattr=burstable", "-c4", *WHO
            )
            for guest in GUESTS
        }
        for guest, job in jobs.items():
            done = system.wait_for_end(guest, job)
            assert done.returncode == 0, (
                str(done)[-1500:],
                system.jobs("{id} {status} {ranks}"),
            )
            words = done.stdout.split()
            assert words.count(str(UIDS[guest])) == 3
            assert sum(word.startswith("burst-") for word in words) == 3
        wait_until(
            lambda: all(b["state"] == "inactive" for b in system.bursts()),
            lambda: str(system.bursts()),
        )


def test_root_starts_no_followers_in_the_owners_instance(
    system: SystemInstance,
) -> None:
    """They would be brokers of root, on which the owner could run anything as root."""
    command = ("python", "-m", "burst", "daemon", "-c", str(system.settings))
    done = system.lab.try_run("root", *command, "--uri", system.uri)
    assert done.returncode == 1, done
    assert "the instance is flux's, and this is uid 0" in done.stderr
    assert not (system.directory / "p").exists()
