# SPDX-License-Identifier: MIT
"""The doctor's pod for a guest: what is made for it, and what its words mean."""

import pwd
import subprocess
from pathlib import Path
from typing import Any

import pytest

from burst.errors import Refused
from burst.kits.pods import MultiUserTable, PodSettings
from burst.kits.pods.diagnose.guest_probe import (
    Guest,
    GuestFacts,
    find_guest,
    guest_objects,
    judge_guest,
    parse,
    script,
)
from burst.kits.pods.diagnose.probe_job import probe_meta, render_probe
from burst.model.finding import Finding, Level
from burst.model.lead import GuestAccess, LeadIdentity
from burst.testing import example_lead
from tests.kits.pods import SETTINGS, TAGS, replace
from tests.support.commands import run_captured

IMP = "/usr/libexec/flux/flux-imp"
ANN = Guest("ann", 1001, "MUNGE:secret:")
GOOD = GuestFacts(
    uid="1001",
    home="/home/ann",
    imp="flux-imp: unprivileged: uid=9 flux-imp: privileged: uid=9 euid=0 gid=9",
    exec="flux-imp: Fatal: exec: signature validation failed: header",
    munge="Success (0)",
)


@pytest.fixture
def settings(tmp_path: Path) -> PodSettings:
    key = tmp_path / "munge.key"
    key.write_bytes(bytes(64))
    users = MultiUserTable(users={"ann": "1001:1001"}, conf="/etc/flux")
    return replace(
        SETTINGS,
        user=1,
        security="baseline",
        munge_key=str(key),
        multi_user=users,
    )


@pytest.fixture
def lead(tmp_path: Path) -> LeadIdentity:
    access = GuestAccess(allow_guest_user=True, imp=IMP)
    made = example_lead(tmp_path, endpoint="tcp://192.0.2.7:8050")
    return replace(made, access=access)


def test_its_pod_is_as_a_followers_without_the_certificate(
    settings: PodSettings, lead: LeadIdentity
) -> None:
    job: Any = render_probe("burst-probe-1", lead, settings, TAGS, ANN)
    assert job["spec"]["suspend"] is True
    pod = job["spec"]["template"]["spec"]
    assert [c["name"] for c in pod["initContainers"]] == ["prepare", "munged"]
    (container,) = pod["containers"]
    paths = {m["mountPath"] for m in container["volumeMounts"]}
    wanted = {"/etc/passwd", "/run/munge", "/etc/flux/imp/conf.d/imp.toml"}
    assert wanted < paths
    assert "/burst/secret" not in paths
    assert container["securityContext"]["allowPrivilegeEscalation"] is True
    meta = probe_meta("burst-probe-1", settings, TAGS)
    config, secret = guest_objects(meta, lead, settings, ANN)
    assert secret["data"]["curve.cert"] == ""
    assert secret["data"]["munge.key"]
    assert ANN.credential not in str(job) + str(config)
    assert "suspend" not in render_probe("p", lead, SETTINGS, TAGS)["spec"]


def test_without_a_credential_there_is_none_to_mount(
    settings: PodSettings, lead: LeadIdentity
) -> None:
    nobody = replace(ANN, credential="")
    job: Any = render_probe("burst-probe-1", lead, settings, TAGS, nobody)
    volumes = job["spec"]["template"]["spec"]["volumes"]
    assert "credential" not in [volume["name"] for volume in volumes]


def test_a_lead_without_an_imp_is_refused(
    settings: PodSettings, lead: LeadIdentity
) -> None:
    owner = replace(lead, access=GuestAccess())
    with pytest.raises(Refused, match="has no"):
        guest_objects({}, owner, settings, ANN)


def judged(lead: LeadIdentity, **changes: Any) -> list[Finding]:
    return list(judge_guest(replace(GOOD, **changes), ANN, lead))


def test_all_that_is_well_is_said(lead: LeadIdentity) -> None:
    assert [finding.level for finding in judged(lead)] == [Level.OK] * 4
    # A user whom this host does not know is not judged.
    found = next(judge_guest(GOOD, replace(ANN, uid=None), lead))
    assert found.level is Level.NOTE
    assert "this host has no such user" in found.what


@pytest.mark.parametrize(
    ("changes", "level", "told"),
    [
        ({"uid": ""}, Level.WRONG, "there is no user ann there"),
        ({"uid": "7"}, Level.WRONG, "ann is user 7 there, and 1001 on this host"),
        ({"home": ""}, Level.NOTE, "ann has no home there"),
        ({"imp": "sh: not found"}, Level.WRONG, "root there: sh: not found"),
        ({"imp": ""}, Level.WRONG, "root there: it prints nothing"),
        (
            {"exec": "user flux not in allowed-users list"},
            Level.WRONG,
            "starts no job there: user flux not in",
        ),
        ({"munge": "Invalid credential (7)"}, Level.WRONG, "Invalid credential"),
        ({"munge": ""}, Level.WRONG, "unmunge prints nothing"),
        ({"munge": None}, Level.NOTE, "munge makes no credential on this host"),
    ],
)
def test_what_is_not_is_told_with_advice(
    lead: LeadIdentity, changes: dict[str, Any], level: Level, told: str
) -> None:
    (found,) = (f for f in judged(lead, **changes) if f.level is not Level.OK)
    assert found.level is level
    assert told in found.what
    assert found.advice


def test_who_is_asked_for(settings: PodSettings) -> None:
    assert find_guest("root", settings).uid == 0
    assert find_guest("no-such-user", settings).uid is None
    with pytest.raises(Refused, match="is not the name of a user"):
        find_guest("ann; reboot", settings)
    with pytest.raises(Refused, match="none of ann"):
        find_guest("ann", SETTINGS)


def test_the_script_prints_what_is_parsed(lead: LeadIdentity, tmp_path: Path) -> None:
    imp = tmp_path / "flux-imp"
    imp.write_text('#!/bin/sh\ncat > /dev/null\necho "said: $*"\necho more\n')
    imp.chmod(0o755)
    here = replace(lead, access=GuestAccess(imp=str(imp)))
    root = Guest("root", 0)
    done = run_captured(
        ["/bin/sh", "-c", f"echo before\n{script(root, here)}echo after"],
        stdin=subprocess.DEVNULL,
        check=True,
    )
    facts, rest = parse(done.stdout)
    assert facts == GuestFacts(
        uid="0",
        home=pwd.getpwuid(0).pw_dir,
        imp="said: whoami more",
        exec=f"said: exec {tmp_path}/flux-shell 0 more",
    )
    assert rest.split() == ["before", "after"]
    assert parse("nothing") == (None, "nothing")
