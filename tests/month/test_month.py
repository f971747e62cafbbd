# SPDX-License-Identifier: MIT
"""A month in minutes on real Flux: nothing is left, lost, or larger at its end."""

from __future__ import annotations

import os
import time

import pytest

from tests.e2e.programs import MONTH, MONTH_JOBS
from tests.flux.site import open_site
from tests.flux_instance import FLUX, MISSING
from tests.month.jobs import CHECKPOINT_S
from tests.month.month import Month
from tests.month.sizes import check_sizes

pytestmark = [
    pytest.mark.month,
    pytest.mark.flux,
    pytest.mark.skipif(not FLUX, reason=MISSING),
    pytest.mark.timeout(5400),
]
SEED = "BURST_TEST_MONTH_SEED"


def test_a_month_in_minutes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    count = int(os.environ.get(MONTH, MONTH_JOBS))
    seed = int(os.environ.get(SEED) or count)

    def tell(text: str) -> None:
        with capsys.disabled():
            print(f"month: {text}", flush=True)  # noqa: T201 - minutes without would be long

    tell(f"{count} jobs; {SEED}={seed} repeats it")
    began = time.monotonic()
    checkpoints = {"checkpoint-period": f"{CHECKPOINT_S}s"}
    # Flux gives up the broker of a canceled job that is gone; by default in 10 minutes.
    patience = {"max-kill-timeout": "5s"}
    with open_site({"kvs": checkpoints, "exec": patience}) as site:
        month = Month(site, count, seed, tell)
        monkeypatch.setenv("PYTHONPATH", month.packages)
        month.run()
        with site.cli.daemon():
            site.check_that_nothing_is_left()
        wrong = month.jobs.unexplained(month.killings)
        results = sorted(job.result for job in month.jobs.ended())
    took = time.monotonic() - began
    tell(f"jobs canceled as Flux could not go on with them: {month.repaired}")
    tell(f"schedulers loaded anew as they kept what no job had: {month.reloaded}")
    for name, times in month.happened.items():
        tell(f"{name}: {times}")
    for result in sorted(set(results)):
        tell(f"{result}: {results.count(result)} jobs")
    first, last = month.sizes[0], month.sizes[-1]
    tell(f"at the beginning {first}, at the end {last}; {took:.0f} s")
    assert not wrong, "\n".join(wrong)
    check_sizes(month.sizes, month.one_daemons)
