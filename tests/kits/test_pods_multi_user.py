# SPDX-License-Identifier: MIT
"""Pods whose followers run jobs of many users: what is made, and what is refused."""

import os
import pwd
import re
import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest

from burst.errors import Refused
from burst.kits.pods import MultiUserTable, PodSettings
from burst.kits.pods.diagnose.admission import advise, standard_of
from burst.kits.pods.diagnose.examine import examine_lead
from burst.kits.pods.pod_provider import check_burst, offers
from burst.kits.pods.template.multi_user import munged_script, prepare_script
from burst.model.finding import Finding, Level
from burst.model.lead import GuestAccess, LeadIdentity
from burst.provider import BurstSpec
from tests.kits.pods import SETTINGS, TAGS, by_kind, make_spec, pod_spec, replace
from tests.support.commands import run_captured
from tests.support.pod_words import SHM, pod_words

IMP = "/usr/libexec/flux/flux-imp"
USERS = {"flux": "1000:1000", "ann": "1001:1001", "bob": "1002:1000:/data/bob"}


@pytest.fixture
def key(tmp_path: Path) -> Path:
    path = tmp_path / "munge.key"
    path.write_bytes(bytes(range(64)))
    return path


@pytest.fixture
def settings(key: Path) -> PodSettings:
    return replace(
        SETTINGS,
        security="baseline",
        munge_key=str(key),
        multi_user=MultiUserTable(users=USERS),
    )


@pytest.fixture
def spec(tmp_path: Path) -> BurstSpec:
    made = make_spec(tmp_path)
    access = GuestAccess(allow_guest_user=True, allow_root_owner=True, imp=IMP)
    return replace(made, lead=replace(made.lead, access=access))


def named(entries: list[Any], name: str) -> Any:
    return next(entry for entry in entries if entry["name"] == name)


def mounted(container: Any) -> dict[str, str]:
    """Return volume names by path."""
    return {m["mountPath"]: m["name"] for m in container["volumeMounts"]}


