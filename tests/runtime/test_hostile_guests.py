# SPDX-License-Identifier: MIT
"""Two days of users who do all they can at a daemon that is not theirs."""

import os
import sys

import pytest

from tests.runtime.hostile_guests import HostileGuests

TIME_S = 2 * 86400.0
SEED = int(os.environ.get("BURST_GUESTS_SEED") or 1)
"""The same in each run: a gate is not to depend on a draw; a soak test sets others."""


@pytest.mark.no_cover
def test_two_days_of_hostile_guests() -> None:
    # Shown where it fails.
    sys.stdout.write(f"BURST_GUESTS_SEED={SEED}\n")
    guests = HostileGuests(SEED)
    begin = guests.sim.now
    while guests.sim.now < begin + TIME_S:
        guests.step()
    guests.end()
    done = guests.answered, guests.refused, guests.floods, guests.requested
    assert min(done) > 0, done
