# SPDX-License-Identifier: MIT
"""A lead that loses what keeps its users apart while the daemon runs."""

import logging

import pytest

from burst.model.lead import GuestAccess
from tests.builders import identity
from tests.fakes import FakeLead
from tests.sim import Sim

WHY = "the burst frobnicator is not loaded"


@pytest.mark.parametrize("guests", [True, False])
def test_it_is_told_once_and_again_when_it_is_well(guests, caplog):
    access = GuestAccess(allow_guest_user=guests)
    lead = FakeLead(known=identity(access=access), confines=guests)
    sim = Sim(lead, daemon={"cadence": "10s"})
    with caplog.at_level(logging.INFO):
        sim.tick(20)
        assert not caplog.text
        lead.not_apart = WHY
        sim.tick(40)
        assert caplog.text.count(WHY) == guests
        lead.not_apart = ""
        sim.tick(20)
        assert caplog.text.count("the lead keeps users apart again") == guests
