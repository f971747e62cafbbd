# SPDX-License-Identifier: MIT
"""`burst setup`: puts files where Flux looks, and takes out exactly what it put in.

What was put where is listed, with a digest of each file, in `burst-setup.json` beside
them. A file that is not on that list, or was changed since, is somebody else's.
"""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from burst.errors import ConfigError
from burst.kits.atomic_file import write_atomically

LIST = "burst-setup.json"


class Change(enum.Enum):
    """What becomes of one file."""

    WRITE = "write"
    UPDATE = "update"
    SAME = "unchanged"
    REMOVE = "remove"
    KEEP = "keep"
    """It was changed by somebody since we wrote it."""


class Step(msgspec.Struct, frozen=True):
    """What is done, or would be, to one file."""

    change: Change
    path: Path


class _List(msgspec.Struct):
    files: dict[str, str] = {}
    """Path to the digest of what we wrote there."""
    directories: list[str] = []
    """Those that we made, outermost first."""


def plan_install(own: Path, made: Mapping[Path, str]) -> list[Step]:
    """Return what installing these files would change.

    Files of an earlier setup that are not wanted any more go. Raises ConfigError where
    a file is there that is not ours.
    """
    known = _read(own / LIST)
    steps = []
    for path, text in sorted(made.items()):
        there = _digest_of(path)
        if there is None:
            change = Change.WRITE
        elif there == _digest(text):
            change = Change.SAME
        elif there == known.files.get(str(path)):
            change = Change.UPDATE
        else:
            raise ConfigError(
                f"{path}: is there already and is not what `burst setup` wrote",
                "move it away, or choose another place with --dir",
            )
        steps.append(Step(change, path))
    gone = [Path(name) for name in known.files if Path(name) not in made]
    return steps + _plan_removal(known, gone)


def install(own: Path, made: Mapping[Path, str]) -> list[Step]:
    """Put the files in place; return what was done. Raises ConfigError."""
    steps = plan_install(own, made)
    known = _read(own / LIST)
    try:
        for step in steps:
            if step.change in (Change.WRITE, Change.UPDATE):
                known.directories += _make_directory(step.path.parent)
                write_atomically(step.path, made[step.path])
            # What was there just so before us is not ours to remove.
            if step.change in (Change.WRITE, Change.UPDATE):
                known.files[str(step.path)] = _digest(made[step.path])
        _remove(known, steps)
        known.directories += _make_directory(own)
        write_atomically(own / LIST, msgspec.json.encode(known).decode() + "\n")
    except OSError as error:
        raise ConfigError(
            f"{error.filename}: cannot be written: {error.strerror}",
            "be who may write there, or choose --user or --dir",
        ) from error
    return steps


def plan_remove(own: Path) -> list[Step]:
    """Return what removing would change."""
    known = _read(own / LIST)
    return _plan_removal(known, map(Path, known.files))


def remove(own: Path) -> list[Step]:
    """Take out what was put in, as far as it is as it was; return what was done."""
    known = _read(own / LIST)
    steps = _plan_removal(known, map(Path, known.files))
    try:
        _remove(known, steps)
        (own / LIST).unlink(missing_ok=True)
        for name in reversed(known.directories):
            if Path(name).is_dir() and not any(Path(name).iterdir()):
                Path(name).rmdir()
    except OSError as error:
        raise ConfigError(
            f"{error.filename}: cannot be removed: {error.strerror}",
            "be who may write there",
        ) from error
    return steps


def _plan_removal(known: _List, paths: Iterable[Path]) -> list[Step]:
    steps = []
    for path in sorted(paths):
        there = _digest_of(path)
        if there == known.files[str(path)]:
            steps.append(Step(Change.REMOVE, path))
        elif there is not None:
            steps.append(Step(Change.KEEP, path))
    return steps


def _remove(known: _List, steps: Iterable[Step]) -> None:
    for step in steps:
        if step.change is Change.REMOVE:
            step.path.unlink()
        if step.change in (Change.REMOVE, Change.KEEP):
            del known.files[str(step.path)]


def _make_directory(directory: Path) -> list[str]:
    """Make it, and return what of the way to it was not there before."""
    missing = []
    while not directory.exists():
        missing.append(directory)
        directory = directory.parent
    for path in reversed(missing):
        path.mkdir()
    return [str(path) for path in reversed(missing)]


def _read(path: Path) -> _List:
    try:
        return msgspec.json.decode(path.read_bytes(), type=_List)
    except FileNotFoundError:
        return _List()
    except (OSError, msgspec.MsgspecError) as error:
        raise ConfigError(
            f"{path}: the list of what was put where cannot be read: {error}",
            "restore it, or remove the files by hand",
        ) from error


def _digest_of(path: Path) -> str | None:
    try:
        return _digest(path.read_text())
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from error


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
