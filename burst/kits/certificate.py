# SPDX-License-Identifier: MIT
"""CURVE certificates in Flux's format: make, read, check and write them.

The lead and all its followers share one certificate; whoever has its secret key can
join. The file is what flux-keygen(1) writes: two sections, `metadata` and `curve`, of
lines `key = "value"` with leading blanks. Flux's reader is stricter than ZeroMQ RFC 4,
which defines the format. This one accepts only what Flux accepts.

No error message and no text for printing from this module contains a secret key.
"""

from __future__ import annotations

import hashlib
import os
import re
import socket
import stat
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import zmq

from burst.errors import CertificateError
from burst.kits.atomic_file import write_atomically

_KEY = re.compile(r"[A-Za-z0-9.-]+\Z")
# Flux refuses a certificate with any other character in a value, such as `_`.
_VALUE = re.compile(r"[A-Za-z0-9.:+=^!/*?&<>()\[\]{}@%$# \t-]*\Z")
_NOT_IN_VALUE = re.compile(r"[^A-Za-z0-9.:+=^!/*?&<>()\[\]{}@%$# \t-]")
_Z85 = re.compile(r"[A-Za-z0-9.:+=^!/*?&<>()\[\]{}@%$#-]{40}\Z")
_BLANK = " \t\r\n\f\v"
# Flux reads lines into a buffer of 256 bytes, including the newline and a zero.
_LONGEST_LINE = 254
_LONGEST_NAME = 200
_LARGEST_FILE = 64 * 1024
_NEW_ONE = "make one with `burst keygen PATH` or `flux keygen PATH`"


@dataclass(frozen=True)
class Certificate:
    """A usable certificate. Its repr and its comparison leave the secret key out."""

    public: bytes
    """40 characters of Z85, as pyzmq's `curve_publickey` and `curve_serverkey` want."""
    secret: bytes = field(repr=False, compare=False)
    """40 characters of Z85, for `curve_secretkey`."""
    metadata: Mapping[str, str] = field(compare=False)
    """All keys of the section `metadata`, including `name`."""

    @property
    def name(self) -> str:
        """The name by which Flux's overlay lists it."""
        return self.metadata["name"]

    @property
    def fingerprint(self) -> str:
        """A short hash of the public key, by which messages tell certificates apart."""
        return hashlib.sha256(self.public).hexdigest()[:12]


def create(name: str, hostname: str = "") -> Certificate:
    """Return a new certificate; the default of `hostname` is this machine's name.

    Flux does not start a lead whose certificate has no name. Raises CertificateError
    if the name is empty or has characters that Flux cannot read.
    """
    if not 0 < len(name) <= _LONGEST_NAME or not _VALUE.match(name):
        raise CertificateError(
            f"not a name for a certificate: {name!r}",
            f"use 1 to {_LONGEST_NAME} letters, digits, dots and dashes",
        )
    where = hostname or socket.gethostname()
    public, secret = zmq.curve_keypair()
    metadata = {
        "name": name,
        "keygen.hostname": _NOT_IN_VALUE.sub("-", where)[:_LONGEST_NAME] or "unknown",
        "keygen.time": time.strftime("%Y-%m-%dT%H:%M:%S"),
        "keygen.userid": str(os.getuid()),
        "keygen.zmq-version": zmq.zmq_version(),
    }
    return Certificate(public, secret, metadata)


def write(
    certificate: Certificate,
    path: Path,
    *,
    replace: bool = False,
    like: os.stat_result | None = None,
) -> None:
    """Write the file with mode 0600, or owner and mode of `like`, or not at all.

    Raises CertificateError if the file exists, unless `replace` is true, or if it
    cannot be written.
    """
    text = format_certificate(certificate)
    try:
        write_atomically(path, text, private=True, replace=replace, like=like)
    except FileExistsError as error:
        raise CertificateError(
            f"{path}: exists already",
            "with another certificate its followers could not join again; `--rotate`"
            " replaces that of a lead; to replace it anyway, add --force",
        ) from error
    except OSError as error:
        raise CertificateError(
            f"{path}: cannot be written: {error.strerror}",
            "name a file in a directory that you may write",
        ) from error


def read(path: Path) -> Certificate:
    """Return the certificate in a file.

    Raises CertificateError, with advice, if Flux would refuse the file on a lead or on
    a follower.
    """
    return parse(_content(path), str(path))


