# SPDX-License-Identifier: MIT
"""What bursts leave on disk, so that a daemon after this one finds them.

    DIR/OWNER.PROVIDER/BURST/spec.json      what was asked for
                             broker.toml    for all its followers
                             ending         since when it is being reaped
                             HOST/          a follower's rundir: its socket, and
                             HOST/born      which process it is
                             HOST/log       what it said

Short names, since a unix socket's path has no room for long ones.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

import msgspec

from burst.kits.atomic_file import write_atomically
from burst.kits.private_dir import PrivateDirectory, load_json
from burst.model.burst import BurstId
from burst.provider import BurstSpec
from burst_local.processes import ProcessIdentity

_TAIL_BYTES = 2048
# A broker that cannot join says why first, and then how its shutdown went.
_TAIL_LINES = 8
# As sd-daemon(3) has it; brokers write it where they log to their own stderr.
_PRIORITY = re.compile(r"^<[0-7]>")


def _plain(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in text)


class FollowerDirectory(msgspec.Struct, frozen=True):
    """The directory of one follower."""

    path: Path

    @property
    def host(self) -> str:
        """Its host."""
        return self.path.name

    @property
    def log(self) -> Path:
        """Where its output goes."""
        return self.path / "log"

    def identity(self) -> ProcessIdentity | None:
        """Return which process it is; None if none was recorded."""
        return load_json(self.path / "born", ProcessIdentity)

    def record(self, identity: ProcessIdentity) -> None:
        """Write down which process it is."""
        write_atomically(
            self.path / "born", msgspec.json.encode(identity), private=True
        )

    def unrecord(self) -> None:
        """Forget which process it was, before there is another."""
        (self.path / "born").unlink(missing_ok=True)

    def log_end(self) -> list[str]:
        """Return the last lines of the log; none if it said nothing."""
        try:
            with self.log.open("rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
                lines = file.read().decode(errors="replace").splitlines()
        except FileNotFoundError:
            return []
        return [_plain(_PRIORITY.sub("", line).strip()) for line in lines]

    def last_words(self) -> str:
        """Return the end of the log as one line; empty if it said nothing."""
        return " / ".join(self.log_end()[-_TAIL_LINES:])


class BurstDirectory(msgspec.Struct, frozen=True):
    """The directory of one burst."""

    path: Path

    @property
    def config(self) -> Path:
        """The followers' broker.toml."""
        return self.path / "broker.toml"

    @property
    def id(self) -> BurstId:
        """The burst's."""
        return BurstId(self.path.name)

    def exists(self) -> bool:
        """Tell whether anything of the burst is on disk."""
        return self.path.exists()

    def follower(self, host: str) -> FollowerDirectory:
        """Return the place of a follower."""
        return FollowerDirectory(self.path / host)

    def followers(self) -> Iterator[FollowerDirectory]:
        """Yield the places of all followers there are any of."""
        if self.path.is_dir():
            for path in sorted(self.path.iterdir()):
                if path.is_dir() and not path.is_symlink():
                    _allow(path)
                    yield FollowerDirectory(path)

    def make(self, spec: BurstSpec, config: str) -> None:
        """Make the directories, with what all followers need."""
        self.path.mkdir(mode=0o700, exist_ok=True)
        write_atomically(
            self.path / "spec.json", msgspec.json.encode(spec), private=True
        )
        write_atomically(self.config, config.encode(), private=True)
        for host in spec.hosts:
            self.follower(host).path.mkdir(mode=0o700, exist_ok=True)

    def spec(self) -> BurstSpec | None:
        """Return what was asked for; None if that was not written, or is damaged."""
        return load_json(self.path / "spec.json", BurstSpec)

    def ending_since(self) -> float | None:
        """Return when the first reap was, on the clock of the provider."""
        return load_json(self.path / "ending", float)

    def note_ending(self, since: float) -> None:
        """Write down since when it is being reaped, if that can be written.

        It only spares a daemon after this one to begin the grace anew. So a full disk,
        and a directory that somebody removed, are no reason to go on less far.
        """
        with contextlib.suppress(OSError):
            write_atomically(
                self.path / "ending", msgspec.json.encode(since), private=True
            )

    def remove(self) -> None:
        """Remove all of it. Only where no process of the burst is left.

        Raises OSError.
        """
        for parent, names, _ in os.walk(self.path):
            for name in names:
                _allow(Path(parent, name))
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(self.path)


class ProviderDirectory(PrivateDirectory):
    """The directory of one owner's provider, and the bursts in it."""

    def burst(self, burst_id: str) -> BurstDirectory:
        """Return the place of a burst, which `is_name` has to know."""
        return BurstDirectory(self.path / burst_id)

    def bursts(self) -> list[BurstDirectory]:
        """Return the places of all bursts of which anything is on disk."""
        places = [self.burst(name) for name in self.names()]
        for place in places:
            _allow(place.path)
        return places


def _allow(directory: Path) -> None:
    """Give ourselves the rights in a directory of ours that a job took away."""
    with contextlib.suppress(FileNotFoundError):
        found = directory.lstat()
        lacks = found.st_mode & stat.S_IRWXU != stat.S_IRWXU
        if lacks and stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid():
            directory.chmod(stat.S_IRWXU)
