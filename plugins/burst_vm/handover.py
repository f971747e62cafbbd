# SPDX-License-Identifier: MIT
"""The notes of VMs that were requested, and the tokens for which they get their files.

    HOME/BURST/spec          the burst's spec; no secret
    HOME/BURST/HOST.json     when its VM was requested, and the SHA-256 of its token
    HOME/BURST/HOST.fetched  exists once the token was accepted
    HOME/listener.pem        key and certificate of the listener, while bursts live

HOME is a PrivateDirectory, and all files have mode 0600. The daemon's worker writes
them; the listener's threads read them, and accept tokens.
"""

from __future__ import annotations

import datetime
import hashlib
import hmac
import os
import secrets
import shutil
from collections.abc import Sequence

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from burst.errors import BurstError
from burst.kits.atomic_file import write_atomically
from burst.kits.private_dir import (
    PrivateDirectory,
    disk_errors,
    is_safe_name,
    load_json,
)
from burst.model.host import is_host_name
from burst.provider import BurstSpec

_SPEC = "spec"
_LIFE = datetime.timedelta(days=3650)
TOKEN_BYTES = 32
_STOLEN = (
    "somebody else has read the user data of that VM, and may have its files; take the"
    " burst down and rotate the certificate"
)


class AskedVm(msgspec.Struct, frozen=True):
    """The note of a follower's VM. Times are in seconds since the epoch."""

    at: float
    """When it was requested, or when that call ended; 0 once it was deleted, or if the
    request was throttled, so that nothing waits for it in the cloud's list."""
    token_sha256: str
    until: float
    """Until when its token is accepted."""
    id: str = ""
    """The cloud's id of the VM; empty until the answer is known."""


class TokenRefused(BurstError):
    """Why a client gets no files for its token."""


class Handover:
    """The notes of one provider. Its methods raise Transient for errors of disks."""

    def __init__(self, home: PrivateDirectory) -> None:
        self._home = home
        self.pem = home.path / "listener.pem"

    def bursts(self) -> Sequence[str]:
        """Return the bursts that have notes."""
        with disk_errors(self._home.path):
            return self._home.names()

    def write_spec(self, spec: BurstSpec) -> None:
        """Write the spec of a burst, and make its directory."""
        place = self._home.path / spec.burst_id
        with disk_errors(place, writing=True):
            place.mkdir(mode=0o700, exist_ok=True)
            content = msgspec.json.encode(spec)
            write_atomically(place / _SPEC, content, private=True)

    def spec(self, burst: str) -> BurstSpec | None:
        """Return the spec of a burst; None if there is none."""
        with disk_errors(self._home.path):
            return load_json(self._home.path / burst / _SPEC, BurstSpec)

    def asked(self, burst: str, host: str) -> AskedVm | None:
        """Return the note of a follower's VM; None if none was requested."""
        with disk_errors(self._home.path):
            return load_json(self._home.path / burst / f"{host}.json", AskedVm)

    def hosts(self, burst: str) -> Sequence[str]:
        """Return the followers whose VMs were requested."""
        place = self._home.path / burst
        with disk_errors(place):
            found = place.glob("*.json")
            return sorted(each.stem for each in found)

    def fetched(self, burst: str, host: str) -> bool:
        """Tell whether the follower's VM has fetched its files."""
        with disk_errors(self._home.path):
            return (self._home.path / burst / f"{host}.fetched").exists()

    def answered(self, burst: str, host: str, **known: object) -> None:
        """Add to a VM's note what is known now; `known` are fields of `AskedVm`."""
        if noted := self.asked(burst, host):
            self._note(burst, host, msgspec.structs.replace(noted, **known))

    def _note(self, burst: str, host: str, noted: AskedVm) -> None:
        path = self._home.path / burst / f"{host}.json"
        with disk_errors(path, writing=True):
            write_atomically(path, msgspec.json.encode(noted), private=True)

    def ask(self, burst: str, host: str, now: float, lasts: float) -> str:
        """Note that a VM is requested now; return a new token. `lasts` in seconds."""
        token = secrets.token_hex(TOKEN_BYTES)
        self.forget(burst, host)
        self._note(burst, host, AskedVm(now, _digest(token), now + lasts))
        return token

    def check(self, burst: str, host: str, token: str, now: float) -> BurstSpec:
        """Return the spec of a follower's burst if the token is valid.

        Raises TokenRefused if the token is wrong or too old.
        """
        # The names become part of a path here, and come from whoever connects.
        known = is_safe_name(burst) and is_host_name(host)
        noted = self.asked(burst, host) if known else None
        spec = self.spec(burst) if noted else None
        if noted is None or spec is None or host not in spec.hosts:
            raise TokenRefused("there is no such follower")
        if not hmac.compare_digest(_digest(token), noted.token_sha256):
            raise TokenRefused("the token is wrong")
        if now > noted.until:
            raise TokenRefused("the token is too old")
        return spec

    def take(self, burst: str, host: str) -> None:
        """Record that a follower's token was used.

        Raises TokenRefused if it was used before.
        """
        taken = self._home.path / burst / f"{host}.fetched"
        with disk_errors(taken, writing=True):
            try:
                os.close(os.open(taken, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            except FileExistsError:
                raise TokenRefused("the token was used before", _STOLEN) from None

    def forget(self, burst: str, host: str = "") -> None:
        """Remove the notes of a burst, or of one of its followers."""
        place = self._home.path / burst
        with disk_errors(place):
            if host:
                for kind in ("json", "fetched"):
                    (place / f"{host}.{kind}").unlink(missing_ok=True)
            elif place.exists():
                shutil.rmtree(place)

    def close(self) -> None:
        """Remove key and directory, if no burst is left."""
        with disk_errors(self._home.path):
            if not self._home.names():
                self.pem.unlink(missing_ok=True)
                self._home.close()

    def fingerprint(self) -> str:
        """Return the SHA-256 of the listener's certificate, which is made if needed."""
        with disk_errors(self.pem, writing=True):
            if not self.pem.exists():
                write_atomically(self.pem, _new_identity(), private=True)
            found = x509.load_pem_x509_certificate(self.pem.read_bytes())
        return found.fingerprint(hashes.SHA256()).hex()


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _new_identity() -> bytes:
    """Return a new key and its self-signed certificate, PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "burst")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        # Clocks of VMs may be behind; but no VM checks the dates.
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + _LIFE)
        .sign(key, hashes.SHA256())
    )
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ) + made.public_bytes(serialization.Encoding.PEM)
