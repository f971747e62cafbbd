# SPDX-License-Identifier: MIT
"""A site that configures little: no named queues, and root is a guest of its Flux."""

from __future__ import annotations

import pytest

from tests.multiuser.lab import OWNER
from tests.site import fluxion
from tests.site.adopted import files, lines_of_page, type_line
from tests.site.flux_host import CONFIG
from tests.site.site import SIMPLE, Site, SiteShape
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.site, pytest.mark.xdist_group("plain site")]

_TABLES = {
    "queues": {},
    "policy": {"jobspec": {"defaults": {"system": {"duration": "10m"}}}},
    "access": {"allow-guest-user": True, "allow-root-owner": False},
}
_SCHEDULER = "easy" if fluxion.INSTALLED else SIMPLE
_UNADOPT = ("burst", "lead", "unadopt", str(CONFIG))


def test_the_page_makes_it_burst_and_takes_it_out_again() -> None:
    with Site(SiteShape(scheduler=_SCHEDULER, tables=_TABLES)) as site:
        before = files(site)
        for line in lines_of_page(named_queues=False):
            if line.startswith("flux run"):
                done = site.boxes[-1].try_run("ann", "sh", "-ec", line)
                assert done.stdout.split() == ["ann"] * 3, (done.stderr, site.log())
                _end_burst(site)
                held = _refuse_ordinary_jobs(site)
            elif "flux queue disable" in line:
                type_line(site, line)
                assert "is taken out" in site.try_flux("bob", "run", "true").stderr
                site.flux(OWNER, "cancel", held)
                wait_until(lambda: not site.active_jobs(), site.log, pause=0.2)
            elif line == " ".join(_UNADOPT):
                said = type_line(site, line)
                assert "restart it now" in said
                assert "config reload" not in said
            else:
                type_line(site, line)
        assert files(site) == before
        site.restart()
        # Nothing of the queues is left that keeps jobs from being submitted or started.
        assert site.flux("bob", "run", "-N2", "id", "-un").split() == ["bob"] * 2


def _end_burst(site: Site) -> None:
    as_owner = ("runuser", "-u", OWNER, "--", "burst")
    live = site.root(*as_owner, "status", "-no", "{id}").split()
    assert len(live) == 1
    site.root(*as_owner, "down", *live)


def _refuse_ordinary_jobs(site: Site) -> str:
    """See that a job in the queue that goes is in the way; return it."""
    held = site.flux("bob", "submit", "--urgency=hold", "-N1", "true")
    refused = site.head.try_run("root", *_UNADOPT)
    assert refused.returncode == 1
    waiting = f"ordinary jobs wait in queue batch, which is removed: {held}"
    assert waiting in refused.stderr
    assert refused.stdout == "", "nothing was done"
    # As the message says: it is in no other queue, and none is not taken.
    moved = site.try_flux(OWNER, "update", held, "queue=")
    assert moved.returncode == 1
    assert "'' is not a valid queue" in moved.stderr
    return held
