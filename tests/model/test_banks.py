# SPDX-License-Identifier: MIT
"""Which bank pays for a job, as flux-accounting says it."""

import pytest

from burst.model.banks import NOT_VERIFIED, Associations, Banks
from tests.builders import job, whole

ANN, BEN, EVE = 1, 2, 3
KNOWN = Banks(
    Associations(
        {ANN: frozenset({"physics", "maths"}), BEN: frozenset({"maths"})},
        {ANN: "physics"},
    )
)


@pytest.mark.parametrize(
    ("user", "named", "pays", "refused"),
    [
        (ANN, "maths", "maths", False),
        (ANN, "", "physics", False),
        (BEN, "physics", "", True),
        (BEN, "", "", False),
        (EVE, "maths", "", True),
        (EVE, "", "", False),
    ],
)
def test_a_bank_pays_for_its_users_only(user, named, pays, refused):
    found = job(1, whole(1), userid=user, bank=named)
    assert KNOWN.bank_of(found) == pays
    assert KNOWN.refuses(found) is refused
    assert NOT_VERIFIED.bank_of(found) == named
    assert not NOT_VERIFIED.refuses(found)
