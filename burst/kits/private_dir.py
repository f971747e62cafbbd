# SPDX-License-Identifier: MIT
"""A provider's private directory, which the next daemon reads after a restart.

    DIR/OWNER.PROVIDER/

Its files say which processes get a signal and what is deleted, so no other user may
write there. On request other users may pass through it (mode 0711), as the socket of a
follower that runs their jobs is below it. A symbolic link in its place is refused, as
another user may have made it.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import stat
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from burst.decode import from_json
from burst.errors import InsufficientCapacity, ProviderError, Refused, Transient
from burst.kits.atomic_file import NO_ROOM
from burst.kits.path_rights import let_pass
from burst.kits.user_names import user_name

_T = TypeVar("_T")
# The least space that the directories of a burst need, in bytes.
_LEAST_ROOM = 16 * 1024
_FOR_A_WHILE = {errno.EIO, errno.EINTR, errno.EMFILE, errno.ENFILE, errno.ENOMEM}
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,62}\Z")


def is_safe_name(text: str) -> bool:
    """Return whether the text is safe as the name of a file or directory."""
    return bool(_NAME.match(text))


def default_base() -> Path:
    """Return `/tmp/burst-UID`.

    It is short, as the path of a unix socket must be. Unlike XDG_RUNTIME_DIR it does
    not depend on how the daemon is started.
    """
    return Path(f"/tmp/burst-{os.geteuid()}")  # noqa: S108  it is checked before use


class PrivateDirectory:
    """The private directory of one provider of one owner."""

    def __init__(
        self, base: Path, owner: str, name: str, *, has_key: bool = True
    ) -> None:
        """Take its place. `has_key`: whether the provider's key `dir` names `base`."""
        for word in (owner, name):
            if not is_safe_name(word):
                raise Refused(
                    f"{word!r} cannot be part of a directory name",
                    "use letters, digits and dashes",
                )
        self._base, self._has_key = base, has_key
        # Neither has a dot, so no two pairs share a directory.
        self.path = base / f"{owner}.{name}"
        self._one_locks = threading.Lock()
        self._locked: int | None = None
        self._unlock: Callable[[], object] = bool

    def open(self, *, passable: bool = False) -> None:
        """Make the directory with mode 0700; with `passable`, with mode 0711.

        With `passable`, others may also pass through `base` if it is this user's.
        Raises Refused, InsufficientCapacity if the disk is full, Transient.
        """
        try:
            self._base.mkdir(mode=0o700, parents=True, exist_ok=True)
            with self._open_base() as base:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(self.path.name, mode=0o700, dir_fd=base)
                if passable:
                    let_pass(base)
                    own = os.open(self.path.name, _DIRECTORY, dir_fd=base)
                    try:
                        let_pass(own)
                    finally:
                        os.close(own)
        except OSError as error:
            raise self._unusable("made", error) from error
        self.check()

    def check(self) -> None:
        """Raise Refused if the directory exists and another user could write in it.

        Raises Transient if it cannot be examined now. Symbolic links are not followed,
        at `base` or below it.
        """
        try:
            with self._open_base() as base:
                own = os.stat(self.path.name, dir_fd=base, follow_symlinks=False)
        except FileNotFoundError:
            return
        except OSError as error:
            raise self._unusable("used", error) from error
        self._refuse_others(self.path, own, {os.geteuid()})
        self._refuse(self.path, own.st_mode & 0o066 or not stat.S_ISDIR(own.st_mode))
        with self._one_locks:
            self._lock(own)

    def _lock(self, own: os.stat_result) -> None:
        """Lock the directory while this object lives.

        systemd-tmpfiles, which removes files of /tmp that nobody read or wrote for ten
        days, leaves out what is below a locked directory (tmpfiles.d(5), flock(2)). The
        notes of a burst that lives for longer must not go before it does.
        """
        if self._locked == own.st_ino:
            return
        self._unlock()
        self._locked = None
        try:
            place = os.open(self.path, _DIRECTORY)
            self._unlock = weakref.finalize(self, os.close, place)
            fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._locked = own.st_ino
        except OSError:
            # Another process of this user has it, or the file system has no locks.
            self._unlock()

    def check_space(self) -> None:
        """Raise Refused while its file system has no space for a burst.

        Raises Transient if the free space cannot be read now.
        """
        place = next(p for p in (self.path, *self.path.parents) if p.exists())
        with disk_errors(place):
            found = os.statvfs(place)
        blocks = found.f_bavail if os.geteuid() else found.f_bfree
        if blocks * found.f_frsize < _LEAST_ROOM or (
            found.f_files and not found.f_ffree
        ):
            raise Refused(
                f"{self.path}: the file system of {place} is full",
                f"free space on it{self._or_dir('a directory on another one')}; then"
                " the provider is used again, without a restart",
            )

    @contextlib.contextmanager
    def _open_base(self) -> Iterator[int]:
        """Open `base`, check its owner and mode, and that it is no symbolic link."""
        if self._base.is_symlink():
            raise Refused(
                f"{self._base}: is a symbolic link, which others may have made",
                f"remove it{self._or_dir('the directory that it points to')}",
            )
        base = os.open(self._base, _DIRECTORY)
        try:
            found = os.fstat(base)
            self._refuse_others(self._base, found, {0, os.geteuid()})
            shared = found.st_mode & 0o022 and not found.st_mode & stat.S_ISVTX
            self._refuse(self._base, shared)
            yield base
        finally:
            os.close(base)

    def _unusable(self, how: str, error: OSError) -> ProviderError:
        what = f"{self.path}: cannot be {how}: {error.strerror}"
        if error.errno in NO_ROOM:
            return InsufficientCapacity(what, "free space on that file system")
        if error.errno in _FOR_A_WHILE:
            return Transient(what)
        if error.errno == errno.EROFS:
            # The unit that `burst lead init --system` writes sets this (systemd.exec).
            return Refused(
                what,
                "if systemd runs the daemon, let it write there: `systemctl edit burst`"
                f" with [Service] and ReadWritePaths={self._base}",
            )
        other = self._or_dir("a directory that this user may write")
        return Refused(what, f"let this user write there{other}")

    def _refuse(self, path: Path, wrong: int) -> None:
        if wrong:
            raise Refused(
                f"{path}: others may write there, or could before",
                f"remove it{self._or_dir('a directory of this user')}",
            )

    def _refuse_others(self, path: Path, found: os.stat_result, ours: set[int]) -> None:
        if found.st_uid not in ours:
            # It may have the notes of live bursts: nobody is advised to remove it.
            who = user_name(found.st_uid)
            raise Refused(
                f"{path}: belongs to {who}, and this is {user_name(os.geteuid())}",
                f"run it as {who} if the daemon runs as {who}"
                + self._or_dir("a directory of this user"),
            )

    def _or_dir(self, which: str) -> str:
        """Return the advice to name another directory; empty if no key does."""
        return f", or set dir to {which}" if self._has_key else ""

    @classmethod
    def owners(cls, base: Path, *, has_key: bool = True) -> list[tuple[str, str]]:
        """Return owner and provider of each directory in `base` that is this user's.

        What `check` refuses in it is left out. For root, which looks for the bursts of
        others too, Refused is raised if all the directories are another user's. Also
        raises Refused if `base` itself is refused.
        """
        if not base.is_dir():
            return []
        with cls(base, "any", "any", has_key=has_key)._open_base() as opened:
            names = sorted(os.listdir(opened))
        found, theirs = [], None
        for name in names:
            owner, _, provider = name.partition(".")
            if is_safe_name(owner) and is_safe_name(provider):
                home = cls(base, owner, provider, has_key=has_key)
                try:
                    home.check()
                    found.append((owner, provider))
                except Refused as error:
                    if os.geteuid() == 0 and _is_others_directory(home.path):
                        theirs = error
        if theirs and not found:
            raise theirs
        return found

    def names(self) -> list[str]:
        """Return the safe names in the directory; none if it does not exist."""
        try:
            return sorted(filter(is_safe_name, os.listdir(self.path)))
        except FileNotFoundError:
            return []

    def close(self) -> None:
        """Remove the directory if it is empty."""
        try:
            self.path.rmdir()
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTEMPTY):
                raise


def _is_others_directory(path: Path) -> bool:
    try:
        found = path.lstat()
    except FileNotFoundError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid != os.geteuid()


def load_json(path: Path, kind: type[_T]) -> _T | None:
    """Return the file's JSON decoded as `kind`; None if it is missing or damaged."""
    try:
        return from_json(path.read_bytes(), kind)
    except (FileNotFoundError, IsADirectoryError, msgspec.MsgspecError):
        return None


@contextlib.contextmanager
def disk_errors(path: Path, *, writing: bool = False) -> Iterator[None]:
    """Raise Transient instead of OSError, which the daemon would treat as a bug.

    The message names `path`. With `writing`, a full file system raises
    InsufficientCapacity, so that the job is placed elsewhere.
    """
    try:
        yield
    except OSError as error:
        if writing and error.errno in NO_ROOM:
            raise InsufficientCapacity(
                f"{path}: {error.strerror}", "free space on that file system"
            ) from error
        raise Transient(
            f"{error.filename or path}: {error.strerror or error}",
            f"check the file system of {path}",
        ) from error
