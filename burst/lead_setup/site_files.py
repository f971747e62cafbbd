# SPDX-License-Identifier: MIT
"""Changes files of a site, and records how they were.

A copy of each file is kept as `FILE.old`. Once `burst lead adopt` has begun, the record
`burst-adopt.json` beside the configuration lists each file before it is changed or
written, for `burst lead unadopt`. Flux does not read it: it reads `*.toml` only.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from burst.decode import from_json
from burst.errors import ConfigError
from burst.kits.atomic_file import advice_on, write_atomically
from burst.kits.path_rights import first_changeable

RECORD = "burst-adopt.json"


class ChangedFile(msgspec.Struct):
    """A file of the site that was changed, once or more often."""

    before: str
    """Digest of its content before the first change."""
    copies: list[str] = []
    """Paths of its copies; the first is the file as it was before the first change."""
    after: list[str] = []
    """Digests of the contents that were written into it and have no other change."""


class AdoptionRecord(msgspec.Struct):
    """What `burst lead adopt`, and `add-slot` after it, did to an instance."""

    hosts: list[str] = []
    """A hostlist for each rank slot that was added, by adopt or later."""
    changed: dict[str, ChangedFile] = {}
    """The changed files by path."""
    written: dict[str, str] = {}
    """The digest of each file that did not exist before, by path."""
    earlier: list[str] = []
    """Digests of what these files had before they were written again."""
    uri: str = ""
    """URI of the instance."""


def digest(content: bytes) -> str:
    """Return the digest by which a record knows a content."""
    return hashlib.sha256(content).hexdigest()


def record_path(place: Path) -> Path:
    """Return the path of the record of a configuration, a directory or a file."""
    return place / RECORD if place.is_dir() else place.with_name(RECORD)


def read_record(place: Path) -> AdoptionRecord | None:
    """Return the record of the instance; None before adopt. Raises ConfigError."""
    path = record_path(place)
    try:
        return from_json(path.read_bytes(), AdoptionRecord)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError) as error:
        raise ConfigError(
            f"{path}: cannot be read: {error}",
            "restore it; or remove by hand what `burst lead adopt` added, as in"
            " docs/upgrade.md",
        ) from error


def _write_record(place: Path, record: AdoptionRecord) -> None:
    """Write the record of what was done or is done next. Raises ConfigError."""
    path = record_path(place)
    try:
        write_atomically(path, msgspec.json.encode(record).decode() + "\n")
    except OSError as error:
        raise ConfigError(
            f"{path}: cannot be written: {error.strerror}",
            advice_on(error, "run it as root"),
        ) from error


def replace_files(
    place: Path,
    texts: Mapping[Path, str],
    hosts: Iterable[str],
    written: Mapping[Path, str] | None = None,
    uri: str = "",
) -> list[Path]:
    """Rewrite files of the configuration at `place`, in this order, for these slots.

    `written` are files that the caller writes after this; with it, the instance counts
    as adopted. `uri` is that of the instance, empty to keep the one on record. The
    record of an adopted instance lists all changes before they are made. Returns the
    copy of each file. Raises ConfigError; then nothing was changed, unless a file can
    be read but not written.
    """
    record = read_record(place)
    if record is None and written is not None:
        record = AdoptionRecord()
    check_places([*texts, *([] if record is None else [record_path(place)])])
    kept: dict[Path, Path] = {}
    try:
        for path in texts:
            kept[path] = _keep(path)
        if record is not None:
            _note(record, texts, kept)
            record.uri = uri or record.uri
            record.hosts = list(dict.fromkeys([*record.hosts, *hosts]))
            new = {str(p): digest(text.encode()) for p, text in (written or {}).items()}
            record.earlier += [
                old for path, old in record.written.items() if new.get(path, old) != old
            ]
            record.written |= new
            _write_record(place, record)
    except ConfigError:
        for copy in kept.values():
            copy.unlink()
        raise
    for path, text in texts.items():
        rewrite(path, text)
    return list(kept.values())


def _note(
    record: AdoptionRecord, texts: Mapping[Path, str], kept: Mapping[Path, Path]
) -> None:
    """Note in the record which files are changed, to what, and their copies.

    A file that others changed since the last time keeps their change in its new
    content. So that content counts as changed by others: to restore the file would
    undo their change too.
    """
    for path, text in texts.items():
        found = digest(kept[path].read_bytes())
        entry = record.changed.setdefault(str(path), ChangedFile(found))
        entry.copies.append(str(kept[path]))
        if found in {entry.before, *entry.after}:
            entry.after.append(digest(text.encode()))


def check_places(paths: Iterable[Path]) -> None:
    """Raise ConfigError if root would write into a directory that others can change.

    They could put a link there at any moment, which leads to any file. Raises it also
    if that cannot be known.
    """
    if os.geteuid():
        return
    for path in paths:
        for directory in (path.parent, path.resolve().parent):
            try:
                part = first_changeable(directory.absolute(), 0)
            except OSError as error:
                raise ConfigError(
                    f"{path}: cannot be examined: {error.strerror}",
                    "name another place",
                ) from error
            if part:
                raise ConfigError(
                    f"{path}: users other than root can change {part}, so they could"
                    " make root write any file",
                    f"run this as the user who owns {part}; or give it to root: chown"
                    f" root {shlex.quote(part)} && chmod go-w {shlex.quote(part)}",
                )


def rewrite(path: Path, content: str | bytes) -> None:
    """Write a file, but do not change who may read it. Raises ConfigError.

    The broker reads it as its own user, whatever the umask of this process is.
    """
    target = path.resolve()
    try:
        write_atomically(target, content, like=target.stat())
    except OSError as error:
        raise ConfigError(
            f"{path}: cannot be written: {error.strerror}",
            f"{advice_on(error, 'run it as root')}; {path.name}.old and others of that"
            " name are the copies",
        ) from error


def _keep(path: Path) -> Path:
    """Copy a file before it is changed, and return the copy. Raises ConfigError.

    The copy has its name with `.old`, or `.old.2` and so on: an earlier copy stays.
    """
    numbers = itertools.count(2)
    copy = path.with_name(f"{path.name}.old")
    try:
        content, like = path.read_bytes(), path.stat()
        while True:
            # In a directory of another user, a link may have that name and lead
            # elsewhere, so a path that exists is never written to.
            with contextlib.suppress(FileExistsError):
                write_atomically(copy, content, replace=False, like=like)
                return copy
            copy = path.with_name(f"{path.name}.old.{next(numbers)}")
    except OSError as error:
        other = "run it as a user who may read the one and write the other"
        raise ConfigError(
            f"{path} cannot be kept as {copy.name}: {error.strerror}",
            f"nothing was changed; {advice_on(error, other)}",
        ) from error
