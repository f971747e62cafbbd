# SPDX-License-Identifier: MIT
"""Followers that the lead turns down: what ends the burst, and what people are told."""

from __future__ import annotations

from pathlib import Path

import pytest

from burst.kits import certificate
from tests.flux.site import HOSTNAME, Site
from tests.support.waiting import wait_until

pytestmark = pytest.mark.flux

SOON = {"idle": "0.3s"}
"""A follower connects again within a second, as Flux has it."""
NOT_ACCEPTED = "the lead does not accept its certificate"


def change_certificate(site: Site) -> Path:
    """Put another certificate where the lead's was; return where the lead's is now."""
    path = site.instance.directory / "cert"
    kept = path.with_suffix(".lead")
    path.rename(kept)
    certificate.write(certificate.create("another"), path)
    return kept


def test_a_certificate_that_is_not_the_leads_ends_the_burst_and_is_named(
    site: Site,
) -> None:
    site.write(deadlines=SOON)
    with site.cli.daemon():
        kept = change_certificate(site)
        job = site.submit("-N4", *HOSTNAME)
        burst_id = site.wait_for_burst("join")
        wait_until(
            lambda: f"burst-0-0 {NOT_ACCEPTED}" in site.cli.row(burst_id)["note"],
            lambda: f"the reason, while there is time: {site.cli.row(burst_id)}",
        )
        site.change(deadlines=SOON | {"join": "1s"})
        row = site.wait_for_end(burst_id)
        assert row["result"] == "timeout"
        assert row["note"].startswith(
            "0 of 4 nodes joined within 1s; missing burst-0-0, burst-0-1, burst-0-2,"
            f" burst-0-3: burst-0-0 {NOT_ACCEPTED}, "
        )
        assert "put that one back, or restart the lead with this one" in row["note"]
        story = site.explain(job)
        assert NOT_ACCEPTED in story
        assert "did not come up: 0 of 4 nodes joined within 1s" in story
        assert "; set aside until" in story
        assert site.jobs("{user.burst.state} {urgency}", job) == "waiting 0"
        assert not site.followers()

        kept.replace(kept.with_suffix(""))
        site.change(deadlines=SOON)
        site.cli.run("enable", "local")
        site.wait_for_job(job, "COMPLETED")
        site.wait_for_end(site.bursts()[-1]["id"])
        site.check_that_nothing_is_left()


def test_after_a_rotation_bursts_get_what_the_lead_has_until_it_is_restarted(
    site: Site,
) -> None:
    path = site.instance.directory / "cert"
    before = certificate.read(path)
    site.write(deadlines={"idle": "10m"})
    with site.cli.daemon():
        runs = site.submit("-N4", "sleep", "600")
        site.wait_for_job(runs, "RUN")
        first = site.wait_for_burst("online")
        refused = site.cli.run("keygen", str(path), "--rotate")
        assert f"not replaced: {first} would lose the lead" in refused.error
        assert certificate.read(path) == before
        done = site.cli.run("keygen", str(path), "--rotate", "--yes")
        assert f"lose the lead for good at its restart: {first}" in done.stdout
        assert certificate.read(path) != before
        doctor = site.cli.run("doctor").stdout
        assert f"fingerprint {before.fingerprint}" in doctor
        assert "accepts its certificate" in doctor
        joins = site.submit("-N4", *HOSTNAME)
        site.wait_for_job(joins, "COMPLETED")

    left = site.followers()
    assert len(left) == 8
    site.write_kvs()
    site.instance.kill()
    site.instance.start()
    provider = site.cli.provider()
    wait_until(
        lambda: all(
            NOT_ACCEPTED in follower.why
            for burst in provider.observe()
            for follower in burst.followers
        ),
        lambda: f"all to be refused: {provider.observe()}",
    )
    assert site.online() == "0"
    assert site.followers() == left  # they go on trying

    with site.cli.daemon():
        for row in site.bursts():
            down = site.cli.run("down", row["id"])
            assert not down.status, (down, site.cli.row(row["id"]))
        job = site.submit("-N4", *HOSTNAME)
        site.wait_for_job(job, "COMPLETED")
        assert f"fingerprint {before.fingerprint}" not in site.cli.run("doctor").stdout
        again = site.cli.run("keygen", str(path), "--rotate", "--yes")
        assert "deleted, as the lead has been restarted since" in again.stdout
        site.cli.run("down", site.wait_for_burst("online"))
        site.wait_for_end(site.bursts()[-1]["id"])