def test_the_broker_may_gain_what_its_imp_uses_and_nothing_more(
    spec: BurstSpec, settings: PodSettings
) -> None:
    pod = pod_spec(spec, settings)
    assert pod["securityContext"] == {
        "runAsUser": 1000,
        "runAsGroup": 1000,
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    (broker,) = pod["containers"]
    assert broker["securityContext"] == {
        "allowPrivilegeEscalation": True,
        "capabilities": {"drop": ["ALL"], "add": ["KILL", "SETGID", "SETUID"]},
    }
    munged = named(pod["initContainers"], "munged")
    assert munged["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert munged["restartPolicy"] == "Always"
    assert pod["automountServiceAccountToken"] is False


def test_no_container_with_guests_has_a_key(
    spec: BurstSpec, settings: PodSettings
) -> None:
    pod = pod_spec(spec, settings)
    prepare, munged = pod["initContainers"]
    (broker,) = pod["containers"]
    assert "secret" in mounted(prepare).values()
    assert mounted(munged)["/burst/munge-key"] == "munge-key"
    assert {"secret", "munge-key"}.isdisjoint(mounted(broker).values())
    assert mounted(broker)["/run/munge"] == "munge"
    assert "secret" not in mounted(munged).values()
    volume = named(pod["volumes"], "munge-key")
    assert volume["emptyDir"] == {"medium": "Memory", "sizeLimit": "16Mi"}


def test_the_broker_finds_its_certificate_where_guests_do_not(
    spec: BurstSpec, settings: PodSettings
) -> None:
    data = by_kind(spec, settings)["ConfigMap"]["data"]
    tables = tomllib.loads(data["broker.toml"])
    assert tables["bootstrap"]["curve_cert"] == "/burst/run/key/curve.cert"
    assert tables["access"] == {"allow-guest-user": True, "allow-root-owner": True}
    assert tables["exec"] == {"imp": IMP}
    assert "/burst/secret" not in data["start"]
    assert "mkdir -m 755 /burst/run/broker" in data["start"]
    assert "munged" not in data["start"]


def test_users_are_sent_as_lines_of_passwd(
    spec: BurstSpec, settings: PodSettings
) -> None:
    data = by_kind(spec, settings)["ConfigMap"]["data"]
    assert data["passwd"].splitlines() == [
        "flux:x:1000:1000::/home/flux:/bin/sh",
        "ann:x:1001:1001::/home/ann:/bin/sh",
        "bob:x:1002:1000::/data/bob:/bin/sh",
    ]
    (broker,) = pod_spec(spec, settings)["containers"]
    (passwd,) = (m for m in broker["volumeMounts"] if m["mountPath"] == "/etc/passwd")
    assert passwd["subPath"] == "passwd"
    assert passwd["readOnly"] is True


def test_an_image_may_know_its_users(spec: BurstSpec, settings: PodSettings) -> None:
    own = replace(settings, multi_user=MultiUserTable(users="image"))
    assert "passwd" not in by_kind(spec, own)["ConfigMap"]["data"]
    pod = pod_spec(spec, own)
    (broker,) = pod["containers"]
    assert "/etc/passwd" not in mounted(broker)
    assert "merge" not in named(pod["initContainers"], "prepare")["command"][-1]


def test_the_configuration_of_the_imp_may_come_along(
    spec: BurstSpec, settings: PodSettings
) -> None:
    table = MultiUserTable(users=USERS, conf="/etc/flux")
    name = pwd.getpwuid(1).pw_name
    ours = replace(settings, user=1, multi_user=table)
    data = by_kind(spec, ours)["ConfigMap"]["data"]
    assert tomllib.loads(data["imp.toml"]) == {
        "exec": {
            "allowed-users": [name],
            "allowed-shells": ["/usr/libexec/flux/flux-shell"],
        }
    }
    sign = tomllib.loads(data["sign.toml"])["sign"]
    assert sign["allowed-types"] == ["munge"]
    (broker,) = pod_spec(spec, ours)["containers"]
    paths = {m["mountPath"]: m.get("subPath") for m in broker["volumeMounts"]}
    # The IMP reads no link, as the files of a whole ConfigMap are.
    assert paths["/etc/flux/imp/conf.d/imp.toml"] == "imp.toml"
    assert paths["/etc/flux/security/conf.d/sign.toml"] == "sign.toml"
    # A user without a name gets none.
    with pytest.raises(Refused, match="user 4000000 has no name on this host"):
        by_kind(spec, replace(settings, user=4_000_000, multi_user=table))


def test_a_munge_of_the_nodes_needs_no_key(
    spec: BurstSpec, settings: PodSettings
) -> None:
    nodes = replace(settings, munge_key="", host_paths=("/run/munge",))
    pod = pod_spec(spec, nodes)
    assert [c["name"] for c in pod["initContainers"]] == ["prepare"]
    assert "munge-key" not in [volume["name"] for volume in pod["volumes"]]
    assert "/run/munge" not in pod["initContainers"][0]["command"][-1]


def test_where_a_quota_asks_for_limits_all_have_some(
    spec: BurstSpec, settings: PodSettings
) -> None:
    for container in pod_spec(spec, settings)["initContainers"]:
        assert container["resources"]["limits"] == {"memory": "256Mi"}


def test_directories_of_all_users_are_sticky(settings: PodSettings) -> None:
    empty = pod_words(volumes={"/dev/shm": SHM, "/scratch": {"emptyDir": {}}})
    script = prepare_script(replace(settings, pod=empty))
    for path in ("/tmp", "/var/tmp", "/dev/shm", "/scratch"):
        assert f"chmod 1777 {path}\n" in script


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"security": "restricted"}, 'restricted forbids: set security = "baseline"'),
    ({"user": 0}, "followers may not run as root"),
    ({"form": "operator"}, 'guests could replace them; set form = "job"'),
    ({"mode": "isolated"}, "runs its job as the followers' user"),
    ({"munge_key": ""}, "set munge_key to a copy of the lead's"),
    ({"view": "flux-view"}, "a copy of Flux from view is not setuid"),
    ({"cwd": ("/home/ann",)}, "use volumes for homes"),
    ({"host_paths": ("/etc/passwd",)}, "host_paths: /etc/passwd is also multi_user"),
    ({"multi_user": MultiUserTable(uids=(0, 9))}, "0 to 9 is not a range of users"),
    ({"multi_user": MultiUserTable(uids=(9, 8))}, "9 to 8 is not a range of users"),
    ({"multi_user": MultiUserTable(conf="etc")}, "'etc' is not an absolute path"),
    ({"multi_user": MultiUserTable(users={})}, "multi_user.users: is empty"),
    (
        {"multi_user": MultiUserTable(users={"a:b": "1:1"})},
        "a:b: is not the name of a guest",
    ),
    (
        {"multi_user": MultiUserTable(users={"root": "7:7"})},
        "root: is not the name of a guest",
    ),
    (
        {"multi_user": MultiUserTable(users={"ann": "7"})},
        "'7' is not UID:GID or UID:GID:HOME",
    ),
    ({"multi_user": MultiUserTable(users={"ann": "0:7"})}, "a guest may not be root"),
    ({"multi_user": MultiUserTable(users={"ann": "7:0"})}, "a guest may not be root"),
]


