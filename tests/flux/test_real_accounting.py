# SPDX-License-Identifier: MIT
"""Bursting at a lead with flux-accounting: its plugin decides what Flux starts."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from tests.flux.real_accounting import (
    INSTALLED,
    MISSING,
    RealAccounting,
    real_accounting,
)
from tests.flux.site import HOSTNAME, Site
from tests.flux_instance import FLUX
from tests.support.waiting import wait_until

pytestmark = [
    pytest.mark.flux,
    pytest.mark.skipif(not INSTALLED, reason=MISSING),
]
USER = os.getuid()
NAME = "me"
LENT = "--requires=burst", "--bank=physics"
HELD = "--urgency=0", "--setattr=burst.urgency=16"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return where the database is kept that the first test makes."""
    return tmp_path_factory.mktemp("accounting") / "made.db"


@pytest.fixture
def accounting(site: Site, made: Path) -> Iterator[RealAccounting]:
    def start(*words: str, log: IO[bytes]) -> subprocess.Popen[bytes]:
        known = {**os.environ, "FLUX_URI": site.cli.uri}
        return subprocess.Popen([FLUX, *words], env=known, stdout=log, stderr=log)

    given = made if made.exists() else None
    with real_accounting(site.flux, start, site.instance.directory, given) as its:
        if not given:
            for bank in ("physics", "art"):
                its.add_bank(bank)
            its.add_user(NAME, USER, "physics")
            its.add_user("other", 4242, "art")
            shutil.copy(its.database, made)
        its.update()
        site.write(deadlines={"idle": "0.3s"})
        yield its


def test_held_jobs_run_on_lent_nodes_by_their_bank_and_count_in_its_usage(
    site: Site, accounting: RealAccounting
) -> None:
    """As on own nodes; and the doctor warns of a limit that mode hold uses up."""

    def findings() -> list[dict[str, str]]:
        found = json.loads(site.cli.run("doctor", "--json").stdout)["findings"]
        return [each for each in found if each["about"] == "accounting"]

    assert [each["level"] for each in findings()] == ["ok"]
    accounting.edit_user(NAME, "physics", "--max-sched-jobs=50")
    with site.cli.daemon():
        jobs = []
        for _ in range(2):
            says = f"{' '.join(HOSTNAME)}; sleep 2"
            jobs.append(site.submit(*HELD, "-N2", *LENT, "sh", "-c", says))
            site.wait_for_job(jobs[-1], "COMPLETED")
            first, second = site.output(jobs[-1])
            assert first.startswith("burst-")
            assert second.startswith("burst-")
        # Refused by Flux itself, and so by nobody later.
        refused = site.try_flux("submit", "--setattr=burstable", "--bank=art", "true")
        assert refused.returncode != 0
        assert "cannot find user/bank" in refused.stderr
        (found,) = findings()
        site.check_that_nothing_is_left()
    # No job is left, and the plugin has counted some that wait: what is warned of.
    assert accounting.association(USER, "physics")["cur_sched_jobs"] > 0
    assert found["level"] == "wrong"
    assert f"max_sched_jobs of UID {USER} in bank physics" in found["what"]
    # flux-accounting counts all the time for which a job has its nodes.
    times = (map(float, site.jobs("{t_inactive} {t_run}", job).split()) for job in jobs)
    used = pytest.approx(2 * sum(ended - began for ended, began in times), rel=0.02)

    def total() -> float:
        lines = [line.split() for line in accounting.usage().splitlines()]
        return next(float(words[-1]) for words in lines if words[0].startswith("TOTAL"))

    # It takes a job into its database once R and jobspec can be read from the KVS.
    wait_until(lambda: total() == used, lambda: f"{total()} to be {used}")


def test_jobs_that_wait_for_nodes_together_are_held_to_the_limit(
    site: Site, accounting: RealAccounting
) -> None:
    """The plugin lets both through, as neither runs when they are submitted."""
    accounting.edit_user(NAME, "physics", "--max-nodes=2")
    site.close_gate("join")
    with site.cli.daemon():
        first = site.submit("-N2", *LENT, "sleep", "2")
        second = site.submit("-N2", *LENT, *HOSTNAME)
        why = "limit max_nodes 2 of bank physics: 2 in use"
        wait_until(lambda: why in site.explain(second), lambda: site.explain(second))
        assert site.job(second) == "SCHED"
        (burst,) = site.bursts()
        assert burst["nodes"] == 2
        site.open_gate("join")
        site.wait_for_job(first, "COMPLETED")
        site.wait_for_job(second, "COMPLETED")
        site.check_that_nothing_is_left()
