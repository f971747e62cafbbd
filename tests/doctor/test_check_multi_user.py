# SPDX-License-Identifier: MIT
"""Facts to findings: what other users' jobs need on the lead's host."""

import os
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from burst.doctor.check_multi_user import check_multi_user
from burst.doctor.collect_multi_user import is_multi_user, read_file
from burst.doctor.facts import FileFacts, MultiUserFacts, ReadFailure
from burst.errors import LeadError
from tests.doctor.reading import NOTE, OK, WRONG, levels, said

SHELL = "/usr/libexec/flux/flux-shell"
IMP = FileFacts(path="/usr/libexec/flux/flux-imp", uid=0, mode=0o4755)
FLUX = 990
GOOD = MultiUserFacts(
    owner=FLUX,
    user="flux",
    imp=IMP,
    shell=SHELL,
    exec_table={"allowed-users": ["flux"], "allowed-shells": [SHELL]},
    sign_table={"max-ttl": 9, "default-type": "munge", "allowed-types": ["munge"]},
    security_files=(FileFacts(path="/etc/flux/imp/conf.d", uid=0, mode=0o755),),
    munge="flux",
    certificate=FileFacts(path="/etc/flux/burst.cert", uid=FLUX, mode=0o600),
    rundir="/run/flux",
    rundir_closed="",
    python={"/usr/bin/python3": ""},
    trusted={"/usr/bin/python3": "", "/etc/flux/burst.toml": ""},
    daemon=FLUX,
)


def test_a_configuration_that_only_the_imp_can_read_is_not_wrong() -> None:
    found = check_multi_user(msgspec.structs.replace(GOOD, exec_table=None))
    (closed,) = [finding for finding in found if finding.level is NOTE]
    assert "closed to this user" in closed.what
    assert f'"flux" in allowed-users and "{SHELL}"' in closed.advice
    assert levels(found).count(OK) == len(found) - 1


def change(file: FileFacts | ReadFailure | None, **values: Any) -> FileFacts:
    assert isinstance(file, FileFacts)
    return msgspec.structs.replace(file, **values)


def test_what_decides_what_runs_as_the_owner_is_changed_by_nobody_else() -> None:
    home = "/home/ann"
    trusted = {f"{home}/bin/python": home, f"{home}/burst": home, "/etc/R": ""}
    facts = msgspec.structs.replace(GOOD, trusted=trusted)
    (found,) = [each for each in check_multi_user(facts) if each.level is not OK]
    assert found.level is WRONG
    assert "/home/ann can be changed by users other than root and flux" in found.what
    assert "as flux: /home/ann/bin/python and 1 more" in found.what
    assert "chown" not in found.advice, "who gave root a home?"
    file = "/etc/flux/its R"
    facts = msgspec.structs.replace(GOOD, trusted={file: file})
    (found,) = [each for each in check_multi_user(facts) if each.level is not OK]
    assert "chown root '/etc/flux/its R' && chmod go-w '/etc" in found.advice
    unread = msgspec.structs.replace(GOOD, trusted=ReadFailure("no", ""))
    assert WRONG in levels(check_multi_user(unread))