@pytest.mark.parametrize(("change", "told"), WRONG)
def test_settings_that_cannot_be_are_refused(
    settings: PodSettings, change: dict[str, Any], told: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(told)):
        replace(settings, **change)


def test_its_bursts_are_joined_only_and_the_standard_is_named(
    settings: PodSettings,
) -> None:
    assert [offer.modes for offer in offers(settings)] == [("joined",)]
    assert standard_of(settings) == "baseline"
    assert advise(settings).startswith("remove multi_user and security =")


def test_a_lead_that_starts_no_guests_jobs_is_refused(
    spec: BurstSpec, settings: PodSettings
) -> None:
    alone = replace(spec, lead=replace(spec.lead, access=GuestAccess()))
    with pytest.raises(Refused, match=r"the lead has no \[exec\] imp"):
        check_burst(alone, settings, TAGS)


def test_a_daemon_of_root_names_the_followers_user(
    spec: BurstSpec, settings: PodSettings
) -> None:
    unnamed = replace(settings, user=None)
    if os.geteuid() == 0:
        with pytest.raises(Refused, match="would run as root, the daemon's user"):
            check_burst(spec, unnamed, TAGS)
    else:
        check_burst(spec, unnamed, TAGS)


@pytest.mark.parametrize(
    ("kind", "name", "told"),
    [
        ("volumes", "munge-key", "has the munge key"),
        ("volumes", "users", "has passwd and group"),
        ("initContainers", "prepare", "has the keys of followers"),
        ("initContainers", "munged", "has the keys of followers"),
    ],
)
def test_a_site_adds_nothing_to_what_has_the_keys(
    settings: PodSettings, kind: str, name: str, told: str
) -> None:
    with pytest.raises(ValueError, match=told):
        replace(settings, pod={"spec": {kind: [{"name": name}]}})


def run_in(root: Path, script: str) -> None:
    """Run a script with the paths of a pod below a directory."""
    places = r" (?=/(burst|run/munge|tmp|var/tmp|etc/))"
    script = re.sub(places, f" {root}", script)
    done = run_captured(["/bin/sh", "-c", script])
    assert done.returncode == 0, done.stderr


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """What a pod has before `prepare` runs; the image has users of its own."""
    root = tmp_path / "root"
    for path in ("burst/run", "burst/secret", "burst/munge-key", "burst/users"):
        (root / path).mkdir(parents=True)
    for path in ("run/munge", "tmp", "var/tmp", "etc", "burst/config"):
        (root / path).mkdir(parents=True)
    (root / "burst/run").chmod(0o777)
    (root / "burst/secret/curve.cert").write_text("certificate")
    (root / "burst/secret/munge.key").write_text("key")
    (root / "burst/config/passwd").write_text("ann:x:1001:1001::/home/ann:/bin/sh\n")
    (root / "burst/config/group").write_text("")
    image = "root:x:0:0:root:/root:/bin/sh\nubuntu:x:1001:7::/:/bin/sh\nann:x:5:5::/:\n"
    image += "munge:x:113:121::/:/usr/sbin/nologin"  # without an end of line
    (root / "etc/passwd").write_text(image)
    return root


