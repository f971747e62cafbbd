# SPDX-License-Identifier: MIT
"""Lets root ask an instance as its owner.

Without `[access] allow-root-owner`, root is a guest of an instance, although it may
change the instance's files. As root can become any user, it asks as the owner: a broker
knows who asks by the effective user id with which the connection is made (SO_PEERCRED,
unix(7)).
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
    """Within this context, root acts as the owner of the instance at this URI.

    The instance is on this host; an empty URI means FLUX_URI or the system instance.
    Nothing changes for another user, or if there is no such instance. Write no file
    within the context.
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
    """Return the user id that owns a broker's socket, 0 if there is no such socket."""
    parts = urlsplit(uri)
    if parts.scheme not in ("", "local"):
        return 0
    try:
        return (Path(parts.path) if uri else _system_socket()).stat().st_uid
    except OSError:
        return 0


def _system_socket() -> Path:
    """Return the socket to which flux_open(3) connects without a URI."""
    core = import_core()
    rundir = core.lib.flux_conf_builtin_get(b"rundir", 0)
    return Path(core.ffi.string(rundir).decode(), "local")
