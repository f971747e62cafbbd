# SPDX-License-Identifier: MIT
"""Lets root ask an instance as its owner.

Root is a guest of an instance without `[access] allow-root-owner`, whose files it
changes all the same. It may become the owner in any way, so it asks as that user: a
broker knows who asks by the effective user id with which the connection is made
(SO_PEERCRED, unix(7)).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from burst.flux.bindings import import_core


@contextmanager
def owner_rights(uri: str) -> Iterator[None]:
    """For this time, make root the owner of the instance at this URI, on this host.

    Empty for FLUX_URI or the system instance. Nothing changes for another user, and
    where there is no such instance. No file may be written meanwhile.
    """
    owner = 0 if os.geteuid() else _owner(uri or os.environ.get("FLUX_URI", ""))
    if owner:
        os.seteuid(owner)
    try:
        yield
    finally:
        if owner:
            os.seteuid(0)


def _owner(uri: str) -> int:
    """Return whose the socket of a broker is, 0 if it is not there."""
    parts = urlsplit(uri)
    if parts.scheme not in ("", "local"):
        return 0
    try:
        return (Path(parts.path) if uri else _system_socket()).stat().st_uid
    except OSError:
        return 0


def _system_socket() -> Path:
    """Return what flux_open(3) connects to without a URI."""
    core = import_core()
    rundir = core.lib.flux_conf_builtin_get(b"rundir", 0)
    return Path(core.ffi.string(rundir).decode(), "local")
