# SPDX-License-Identifier: MIT
import msgspec

from burst.kits.examine_lead import examine_lead
from burst.model.finding import Level
from burst.model.lead import GuestAccess
from tests.builders import identity


def test_a_lead_of_many_users_and_one_with_systemd_are_noted() -> None:
    lead = identity("lead-0,burst-0-[0-1]", owner="o")
    assert list(examine_lead(None)) == list(examine_lead(lead)) == []
    many = msgspec.structs.replace(
        lead, access=GuestAccess(allow_guest_user=True), systemd=True
    )
    users, systemd = examine_lead(many)
    assert users.level is systemd.level is Level.NOTE
    assert users.what.startswith("the lead serves all users")
    assert systemd.what.startswith("the lead has [systemd] enable")
