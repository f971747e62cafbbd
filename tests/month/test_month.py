# SPDX-License-Identifier: MIT
"""A month in minutes on real Flux: nothing is left, lost, or larger at its end."""

from __future__ import annotations

import os
import secrets
import time

import pytest

from burst.core.tick import KEPT_ENDED
from tests.e2e.programs import MONTH, MONTH_JOBS
from tests.flux.site import open_site
from tests.flux_instance import FLUX, MISSING
from tests.month.jobs import CHECKPOINT_S
from tests.month.month import Month, Size

pytestmark = [
    pytest.mark.minutes,
    pytest.mark.flux,
    pytest.mark.skipif(not FLUX, reason=MISSING),
    pytest.mark.timeout(1800),
]
SEED = "BURST_TEST_MONTH_SEED"
# A record of a burst, however many jobs it had.
LARGEST_RECORD = 64 * 1024
# An allocator gives back what it can; a leak of a job would be far more.
RSS_GROWTH = 1.4
RECORD = 4096
"""More than the record of a burst has here on average, in bytes."""


def test_a_month_in_minutes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    count = int(os.environ.get(MONTH, MONTH_JOBS))
    seed = int(os.environ.get(SEED) or secrets.randbits(32))

    def tell(text: str) -> None:
        with capsys.disabled():
            print(f"month: {text}", flush=True)  # noqa: T201 - minutes without would be long

    tell(f"{count} jobs; {SEED}={seed} repeats it")
    began = time.monotonic()
    with open_site({"kvs": {"checkpoint-period": f"{CHECKPOINT_S}s"}}) as site:
        month = Month(site, count, seed, tell)
        monkeypatch.setenv("PYTHONPATH", month.packages)
        month.run()
        with site.desk.daemon():
            site.check_that_nothing_is_left()
        wrong = month.jobs.unexplained(month.killings)
        results = sorted(job.result for job in month.jobs.ended())
    took = time.monotonic() - began
    tell(f"jobs canceled as Flux could not go on with them: {month.repaired}")
    for name, times in month.happened.items():
        tell(f"{name}: {times}")
    for result in sorted(set(results)):
        tell(f"{result}: {results.count(result)} jobs")
    first, last = month.sizes[0], month.sizes[-1]
    tell(f"at the beginning {first}, at the end {last}; {took:.0f} s")
    assert not wrong, "\n".join(wrong)
    check_sizes(month.sizes, month.one_daemons)


def check_sizes(sizes: list[Size], one_daemons: list[Size]) -> None:
    """Fail if records grow with the jobs there were, or the memory of one daemon."""
    last = sizes[-1]
    assert all(size.largest < LARGEST_RECORD for size in sizes), sizes
    # Ended bursts are kept for `status`, up to a number. Beside them there are few: of
    # providers, of holds, and of jobs that were lost with the lead while one ended.
    most = KEPT_ENDED + 40
    assert last.records <= most, last
    assert last.bytes <= most * RECORD, sizes
    # The first of a daemon that has done some work, as that loads what it needs.
    rss = [size.rss for size in one_daemons]
    assert rss[-1] <= RSS_GROWTH * rss[0], one_daemons
