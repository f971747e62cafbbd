# SPDX-License-Identifier: MIT
"""Replaces a lead's certificate, and tells which certificate a running lead has.

A broker reads its certificate once, when it starts. So after a rotation a running lead
still has the previous certificate, which is kept beside the new one. For example,
`burst.cert.until-1795385134.628301` was `burst.cert` until that time, in seconds since
the epoch.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from burst.errors import CertificateError
from burst.kits import certificate
from burst.kits.atomic_file import write_atomically
from burst.kits.certificate import Certificate
from burst.kits.path_rights import first_changeable
from burst.model.lead import LeadIdentity


def rotate(path: Path, name: str | None = None) -> tuple[Certificate, Path]:
    """Replace the certificate; return the new one, and the path of the previous one.

    It has the name of the previous one unless `name` is given. Both files have mode
    0600, or, made by root, owner and mode of the previous one. At every moment `path`
    is the old or the new certificate, complete. A symbolic link is kept; the file that
    it points to is replaced. Raises CertificateError.
    """
    before = certificate.read(path)
    path = path.resolve()
    _check_owner(path)
    like = None if os.geteuid() else path.stat()
    made = certificate.create(before.name if name is None else name)
    kept = path.with_name(f"{path.name}.until-{time.time():.6f}")
    try:
        text = certificate.format_certificate(before)
        write_atomically(kept, text, private=True, replace=False, like=like)
    except OSError as error:
        raise CertificateError(
            f"{kept}: cannot be written: {error.strerror}",
            "the certificate is unchanged; run this as a user who may write there",
        ) from error
    try:
        certificate.write(made, path, replace=True, like=like)
    except CertificateError:
        kept.unlink(missing_ok=True)  # no second copy of a key that is in use
        raise
    return made, kept


def running_certificate(lead: LeadIdentity) -> str:
    """Return the path of the certificate that the running lead has.

    It is the first certificate that was replaced since the lead's start; else, or if
    the time of the start is not known, the certificate of the lead's configuration.
    """
    if not lead.certificate or not lead.started:
        return lead.certificate
    path = Path(lead.certificate)
    kept = _kept(path.resolve())
    later = [(until, each) for until, each in kept if until > lead.started]
    return str(min(later, default=(0.0, path))[1])


def delete_unused(path: Path, started: float) -> list[Path]:
    """Delete the certificates that were replaced before a lead's start; return them.

    `path` is the present certificate. Raises OSError.
    """
    unused = [kept for until, kept in _kept(path.resolve()) if until <= started]
    for kept in unused:
        kept.unlink()
    return unused


def _check_owner(path: Path) -> None:
    """Raise CertificateError if the file is another user's.

    That user's lead could not read the new certificate. Root can give it to that user,
    but writes nothing where others could put a link in its place.
    """
    owner = path.stat().st_uid
    if owner != os.geteuid() and (os.geteuid() or first_changeable(path.parent, 0)):
        raise CertificateError(
            f"{path}: belongs to user {owner}, who could not read the new certificate",
            f"run this as that user: `sudo -u '#{owner}' burst keygen --rotate {path}`",
        )


def _kept(path: Path) -> Iterator[tuple[float, Path]]:
    """Yield until when each kept certificate was used, and its path.

    Files of other users are left out, as a rotation did not keep them.
    """
    try:
        owner = path.stat().st_uid
        beside = sorted(path.parent.iterdir())
    except OSError:  # reading the certificate reports the error
        return
    kept = re.compile(rf"{re.escape(path.name)}\.until-(\d+(?:\.\d+)?)")
    for each in beside:
        found = kept.fullmatch(each.name)
        if found and _is_file_of(each, owner):
            yield float(found[1]), each


def _is_file_of(path: Path, owner: int) -> bool:
    try:
        status = path.lstat()
    except OSError:  # deleted meanwhile
        return False
    return stat.S_ISREG(status.st_mode) and status.st_uid == owner
