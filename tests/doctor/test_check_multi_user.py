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


def change(file: FileFacts | ReadFailure | None, **values: Any) -> FileFacts:
    assert isinstance(file, FileFacts)
    return msgspec.structs.replace(file, **values)


CANNOT_READ = ReadFailure("it cannot be read", "")
SIGNED_BY = {"default-type": "munge", "allowed-types": ["munge", "none"]}
OTHERS = {"allowed-users": ["x"], "allowed-shells": [SHELL]}
UNPRIVILEGED = {
    "allowed-users": ["flux"],
    "allowed-shells": [SHELL],
    "allow-unprivileged-exec": True,
}
ITS_IMP = FileFacts(path="/e/imp.toml", uid=FLUX, mode=0o644)
OPEN_IMP = FileFacts(path="/e/imp.toml", uid=0, mode=0o666)
ROOTS, OPEN = change(GOOD.certificate, uid=0), change(GOOD.certificate, mode=0o640)
WRONG_ONES: list[tuple[dict[str, Any], str]] = [
    ({"imp": None}, "names no IMP, .*set imp under"),
    ({"imp": ReadFailure("x: no")}, "x: no -> install flux-sec"),
    ({"imp": change(IMP, mode=0o755)}, "0755.*chmod 4755 /usr/libexec"),
    ({"imp": change(IMP, uid=7)}, "by uid 7 .*chown root:root"),
    ({"imp": change(IMP, mode=0o4750)}, "4750"),
    ({"imp": change(IMP, nosuid=True)}, "nosuid, .*mount it without"),
    ({"imp": change(IMP, mode=0o4775)}, "can replace what runs as root"),
    ({"exec_table": {}}, "no .exec. table.*lead init DIR --multi-user"),
    ({"exec_table": CANNOT_READ}, "cannot be read -> make"),
    ({"shell": CANNOT_READ}, "cannot be read -> make"),
    ({"exec_table": OTHERS}, 'not let flux start .*add "flux" to allowed-users'),
    ({"exec_table": UNPRIVILEGED}, "jobs run as flux -> as root, remove it"),
    ({"sign_table": {}}, "no .sign. table"),
    ({"sign_table": CANNOT_READ}, "be read -> make"),
    ({"sign_table": SIGNED_BY}, 'remove "none" from allowed-types'),
    ({"security_files": [ITS_IMP]}, "uid 990 .*chown root:root /e/imp.toml"),
    ({"security_files": [OPEN_IMP]}, "mode 0666.*chmod go-w /e/imp.toml"),
    ({"munge": ReadFailure("no socket")}, "no socket -> start munged"),
    ({"certificate": ROOTS}, "uid 0 with mode 0600.*chown flux /etc/flux/burst"),
    ({"certificate": OPEN}, "mode 0640.*make a new one"),
    ({"certificate": ReadFailure("no")}, "no -> set curve_cert"),
    ({"rundir_closed": "/run/flux"}, "chmod o.x /run/flux"),
    ({"python": {"/a/py": "/a", "/x": ""}}, "read /a/py.*/a is closed.*chmod o.rX /a"),
    ({"python": ReadFailure("it failed")}, "failed -> see that `flux"),
]


@pytest.mark.parametrize(("values", "text"), WRONG_ONES, ids=[w for _, w in WRONG_ONES])
def test_what_is_wrong_is_told_with_advice(values: dict[str, Any], text: str) -> None:
    found = check_multi_user(msgspec.structs.replace(GOOD, **values))
    bad = [finding for finding in found if finding.level is not OK]
    assert {finding.level for finding in bad} == {WRONG}
    assert re.search(text, said(found)), said(found)


def test_a_lead_that_has_all_is_fine() -> None:
    assert levels(check_multi_user(GOOD)) == [OK] * 9
    # What is not there is not judged.
    fewer = msgspec.structs.replace(GOOD, daemon=None)
    assert levels(check_multi_user(fewer)) == [OK] * 8
    # Munge may be away where jobs are signed otherwise.
    signed: dict[str, Any] = {"default-type": "curve", "allowed-types": ["curve"]}
    signed |= {"max-ttl": 9, "curve": {}}
    facts = msgspec.structs.replace(
        GOOD, sign_table=signed, munge=ReadFailure("no socket")
    )
    found = check_multi_user(facts)
    assert levels(found) == [OK] * len(found)
    # A broker that does not answer is wrong.
    assert "see the finding about the lead" in said(check_multi_user(CANNOT_READ))
    # A daemon of root is worth a note.
    found = check_multi_user(msgspec.structs.replace(GOOD, daemon=0))
    assert [each.level for each in found if each.level is not OK] == [NOTE]
    assert "User=flux" in said(found)
    # A configuration that only the imp can read is not wrong.
    found = check_multi_user(msgspec.structs.replace(GOOD, exec_table=None))
    (closed,) = [finding for finding in found if finding.level is NOTE]
    assert "closed to this user" in closed.what
    assert f'"flux" in allowed-users and "{SHELL}"' in closed.advice
    assert levels(found).count(OK) == len(found) - 1
    # What decides what runs as the owner is changed by nobody else.
    home = "/home/ann"
    trusted = {f"{home}/bin/python": home, f"{home}/burst": home, "/etc/R": ""}
    facts = msgspec.structs.replace(GOOD, trusted=trusted)
    (one,) = [each for each in check_multi_user(facts) if each.level is not OK]
    assert one.level is WRONG
    assert "/home/ann can be changed by others than root and flux" in one.what
    assert "as flux: /home/ann/bin/python and 1 more" in one.what
    assert "chown" not in one.advice, "who gave root a home?"
    file = "/etc/flux/its R"
    facts = msgspec.structs.replace(GOOD, trusted={file: file})
    (one,) = [each for each in check_multi_user(facts) if each.level is not OK]
    assert "chown root '/etc/flux/its R' && chmod go-w '/etc" in one.advice
    unread = msgspec.structs.replace(GOOD, trusted=ReadFailure("no", ""))
    assert WRONG in levels(check_multi_user(unread))


def test_owner_and_mode_of_a_file_are_read(tmp_path: Path) -> None:
    # A lead of one user needs none of it.
    for access in ({}, {"allow-guest-user": False}):
        assert not is_multi_user({"access": access})
    assert is_multi_user({"access": {"allow-guest-user": True}})
    path = tmp_path / "imp"
    with pytest.raises(LeadError, match="No such file"):
        read_file(str(path))
    path.touch()
    path.chmod(0o4711)
    found = read_file(str(path))
    assert (found.uid, found.mode) == (os.geteuid(), 0o4711)
