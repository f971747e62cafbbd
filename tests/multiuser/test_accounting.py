# SPDX-License-Identifier: MIT
"""Banks and limits of guests of a real system instance with flux-accounting."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from burst.flux.accounting import PLUGIN
from tests.flux.real_accounting import (
    INSTALLED,
    MISSING,
    RealAccounting,
    real_accounting,
)
from tests.multiuser.lab import OWNER, UIDS
from tests.multiuser.system_instance import SystemInstance
from tests.support.waiting import wait_until

pytestmark = [
    pytest.mark.multiuser,
    pytest.mark.skipif(not INSTALLED, reason=MISSING),
]
LENT = "--setattr=burstable", "-N2", "-c4"


@pytest.fixture
def accounting(system: SystemInstance) -> Iterator[RealAccounting]:
    def flux(*words: str) -> str:
        return system.flux(OWNER, *words)

    def start(*words: str, log: IO[bytes]) -> subprocess.Popen[bytes]:
        known = {"FLUX_URI": system.uri}
        return system.lab.start(OWNER, "flux", *words, log=log, env=known)

    with real_accounting(flux, start, system.directory) as its:
        its.add_bank("physics")
        its.add_bank("art")
        its.add_user("ann", UIDS["ann"], "physics")
        its.add_user("bob", UIDS["bob"], "art", "--max-nodes=2")
        its.update()
        yield its
    # It holds the jobs that the lead is emptied of.
    system.flux(OWNER, "jobtap", "remove", Path(PLUGIN).name)


def test_a_guest_runs_by_his_bank_and_one_over_his_limit_is_told_so(
    system: SystemInstance, accounting: RealAccounting
) -> None:
    with system.daemon():
        running = system.flux("bob", "submit", "-N1", "sleep", "inf")
        system.flux("bob", "job", "wait-event", running, "start")
        assert accounting.association(UIDS["bob"], "art")["cur_nodes"] == 1
        waits = system.flux("bob", "submit", *LENT, "true")
        ann = system.flux("ann", "submit", *LENT, "id", "-u")
        done = system.wait_for_end("ann", ann)
        assert done.returncode == 0, str(done)
        assert done.stdout.split() == [str(UIDS["ann"])] * 2
        wait_until_told(system, "bob", waits, "limit max_nodes 2 of bank art")
        # Nothing was rented but for ann, and bob is shown nothing of hers.
        (burst,) = system.bursts()
        assert burst["nodes"] == 2
        assert system.bursts("bob") == []
        assert system.try_burst("bob", "explain", ann).returncode != 0
        refused = system.try_flux("bob", "submit", *LENT, "--bank=physics", "true")
        assert refused.returncode != 0
        assert "cannot find user/bank" in refused.stderr
        system.flux("bob", "cancel", running)
        assert system.wait_for_end("bob", waits).returncode == 0


def wait_until_told(system: SystemInstance, user: str, job: str, why: str) -> None:
    said = f"it waits for flux-accounting: {why}"
    wait_until(
        lambda: said in system.try_burst(user, "explain", job).stdout,
        lambda: str(system.try_burst(user, "explain", job)),
    )
