# SPDX-License-Identifier: MIT
"""Others at the same lead: a second daemon, and users who are not its owner."""

from __future__ import annotations

import json
import os
import time

import pytest

from burst.model.jobid import JobId, format_f58
from tests.cli.cli_harness import CommandResult, DaemonProcess
from tests.flux.site import HOSTNAME, Site
from tests.flux_instance import FLUX, MISSING
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.flux, pytest.mark.skipif(not FLUX, reason=MISSING)]

GUEST = 1234
GUESTS_JOB = JobId(1 << 40)
# How Flux's own tests play a user who is not the owner of the instance.
AS_GUEST = {"FLUX_HANDLE_USERID": str(GUEST), "FLUX_HANDLE_ROLEMASK": "0x2"}


def test_a_second_daemon_says_who_serves_and_ends(site: Site) -> None:
    with site.cli.daemon() as first:
        second = DaemonProcess(site.cli)
        assert second.wait() == 1
        (line,) = second.log.splitlines()
        assert line.startswith(
            "burst: ERROR: another daemon serves this lead:"
            f" pid {first.process.pid} on {os.uname().nodename}, since "
        )
        assert line.endswith("; stop that one first: one daemon serves a lead")
        assert site.cli.status()["daemon"]["pid"] == first.process.pid
    with site.cli.daemon() as third:
        assert site.cli.status()["daemon"]["pid"] == third.process.pid


def submit_for_guest(site: Site, *words: str) -> str:
    """Have a job of the guest's come in, as Flux's ingest would hand it on.

    Ingest itself takes jobs of others than the owner only with flux-security.
    """
    words = ("submit", "--dry-run", "--setattr=burstable", *words)
    job = {
        "id": GUESTS_JOB,
        "userid": GUEST,
        "urgency": 16,
        "flags": 0,
        "t_submit": time.time(),
        "jobspec": json.loads(site.flux(*words)),
    }
    assert site.instance.rpc("job-manager.submit", {"jobs": [job]}) == {"errors": []}
    return format_f58(GUESTS_JOB)


def test_a_guest_may_read_and_release_what_is_his_and_no_more(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    def guest(*words: str) -> CommandResult:
        with monkeypatch.context() as environment:
            for name, value in AS_GUEST.items():
                environment.setenv(name, value)
            return site.cli.run(*words)

    site.close_gate("join")
    with site.cli.daemon():
        his = submit_for_guest(site, "-N3", *HOSTNAME)
        ours = site.submit("-N4", *HOSTNAME)
        wait_until(
            lambda: [row["state"] for row in site.bursts()] == ["join"] * 2,
            lambda: str(site.bursts()),
        )
        for job, userid in (his, GUEST), (ours, os.getuid()):
            assert site.jobs("{userid}", job) == str(userid)

        said = guest("status", "--json").json
        assert [burst["jobs"] for burst in said["bursts"]] == [[his]]
        assert said["held"] == [his]
        assert his in guest("explain", his).stdout
        assert json.loads(site.flux("burst", "status", "--json", **AS_GUEST))["held"]

        assert "is no burstable job that burst knows" in guest("explain", ours).error
        assert "none of these jobs is yours and held" in guest("release", ours).error
        for words in (
            ("plan",),
            ("gc",),
            ("gc", "--yes"),
            ("enable", "local"),
            ("reload",),
        ):
            only_owner = f"{words[0]}: only the instance owner may do that"
            assert only_owner in guest(*words).error
        asked = guest("request", "-N1").error
        assert "users may not request bursts on this instance" in asked
        made_for_job = said["bursts"][0]["id"]
        refused = guest("down", made_for_job).error
        assert f"{made_for_job} is no burst that you requested" in refused
        assert [row["state"] for row in site.bursts()] == ["join"] * 2
        assert guest("release", his).lines == [f"released: {his}"]
        assert site.jobs("{urgency}", ours) == "0"


def test_a_guest_cannot_be_the_daemon(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as environment:
        for name, value in AS_GUEST.items():
            environment.setenv(name, value)
        guest = DaemonProcess(site.cli)
    assert guest.wait() == 1
    assert "only the instance owner may do that" in guest.log
    assert "Traceback" not in guest.log
