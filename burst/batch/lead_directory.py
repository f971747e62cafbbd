# SPDX-License-Identifier: MIT
"""The directory of one lead in an allocation, on a file system that all nodes share.

wish.json, settings.toml   the LeadRequest and burst.toml, written when it is submitted
job                        jobid and parent instance, written once it is submitted
broker.toml, R, burst.cert, burst.toml, flux/   written by rank 0 when the job starts
owner                      the owner tag, while anything of its bursts may exist
daemon.log
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path

import msgspec

from burst.batch.batch_plan import LeadRequest
from burst.decode import from_json
from burst.errors import ConfigError
from burst.kits.atomic_file import write_atomically
from burst.kits.user_names import own_home

# The name must stay: `burst lead sweep` has to find leads of earlier versions too.
_REQUEST = "wish.json"


class BatchJob(msgspec.Struct, frozen=True):
    """The batch job, as seen by its parent instance."""

    id: str
    uri: str
    """URI of the parent instance; empty for Flux's default."""


def default_parent(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the parent of all lead directories, by the XDG base directories."""
    home = own_home(environment)
    data = Path(environment.get("XDG_DATA_HOME") or home / ".local" / "share")
    return data / "burst" / "batch"


class LeadDirectory:
    """The files of one lead."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.given = self.path / "settings.toml"
        """Copy of the user's burst.toml, made when the job was submitted."""
        self.settings = self.path / "burst.toml"
        """The settings file of the daemon in the allocation."""
        self.certificate = self.path / "burst.cert"
        self.log = self.path / "daemon.log"
        self._request = self.path / _REQUEST
        self.job_file = self.path / "job"
        self._owner = self.path / "owner"

    @classmethod
    def new(cls, base: Path) -> LeadDirectory:
        """Return a new lead directory, which does not exist yet."""
        return cls(base / secrets.token_hex(4))

    @classmethod
    def find(cls, base: Path) -> list[LeadDirectory]:
        """Return all lead directories in this parent directory."""
        return [cls(path.parent) for path in sorted(base.glob(f"*/{_REQUEST}"))]

    def make(self, request: LeadRequest, settings: bytes) -> None:
        """Write request and settings before the submission. Raises ConfigError."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.mkdir(mode=0o700)
            self.given.write_bytes(settings)
            write_atomically(self._request, msgspec.json.encode(request).decode())
        except OSError as error:
            raise ConfigError(
                f"{self.path}: cannot be written: {error.strerror}",
                "name a directory that you may write with --dir",
            ) from error

    def request(self) -> LeadRequest:
        """Return the request. Raises ConfigError."""
        try:
            return from_json(self._request.read_bytes(), LeadRequest)
        except (OSError, msgspec.MsgspecError) as error:
            raise ConfigError(
                f"{self._request}: cannot be read: {error}",
                "name the directory of a lead, which all of its nodes have to see",
            ) from error

    def made_at(self) -> float:
        """Return when it was made, in seconds since the epoch."""
        return self._request.stat().st_mtime

    def set_job(self, job: BatchJob) -> None:
        """Write jobid and parent instance."""
        write_atomically(self.job_file, msgspec.json.encode(job).decode())

    def job(self) -> BatchJob | None:
        """Return the job, None if it was not submitted. Raises ConfigError."""
        if not self.job_file.exists():
            return None
        try:
            return from_json(self.job_file.read_bytes(), BatchJob)
        except (OSError, msgspec.MsgspecError) as error:
            raise ConfigError(f"{self.job_file}: cannot be read: {error}") from error

    def has_begun(self) -> bool:
        """Return whether the daemon was started, or the lead has ended already."""
        return self.log.exists() or not self.path.exists()

    def set_owner(self, owner: str) -> None:
        """Write the owner tag, before any burst can be made."""
        write_atomically(self._owner, owner)

    def owner(self) -> str:
        """Return the owner tag; empty if nothing of a burst can be left."""
        return self._owner.read_text() if self._owner.exists() else ""

    def clear_owner(self) -> None:
        """Remove the owner tag, after every provider answered NotFound."""
        self._owner.unlink(missing_ok=True)

    def remove(self) -> None:
        """Remove the directory, if it exists."""
        if self.path.exists():
            shutil.rmtree(self.path)
