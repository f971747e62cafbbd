# SPDX-License-Identifier: MIT
"""Numbers that pages promise are those of the product.

Each row has a sentence as the page has it, with the number from the constant: the tests
of behaviour take a constant by its name, and hold whatever it is.
"""

from __future__ import annotations

import pytest
from burst_flux import states as flux_states
from burst_slurm import states as slurm_states
from burst_vm.handover import TOKEN_BYTES
from burst_vm.provider import FETCH_S

from burst.config import DeadlineSettings
from burst.core.money.accounts import KEPT_SETTLED, MOST_SETTLED
from burst.core.money.periods import KEPT_DAYS, MOST_GROUPS
from burst.core.obstacles import AGAIN_S
from burst.core.plan.promises import RESERVATION_S
from burst.core.tick import KEPT_ENDED
from burst.core.world import ABSENT_READS
from burst.model.fsd import format_fsd
from burst.provider import OUTPUT_MOST
from burst.runtime.bank_reader import ASK_EVERY_S
from burst.runtime.bursts_left import RECONNECT_S
from tests.docs.doc_pages import TOP

LATE = format_fsd(DeadlineSettings().housekeeping)
LOST = format_fsd(RECONNECT_S)
WORDS: dict[float, str] = {3: "three times", 60: "a minute", 4 * 3600: "four hours"}
PROMISES = (
    ("backup", f"knows the last {KEPT_SETTLED:,} bursts"),
    ("cost", f"offer are kept for {KEPT_DAYS} days by day, then by month"),
    ("cost", f"More than {MOST_GROUPS:,} in a day are summed up as `others`"),
    ("cost", f"The last {KEPT_SETTLED:,} bursts are in the lead's store"),
    ("cost", f"cannot write it, {MOST_SETTLED:,} bursts wait in the store"),
    ("cost", f"asks it every {ASK_EVERY_S:.0f} seconds who may use which bank"),
    ("deciding", f"until {WORDS.get(RESERVATION_S)} after its submission"),
    ("flux", f"has been stopped for {WORDS.get(flux_states.SETTLES_S)}, or has"),
    ("isolated", f"the last {OUTPUT_MOST / 1024:g} KiB of standard output and error"),
    ("lent-nodes", f"After {LATE}, housekeeping gets SIGTERM"),
    ("lent-nodes", f"and SIGKILL {WORDS.get(AGAIN_S)} later"),
    ("life", f"the store keeps the last {KEPT_ENDED} of these"),
    ("operation", f"and their jobs fail, if the lead is back within {LOST}"),
    ("operation", f"loses its lead tries to connect for {LOST} and then ends"),
    ("provider", f"missing {WORDS.get(ABSENT_READS)} in a row | ends as failed"),
    ("service", f"the last {KEPT_ENDED} that ended, and the last {KEPT_SETTLED:,} set"),
    ("slurm", f"have lasted for {WORDS.get(slurm_states.SETTLES_S)}"),
    ("slurm", f"the daemon waits for {WORDS.get(slurm_states.SETTLES_S)} before"),
    ("vm", f"a token of {TOKEN_BYTES} random bytes for this one follower"),
    ("vm", f"valid once and for {FETCH_S / 60:g} minutes"),
    ("watching", f"The last {KEPT_ENDED} bursts that ended are on record"),
    ("watching", f"Of days older than {KEPT_DAYS} days, money is known by month"),
)


@pytest.mark.parametrize(("page", "promise"), PROMISES)
def test_a_promised_number_is_that_of_the_product(page: str, promise: str) -> None:
    text = (TOP / "docs" / f"{page}.md").read_text(encoding="utf-8")
    assert promise in " ".join(text.split())
