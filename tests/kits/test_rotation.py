# SPDX-License-Identifier: MIT
import os
import time
from pathlib import Path

import msgspec
import pytest

from burst.errors import CertificateError
from burst.kits import certificate
from burst.kits.rotation import delete_unused, rotate, running_certificate
from burst.model.lead import LeadIdentity
from tests.builders import identity


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "burst.cert"
    certificate.write(certificate.create("site"), made)
    return made


def lead(path: Path, started: float) -> LeadIdentity:
    known: LeadIdentity = identity()
    return msgspec.structs.replace(known, certificate=str(path), started=started)


def keep(path: Path, until: float) -> str:
    """Place what an earlier rotation kept."""
    kept = path.with_name(f"{path.name}.until-{until:.2f}")
    certificate.write(certificate.create("old"), kept)
    return str(kept)


def test_a_lead_that_runs_has_the_one_before_and_the_next_has_the_new_one(
    path: Path,
) -> None:
    before, began = certificate.read(path), time.time()
    made, kept = rotate(path)
    assert certificate.read(kept) == before
    assert certificate.read(path) == made
    assert running_certificate(lead(path, began - 1)) == str(kept)
    assert running_certificate(lead(path, time.time() + 1)) == str(path)


def test_rotations_in_a_row_keep_each_certificate(path: Path) -> None:
    """Also within the hundredth of a second to which Flux tells the lead's start."""
    before, began = [certificate.read(path)], time.time()
    kept = []
    for _ in range(5):
        made, each = rotate(path)
        before.append(made)
        kept.append(each)
    assert [*map(certificate.read, kept), certificate.read(path)] == before
    assert running_certificate(lead(path, began - 1)) == str(kept[0])


def test_of_several_rotations_the_first_after_the_start_counts(path: Path) -> None:
    first, second, third = (keep(path, until) for until in (100.0, 900.25, 1000.0))
    assert running_certificate(lead(path, 50.0)) == first
    assert running_certificate(lead(path, 100.0)) == second
    assert running_certificate(lead(path, 901.0)) == third
    assert running_certificate(lead(path, 1000.0)) == str(path)


def test_what_is_not_known_to_be_ours_is_not_taken(path: Path) -> None:
    (path.parent / "other.cert.until-2000.00").touch()
    (path.parent / "burst.cert.until-soon").touch()
    (path.parent / "burst.cert.old.until-2000.00").touch()
    assert running_certificate(lead(path, 50.0)) == str(path)
    # What only leads to a certificate was not kept.
    other = path.with_name("other.cert")
    certificate.write(certificate.create("other"), other)
    path.with_name(f"{path.name}.until-900.00").symlink_to(other)
    assert running_certificate(lead(path, 50.0)) == str(path)


def test_without_a_start_or_a_certificate_it_is_what_the_configuration_says(
    path: Path,
) -> None:
    keep(path, 100.0)
    assert running_certificate(lead(path, 0.0)) == str(path)
    nothing = msgspec.structs.replace(lead(path, 50.0), certificate="")
    assert running_certificate(nothing) == ""
    missing = path.parent / "none" / "burst.cert"
    assert running_certificate(lead(missing, 50.0)) == str(missing)


def test_what_no_lead_can_have_any_more_is_deleted(path: Path) -> None:
    first, second = keep(path, 100.0), keep(path, 900.0)
    assert [str(each) for each in delete_unused(path, 500.0)] == [first]
    assert sorted(map(str, path.parent.iterdir())) == sorted([str(path), second])
    assert delete_unused(path, 0.0) == []


def test_behind_a_link_the_file_is_replaced_whichever_way_it_is_named(
    path: Path,
) -> None:
    link = path.parent / "etc" / "curve.cert"
    link.parent.mkdir()
    link.symlink_to(path)
    for named in (link, path):
        before, began = certificate.read(path), time.time()
        made, kept = rotate(named)
        assert certificate.read(link) == certificate.read(path) == made
        assert link.is_symlink()
        now = time.time()
        for configured in (link, path):
            assert running_certificate(lead(configured, began - 1)) == str(kept)
            assert running_certificate(lead(configured, now + 1)) == str(configured)
        assert certificate.read(kept) == before
        assert delete_unused(link, now + 1) == [kept]
    assert sorted(each.name for each in path.parent.iterdir()) == [path.name, "etc"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make another's file")
def test_what_is_of_another_user_is_neither_replaced_nor_taken(path: Path) -> None:
    forged = Path(keep(path, 900.0))
    os.chown(forged, 65534, -1)
    assert running_certificate(lead(path, 50.0)) == str(path)
    assert delete_unused(path, 1000.0) == []
    before = certificate.read(path)
    os.chown(path, 65534, -1)
    # Who may write there could lead root to any file.
    os.chown(path.parent, 65534, -1)
    with pytest.raises(CertificateError, match="belongs to user 65534"):
        rotate(path)
    assert certificate.read(path) == before
    assert set(path.parent.iterdir()) == {path, forged}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make another's file")
def test_root_replaces_what_the_owner_cannot(path: Path) -> None:
    """As in /etc/flux/system, where only root may write."""
    os.chown(path, 65534, 65534)
    path.chmod(0o400)
    made, kept = rotate(path)
    assert certificate.read(path) == made
    for each in (path, kept):
        found = each.stat()
        assert (found.st_uid, found.st_gid, found.st_mode) == (65534, 65534, 0o100400)


def test_what_cannot_be_kept_is_not_replaced(path: Path) -> None:
    before = certificate.read(path)
    with pytest.raises(CertificateError, match="no such file"):
        rotate(path.with_name("missing.cert"))
    long = path.with_name("x" * 240)
    path.rename(long)
    with pytest.raises(CertificateError, match="the certificate is unchanged"):
        rotate(long)
    assert certificate.read(long) == before