@pytest.mark.skipif(os.geteuid() != 0, reason="root alone writes what it gave away")
def test_what_prepare_does(settings: PodSettings, root: Path) -> None:
    mine = replace(settings, user=1000)
    for _ in range(2):  # the kubelet may run it again in the same pod
        run_in(root, prepare_script(mine))
    for path in ("tmp", "var/tmp"):
        assert (root / path).stat().st_mode & 0o7777 == 0o1777
    modes = {"burst/run": 0o755, "burst/run/key": 0o700, "run/munge": 0o755}
    modes |= {"burst/run/key/curve.cert": 0o400, "burst/munge-key/munge.key": 0o400}
    modes |= {"burst/munge-key": 0o700, "burst/users/passwd": 0o644}
    for path, mode in modes.items():
        found = (root / path).stat()
        assert found.st_mode & 0o7777 == mode, path
        if path != "burst/users/passwd":
            assert found.st_uid == mine.user, path
    assert (root / "burst/run/key/curve.cert").read_text() == "certificate"
    # Neither its other user 1001 nor its other ann is left.
    assert (root / "burst/users/passwd").read_text().splitlines() == [
        "ann:x:1001:1001::/home/ann:/bin/sh",
        "root:x:0:0:root:/root:/bin/sh",
        "munge:x:113:121::/:/usr/sbin/nologin",
    ]
    assert (root / "burst/users/group").read_text() == ""


def test_what_prepare_cannot_do_ends_it(settings: PodSettings, root: Path) -> None:
    (root / "burst/secret/munge.key").unlink()
    with pytest.raises(AssertionError, match=r"munge\.key"):
        run_in(root, prepare_script(replace(settings, user=os.geteuid() or 1000)))


@pytest.mark.skipif(not shutil.which("munged"), reason="no munged on PATH")
def test_munged_is_told_options_that_it_has(settings: PodSettings) -> None:
    helped = run_captured(["munged", "--help"], check=True).stdout
    script = munged_script(settings)
    options = {w.partition("=")[0] for w in script.split() if w.startswith("--")}
    assert options
    assert all(option in helped for option in options)


def judged(settings: PodSettings, lead: LeadIdentity) -> list[Finding]:
    """Return what is found of guests, without what any lead is told."""
    return [f for f in examine_lead(settings, lead) if "guests" in f.what]


def test_the_doctor_names_the_standard_and_the_imp(
    spec: BurstSpec, settings: PodSettings
) -> None:
    (found,) = judged(settings, spec.lead)
    assert found.level is Level.OK
    assert f"with {IMP} of the image, which must be setuid root" in found.what
    assert "the Pod Security Standard baseline admits them" in found.what
    # Without the table guests have no pods.
    (found,) = judged(SETTINGS, spec.lead)
    assert found.level is Level.NOTE
    assert found.advice.startswith("set multi_user")
    assert judged(SETTINGS, replace(spec.lead, access=GuestAccess())) == []


def test_the_doctor_finds_what_would_be_refused(
    spec: BurstSpec, settings: PodSettings, key: Path
) -> None:
    owner = GuestAccess(imp=IMP)
    (found,) = judged(settings, replace(spec.lead, access=owner))
    assert found.level is Level.WRONG
    assert "access.allow-guest-user" in found.advice
    key.unlink()
    told = [f.what for f in examine_lead(settings, spec.lead) if f.level is Level.WRONG]
    assert any(f"{key} cannot be read" in what for what in told)


def test_doctor_tells_that_jobs_of_the_leads_owner_fail_on_anothers_followers(
    settings: PodSettings, spec: BurstSpec
) -> None:
    def notes(**changes: Any) -> list[str]:
        lead = replace(spec.lead, owner_userid=499)
        found = examine_lead(replace(settings, **changes), lead)
        return [each.what for each in found if each.level is Level.NOTE]

    [said] = notes(user=1000)
    assert "Flux fails each job of user 499" in said
    assert notes(user=499) == []
