# SPDX-License-Identifier: MIT
"""`burst setup`: writes files where Flux looks, and removes exactly those it wrote.

`burst-setup.json` lists each file that was written, with its digest. A file that is not
on the list, or was changed since, is not overwritten and not removed. The list has the
files before they are written, so that an interrupted setup can be repeated or undone.
"""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Collection, Mapping
from pathlib import Path

import msgspec

from burst.decode import from_json
from burst.errors import ConfigError
from burst.kits.atomic_file import advice_on, write_atomically
from burst.kits.path_rights import make_open_directory

LIST = "burst-setup.json"


class Change(enum.Enum):
    """What happens to one file."""

    WRITE = "write"
    UPDATE = "update"
    SAME = "unchanged"
    REMOVE = "remove"
    KEEP = "keep"
    """The file stays, as it was edited after it was written."""


class FileStep(msgspec.Struct, frozen=True):
    """What happens, or would happen, to one file."""

    change: Change
    path: Path


class _Installed(msgspec.Struct, omit_defaults=True):
    files: dict[str, str] = {}
    """The digest of what was written, by path."""
    begun: dict[str, str] = {}
    """The digest of what is written next, by path; empty once all files are."""
    directories: list[str] = []
    """The directories that were made, outermost first."""


def plan_files(own: Path, wanted: Mapping[Path, str]) -> list[FileStep]:
    """Return the steps that install exactly the files in `wanted`; `{}` removes all.

    `own` is the directory of the list. Raises ConfigError if a wanted path has a file
    that we did not write, or that was edited since.
    """
    known = _read(own / LIST).files
    steps = []
    for path, text in sorted(wanted.items()):
        found = _digest_of(path)
        if found is None:
            change = Change.WRITE
        elif found == _digest(text):
            change = Change.SAME
        elif found == known.get(str(path)):
            change = Change.UPDATE
        else:
            raise ConfigError(
                f"{path}: exists and is not what `burst setup` wrote",
                "move it away, or choose another place with --dir",
            )
        steps.append(FileStep(change, path))
    for path in sorted(Path(name) for name in known if Path(name) not in wanted):
        found = _digest_of(path)
        if found is not None:
            ours = found == known[str(path)]
            steps.append(FileStep(Change.REMOVE if ours else Change.KEEP, path))
    return steps


def files_of_lead(own: Path, of_setup: Collection[Path]) -> dict[Path, str]:
    """Return the listed files that `burst lead init` added, with what is in them.

    They start the daemon, or are for flux-security, and are where `burst setup` has
    none in any mode. Raises ConfigError.
    """
    places = (own, own / "rc1.d", own / "security")
    return {
        path: path.read_text()
        for path in map(Path, _read(own / LIST).files)
        if path.parent in places
        and path not in of_setup
        and _digest_of(path) is not None
    }


def apply_files(
    own: Path, wanted: Mapping[Path, str], *, for_all: bool = False
) -> list[FileStep]:
    """Do the steps that `plan_files` returns, and return them. Raises ConfigError.

    With `for_all`, all users, such as that of the brokers, can read the files that are
    written and enter the directories that are made, whatever the umask is.
    """
    steps = plan_files(own, wanted)
    known = _read(own / LIST)
    # Not SAME: a file that had this content before is not ours to remove.
    known.begun = {
        str(step.path): _digest(wanted[step.path])
        for step in steps
        if step.change in {Change.WRITE, Change.UPDATE}
    }
    try:
        if known.begun:
            for directory in (own, *(Path(name).parent for name in known.begun)):
                known.directories += _make_directory(directory, for_all)
            _write_list(own, known, for_all)
        # What Flux reads names the programs, which have to be there: a running Flux
        # refuses all jobs if a frobnicator in its list is missing.
        for path in sorted(map(Path, known.begun), key=_is_read_by_flux):
            _write(path, wanted[path], for_all)
        gone = [each.path for each in steps if each.change is Change.REMOVE]
        for path in sorted(gone, key=_is_read_by_flux, reverse=True):
            path.unlink()
        files = {**known.files, **known.begun}
        known.files = {k: v for k, v in files.items() if Path(k) in wanted}
        known.begun = {}
        if wanted:
            known.directories += _make_directory(own, for_all)
            _write_list(own, known, for_all)
        else:
            _remove_list(own, known.directories)
    except OSError as error:
        advice = "run it as a user who may write there, or choose --user or --dir"
        raise ConfigError(
            f"{error.filename}: cannot be changed: {error.strerror}",
            advice_on(error, advice),
        ) from error
    return steps


def _is_read_by_flux(path: Path) -> bool:
    """Tell whether a file is configuration, in which programs are named."""
    return path.suffix == ".toml"


def _write_list(own: Path, known: _Installed, for_all: bool) -> None:
    _write(own / LIST, msgspec.json.encode(known).decode() + "\n", for_all)


def _write(path: Path, text: str, for_all: bool) -> None:
    write_atomically(path, text, mode=0o644 if for_all else None)


def _remove_list(own: Path, directories: list[str]) -> None:
    (own / LIST).unlink(missing_ok=True)
    for directory in map(Path, reversed(directories)):
        if directory.is_dir() and not any(directory.iterdir()):
            directory.rmdir()


def _make_directory(directory: Path, for_all: bool) -> list[str]:
    """Make a directory with its parents; return the paths that did not exist."""
    if for_all:
        return [str(path) for path in make_open_directory(directory)]
    missing = [path for path in (directory, *directory.parents) if not path.exists()]
    directory.mkdir(parents=True, exist_ok=True)
    return [str(path) for path in reversed(missing)]


def _read(path: Path) -> _Installed:
    """Return the list, also after a setup that was interrupted.

    A file that it was to replace then has the digest of the old or of the new content.
    """
    try:
        known = from_json(path.read_bytes(), _Installed)
    except FileNotFoundError:
        return _Installed()
    except (OSError, msgspec.MsgspecError) as error:
        raise ConfigError(
            f"{path}: the list of installed files cannot be read: {error}",
            "restore it, or remove the files by hand",
        ) from error
    for name, begun in known.begun.items():
        if name not in known.files or _digest_of(Path(name)) == begun:
            known.files[name] = begun
    return msgspec.structs.replace(known, begun={})


def _digest_of(path: Path) -> str | None:
    try:
        return _digest(path.read_text())
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from error


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