CANNOT_READ = ReadFailure("it cannot be read", "")
WRONG_ONES: list[tuple[str, dict[str, Any], str]] = [
    ("no IMP is named", {"imp": None}, "names no IMP, .*set imp under"),
    ("no IMP is there", {"imp": ReadFailure("x: no")}, "x: no -> install flux-sec"),
    ("not setuid", {"imp": change(IMP, mode=0o755)}, "0755.*chmod 4755 /usr/libexec"),
    ("not root's", {"imp": change(IMP, uid=7)}, "by uid 7 .*chown root:root"),
    ("guests cannot run it", {"imp": change(IMP, mode=0o4750)}, "4750"),
    ("nosuid", {"imp": change(IMP, nosuid=True)}, "nosuid, .*mount it without"),
    ("open IMP", {"imp": change(IMP, mode=0o4775)}, "can replace what runs as root"),
    ("no imp.toml", {"exec_table": {}}, "no .exec. table.*lead init DIR --multi-user"),
    ("unreadable imp.toml", {"exec_table": CANNOT_READ}, "cannot be read -> make"),
    ("no shell is known", {"shell": CANNOT_READ}, "cannot be read -> make"),
    (
        "another user",
        {"exec_table": {"allowed-users": ["x"], "allowed-shells": [SHELL]}},
        'not let flux start .*add "flux" to allowed-users',
    ),
    (
        "unprivileged",
        {"exec_table": {**GOOD.exec_table, "allow-unprivileged-exec": True}},  # type: ignore[dict-item]
        "users' jobs run as flux -> as root, remove it",
    ),
    ("no security.toml", {"sign_table": {}}, "no .sign. table"),
    ("unreadable security.toml", {"sign_table": CANNOT_READ}, "be read -> make"),
    (
        "unsigned jobs",
        {"sign_table": {"default-type": "munge", "allowed-types": ["munge", "none"]}},
        'remove "none" from allowed-types',
    ),
    (
        "flux's own imp.toml",
        {"security_files": [FileFacts(path="/e/imp.toml", uid=FLUX, mode=0o644)]},
        "/e/imp.toml is owned by uid 990 .*chown root:root /e/imp.toml",
    ),
    (
        "an imp.toml that others write",
        {"security_files": [FileFacts(path="/e/imp.toml", uid=0, mode=0o666)]},
        "mode 0666.*chmod go-w /e/imp.toml",
    ),
    ("no munged", {"munge": ReadFailure("no socket")}, "no socket -> start munged"),
    (
        "root's certificate",
        {"certificate": change(GOOD.certificate, uid=0)},
        "uid 0 with mode 0600.*chown flux /etc/flux/burst.cert",
    ),
    (
        "an open certificate",
        {"certificate": change(GOOD.certificate, mode=0o640)},
        "mode 0640.*make a new one",
    ),
    ("no certificate", {"certificate": ReadFailure("no")}, "no -> set curve_cert"),
    ("a closed rundir", {"rundir_closed": "/run/flux"}, "chmod o.x /run/flux"),
    (
        "a closed Python",
        {"python": {"/root/py": "/root", "/usr/x": ""}},
        "cannot read /root/py.*/root is closed.*chmod o.rX /root",
    ),
    ("no Python", {"python": ReadFailure("it failed")}, "failed -> see that `flux"),
]


@pytest.mark.parametrize(
    ("values", "text"),
    [pytest.param(values, text, id=name) for name, values, text in WRONG_ONES],
)
def test_each_thing_that_is_wrong_is_told_with_what_to_do(
    values: dict[str, Any], text: str
) -> None:
    found = check_multi_user(msgspec.structs.replace(GOOD, **values))
    bad = [finding for finding in found if finding.level is not OK]
    assert {finding.level for finding in bad} == {WRONG}
    assert re.search(text, said(found)), said(found)


def test_a_broker_that_does_not_answer_is_wrong() -> None:
    assert "see the finding about the lead" in said(check_multi_user(CANNOT_READ))


def test_a_daemon_of_root_is_worth_a_note() -> None:
    found = check_multi_user(msgspec.structs.replace(GOOD, daemon=0))
    assert [each.level for each in found if each.level is not OK] == [NOTE]
    assert "User=flux" in said(found)


def test_a_lead_that_has_all_is_fine() -> None:
    assert levels(check_multi_user(GOOD)) == [OK] * 9
    # What is not there is not judged.
    fewer = msgspec.structs.replace(GOOD, daemon=None)
    assert levels(check_multi_user(fewer)) == [OK] * 8


def test_munge_may_be_away_where_jobs_are_signed_otherwise() -> None:
    signed: dict[str, Any] = {"default-type": "curve", "allowed-types": ["curve"]}
    signed |= {"max-ttl": 9, "curve": {}}
    facts = msgspec.structs.replace(
        GOOD, sign_table=signed, munge=ReadFailure("no socket")
    )
    found = check_multi_user(facts)
    assert levels(found) == [OK] * len(found)


@pytest.mark.parametrize(
    ("access", "expected"),
    [
        ({}, False),
        ({"allow-guest-user": False}, False),
        ({"allow-guest-user": True}, True),
    ],
)
def test_a_lead_of_one_user_needs_none_of_it(
    access: dict[str, bool], expected: bool
) -> None:
    assert is_multi_user({"access": access}) is expected


def test_owner_and_mode_of_a_file_are_read(tmp_path: Path) -> None:
    path = tmp_path / "imp"
    with pytest.raises(LeadError, match="No such file"):
        read_file(str(path))
    path.touch()
    path.chmod(0o4711)
    found = read_file(str(path))
    assert (found.uid, found.mode) == (os.geteuid(), 0o4711)
