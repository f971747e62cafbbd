# SPDX-License-Identifier: MIT
"""The files of bursts, with which a restarted daemon finds the bursts.

    DIR/OWNER.PROVIDER/BURST/spec.json      the BurstSpec
                             broker.toml    for all its followers
                             ending         the time when its reaping began
                             HOST/          a follower's rundir: its socket, and
                             HOST/born      the identity of its process
                             HOST/log       its output

Names are short, since the path of a unix socket is limited.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Collection, Iterator
from pathlib import Path

import msgspec

from burst.kits.atomic_file import write_atomically
from burst.kits.join_errors import main_lines, read_log
from burst.kits.path_rights import let_pass
from burst.kits.private_dir import PrivateDirectory, load_json
from burst.model.burst import BurstId
from burst.provider import BurstSpec
from burst_local.processes import ProcessIdentity

# Enough for the lines that a broker logs for each step, which `last_words` leaves out.
_TAIL_BYTES = 16384
_LONGEST_WORDS = 2048
# A broker that cannot join logs the reason first, and then its shutdown.
_TAIL_LINES = 8


def _plain(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in text)


class FollowerDirectory(msgspec.Struct, frozen=True):
    """The directory of one follower."""

    path: Path

    @property
    def host(self) -> str:
        """The follower's host name."""
        return self.path.name

    @property
    def log(self) -> Path:
        """The file that gets the follower's output."""
        return self.path / "log"

    def identity(self) -> ProcessIdentity | None:
        """Return the identity of the follower's process; None if it was not written."""
        return load_json(self.path / "born", ProcessIdentity)

    def record(self, identity: ProcessIdentity) -> None:
        """Write the identity of the follower's process."""
        write_atomically(
            self.path / "born", msgspec.json.encode(identity), private=True
        )

    def unrecord(self) -> None:
        """Remove the written identity, before another process is started."""
        (self.path / "born").unlink(missing_ok=True)

    def log_end(self) -> str:
        """Return the end of the log."""
        return read_log(self.log, _TAIL_BYTES)

    def last_words(self) -> str:
        """Return the end of the log as one line; empty if there is none."""
        lines = [_plain(line) for line in main_lines(self.log_end())[-_TAIL_LINES:]]
        return " / ".join(lines)[-_LONGEST_WORDS:]


class BurstDirectory(msgspec.Struct, frozen=True):
    """The directory of one burst."""

    path: Path

    @property
    def config(self) -> Path:
        """The followers' broker.toml."""
        return self.path / "broker.toml"

    @property
    def id(self) -> BurstId:
        """The burst's id."""
        return BurstId(self.path.name)

    def exists(self) -> bool:
        """Return whether the burst has a directory."""
        return self.path.exists()

    def follower(self, host: str) -> FollowerDirectory:
        """Return the directory of a follower."""
        return FollowerDirectory(self.path / host)

    def followers(self) -> Iterator[FollowerDirectory]:
        """Yield the directories of all followers that exist."""
        if self.path.is_dir():
            for path in sorted(self.path.iterdir()):
                if path.is_dir() and not path.is_symlink():
                    _allow(path)
                    yield FollowerDirectory(path)

    def make(self, spec: BurstSpec, config: str) -> None:
        """Make the directories and the files that followers need.

        An empty `config` leaves broker.toml as it is. If the lead serves guests, they
        may pass through the directories to the sockets; only this user reads the files.
        """
        passable = spec.lead.access.allow_guest_user
        _make(self.path, passable=passable)
        write_atomically(
            self.path / "spec.json", msgspec.json.encode(spec), private=True
        )
        if config:
            write_atomically(self.config, config.encode(), private=True)
        for host in spec.hosts:
            _make(self.follower(host).path, passable=passable)

    def spec(self) -> BurstSpec | None:
        """Return the spec; None if it was not written, or is damaged."""
        return load_json(self.path / "spec.json", BurstSpec)

    def ending_since(self) -> float | None:
        """Return the time of the first reap, by the provider's clock; None before."""
        return load_json(self.path / "ending", float)

    def note_ending(self, since: float) -> None:
        """Write the time when the burst's reaping began, if that can be written.

        Without the file a restarted daemon only waits for the grace time again. So
        neither a full disk nor a missing directory stops the reaping.
        """
        with contextlib.suppress(OSError):
            write_atomically(
                self.path / "ending", msgspec.json.encode(since), private=True
            )

    def remove_followers(self, hosts: Collection[str]) -> None:
        """Remove the directories of followers that have no process left.

        Raises OSError.
        """
        for host in hosts:
            _remove(self.follower(host).path)

    def remove(self) -> None:
        """Remove the directory. No process of the burst may be left.

        Raises OSError.
        """
        _remove(self.path)


class ProviderDirectory(PrivateDirectory):
    """The directory of one owner's provider, and the bursts in it."""

    def burst(self, burst_id: str) -> BurstDirectory:
        """Return the directory of a burst; `is_safe_name` must accept the id."""
        return BurstDirectory(self.path / burst_id)

    def bursts(self) -> list[BurstDirectory]:
        """Return the directories of all bursts."""
        places = [self.burst(name) for name in self.names()]
        for place in places:
            _allow(place.path)
        return places


def _make(directory: Path, *, passable: bool) -> None:
    directory.mkdir(mode=0o700, exist_ok=True)
    if passable:
        let_pass(directory)


def _remove(directory: Path) -> None:
    for parent, names, _ in os.walk(directory):
        for name in names:
            _allow(Path(parent, name))
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(directory)


def _allow(directory: Path) -> None:
    """Give this user access again to a directory whose mode a job has changed."""
    with contextlib.suppress(FileNotFoundError):
        found = directory.lstat()
        lacks = found.st_mode & stat.S_IRWXU != stat.S_IRWXU
        if lacks and stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid():
            directory.chmod(stat.S_IRWXU)