def parse(text: str, where: str) -> Certificate:
    """Return the certificate in the text of a file; errors begin with `where`.

    Raises CertificateError.
    """
    if not text.strip():
        raise CertificateError(f"{where}: is empty", _NEW_ONE)
    sections = _sections(text, where)
    metadata, curve = sections["metadata"], sections["curve"]
    for key in ("public-key", "secret-key"):
        if key in curve and not _Z85.match(curve[key]):
            raise CertificateError(
                f"{where}: its {key} is not 40 characters of Z85",
                "the file is damaged: copy it again from where it was made",
            )
    if set(curve) == {"public-key"}:
        raise CertificateError(
            f"{where}: holds only the public key",
            "a follower needs the lead's whole certificate: copy that file",
        )
    if set(curve) != {"public-key", "secret-key"}:
        raise CertificateError(f"{where}: is not a CURVE certificate", _NEW_ONE)
    found = Certificate(
        curve["public-key"].encode(), curve["secret-key"].encode(), metadata
    )
    _check_pair(found, where)
    if "name" not in metadata:
        raise CertificateError(
            f"{where}: has no name in its metadata, without which a Flux lead does not"
            " start",
            'add the line `    name = "burst"` below `metadata`, or ' + _NEW_ONE,
        )
    return found


def format_certificate(certificate: Certificate) -> str:
    """Return the text of the file. It contains the secret key."""
    lines = ["#  ZeroMQ CURVE **Secret** Certificate", "#  DO NOT DISTRIBUTE", ""]
    lines += ["metadata"]
    lines += [f'    {key} = "{value}"' for key, value in certificate.metadata.items()]
    lines += ["curve"]
    lines += [f'    public-key = "{certificate.public.decode()}"']
    lines += [f'    secret-key = "{certificate.secret.decode()}"']
    return "\n".join(lines) + "\n"


def _sections(text: str, where: str) -> dict[str, dict[str, str]]:
    sections: dict[str, dict[str, str]] = {"metadata": {}, "curve": {}}
    current: dict[str, str] | None = None
    for number, line in enumerate(text.split("\n"), 1):
        word = line.strip(_BLANK)
        if not word or word.startswith("#"):
            continue
        if word in sections and not line.startswith((" ", "\t")):
            current = sections[word]
            continue
        pair = _pair(line, word)
        known = current is not sections["curve"] or (
            pair is not None and pair[0] in ("public-key", "secret-key")
        )
        if current is None or pair is None or not known or pair[0] in current:
            # The line may contain a key, so the message names only its number.
            raise CertificateError(
                f"{where}: is not a CURVE certificate (line {number})", _NEW_ONE
            )
        current[pair[0]] = pair[1]
    return sections


def _pair(line: str, word: str) -> tuple[str, str] | None:
    """Return key and value of `    key = "value"`; None if Flux would not read it."""
    if len(line) > _LONGEST_LINE or not line.startswith((" ", "\t")):
        return None
    key, equals, value = (part.strip(_BLANK) for part in word.partition("="))
    quoted = len(value) >= 2 and value[0] == value[-1] == '"'
    if not equals or not quoted or not _KEY.match(key) or not _VALUE.match(value[1:-1]):
        return None
    return key, value[1:-1]


def _check_pair(found: Certificate, where: str) -> None:
    try:
        matches = zmq.curve_public(found.secret) == found.public
    except zmq.ZMQError:  # 40 characters of Z85 that do not encode 32 bytes
        matches = False
    if not matches:
        raise CertificateError(
            f"{where}: its secret key does not belong to its public key",
            "two certificates were mixed, or the file is damaged: copy the lead's",
        )


def _content(path: Path) -> str:
    try:
        with open(path, "rb", opener=_open_at_once) as file:
            mode = os.fstat(file.fileno()).st_mode
            if not stat.S_ISREG(mode):
                raise CertificateError(f"{path}: is not a file", _NEW_ONE)
            content = file.read(_LARGEST_FILE)
    except FileNotFoundError as error:
        raise CertificateError(f"{path}: no such file", _NEW_ONE) from error
    except OSError as error:
        raise CertificateError(
            f"{path}: cannot be read: {error.strerror}",
            "give its path, and run this as the user who owns it",
        ) from error
    if stat.S_IMODE(mode) & 0o077:
        raise CertificateError(
            f"{path}: is open to group or others (mode {stat.S_IMODE(mode):04o})",
            f"whoever reads it can join: run `chmod 600 {path}`, and make a new"
            " certificate if this machine has other users",
        )
    # Characters other than ASCII are accepted only in comments. In any other line they
    # are an error that names the line's number.
    return content.decode("ascii", "replace")


def _open_at_once(path: str, flags: int) -> int:
    """Open the file; if it is a FIFO, do not wait for a writer."""
    return os.open(path, flags | os.O_NONBLOCK)
