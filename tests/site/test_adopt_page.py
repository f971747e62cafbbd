# SPDX-License-Identifier: MIT
"""docs/adopt.md is typed on a site, whose files are at its end as they were before."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.site import fluxion
from tests.site.adopted import files, lines_of_page, type_line
from tests.site.flux_host import CONFIG
from tests.site.site import SIMPLE, Site, SiteShape
from tests.site.workload import run_workload

pytestmark = [
    pytest.mark.site,
    pytest.mark.xdist_group("adopt page"),
]

_SCHEDULER = "easy" if fluxion.INSTALLED else SIMPLE
_GUESTS = "flux run "


@pytest.fixture
def site() -> Iterator[Site]:
    with Site(SiteShape(scheduler=_SCHEDULER)) as site:
        yield site


def test_the_page_makes_a_site_burst_and_takes_it_out_again(site: Site) -> None:
    before, answers = files(site), run_workload(site)
    elsewhere = files(site, host=-1)
    said = ""
    for line in lines_of_page():
        if line.startswith(_GUESTS):
            assert "\n0 wrong" in said, said
            # Where users log in, which is not the host of rank 0.
            done = site.boxes[-1].try_run("ann", "sh", "-ec", line)
            assert done.returncode == 0, (done.stderr, site.log())
            assert done.stdout.split() == ["ann"] * 3
            site.boxes[-1].run("ann", "flux", "jobs", "-a", "-o", "burst")
            end_burst(site)
        else:
            said = type_line(site, line)
            if line.startswith("burst setup"):
                assert "The other hosts of the instance, and those where" in said
    assert files(site) == before, said
    site.distribute()
    # What a site's means leave of empty directories is theirs; a file's line has more.
    left = set(files(site, host=-1)) - set(elsewhere)
    assert not [line for line in left if " " in line]
    # Between this and the restart users submit as before.
    for box in site.boxes:
        assert box.run("bob", "flux", "run", "-N1", "id", "-un").strip() == "bob"
    site.restart()
    assert str(run_workload(site)) == str(answers)


def end_burst(site: Site) -> None:
    """End the one that lives, as the page says; before that it is in the way."""
    (live,) = [row["id"] for row in site.bursts() if row["state"] != "inactive"]
    refused = site.head.try_run("root", "burst", "lead", "unadopt", str(CONFIG))
    assert refused.returncode == 1
    assert f"bursts live: {live}" in refused.stderr
    site.root("burst", "down", live)
    waits = site.flux("ann", "submit", "--burst", "--urgency=hold", "true")
    refused = site.head.try_run("root", "burst", "lead", "unadopt", str(CONFIG))
    assert f"queues that go: {waits}; flux cancel {waits}" in refused.stderr
    site.flux("ann", "cancel", waits)
    assert [row["state"] for row in site.bursts()] == ["inactive"]
