# SPDX-License-Identifier: MIT
"""Which drains are Flux's own, by the reasons that flux-core gives."""

import pytest

from burst.core.plan.slots import ends_with_lease
from burst.model.flux_drain import flux_drain

BEFORE_START = (
    "prolog failed for job \N{LATIN SMALL LETTER F WITH HOOK}9MqBMH8MD",
    "prolog timed out for job f9",
    "prolog canceled then timed out for job f9",
    "job f9 start timeout: possible node hang",
    "f9 terminated before first barrier",
    "sdexec constraint check failed on burst-0-1 for job f9: no cgroup",
    "rank 4 got hostname 'vm', expected 'burst-0-0'",
    "rank 4 (burst-0-0) missing resources: core[2-3]",
)
LATER = (
    "epilog failed for job f9",
    "housekeeping@f9 exit-code: exited 1",
    "housekeeping@f9 failure",
    "unkillable user processes for job f9",
    "sdexec reports unkillable for job f9",
)


@pytest.mark.parametrize("reason", BEFORE_START)
def test_before_a_job_can_have_begun(reason):
    found = flux_drain(reason)
    assert found is not None
    assert found.before_start
    assert ends_with_lease(reason)


@pytest.mark.parametrize("reason", LATER)
def test_after_a_job_has_begun(reason):
    found = flux_drain(reason)
    assert found is not None
    assert not found.before_start


@pytest.mark.parametrize(
    "reason",
    ["", "broken fan", "the prolog failed for job f9", "prolog failed", "rank 4"],
)
def test_a_person_drained(reason):
    assert flux_drain(reason) is None
    assert not ends_with_lease(reason)
