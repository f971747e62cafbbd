# SPDX-License-Identifier: MIT
"""Nodes for jobs with a tag, on a real Flux, with the options of `flux submit`."""

from __future__ import annotations

import json

import pytest

from tests.flux.site import Site
from tests.support.waiting import wait_until

pytestmark = pytest.mark.flux


def submit(site: Site, tag: str = "") -> str:
    """Submit a job of two nodes, as `flux submit --burst` does."""
    preferences = {"urgency": 16, "wanted": True} | ({"tag": tag} if tag else {})
    burst = f"--setattr=burst={json.dumps(preferences)}"
    return site.submit("-N2", "--urgency=hold", burst, "sleep", "600")


def test_jobs_start_on_the_nodes_with_their_tag_and_no_others(site: Site) -> None:
    with site.cli.daemon():
        said = site.cli.run("request", "-N2", "--tag", "night")
        tagged = said.lines[0].rpartition(" ")[2]
        other, plain = submit(site, "day"), submit(site)
        # The nodes with the tag are free, and Flux would take them before own ones.
        site.wait_for_job(plain, "RUN")
        assert site.cli.row(tagged)["jobs"] == []
        own = submit(site, "night")
        site.wait_for_job(own, "RUN")
        assert site.jobs("{ranks}", own).strip("[]") == site.cli.row(tagged)["ranks"]
        assert "it has tag day, and waits" in site.explain(other)
        for job in (other, plain, own):
            site.flux("cancel", job)
        for row in site.bursts():
            site.cli.run("down", row["id"])
        wait_until(lambda: not site.cli.status()["held"], "the hold to be forgotten")
        site.check_that_nothing_is_left()
