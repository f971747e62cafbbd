# SPDX-License-Identifier: MIT
"""Reads what other users' jobs need on the lead's host. It changes nothing."""

from __future__ import annotations

import os
import shutil
import socket
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from burst.doctor.calls import try_call
from burst.doctor.collect_installed import read_installed
from burst.doctor.facts import FileFacts, MultiUserFacts, ReadFailure
from burst.errors import LeadError
from burst.flux.handle import Handle
from burst.flux.rpc import RpcClient, find_attribute, read_attribute
from burst.kits.path_rights import first_changeable, first_closed
from burst.kits.program import run
from burst.kits.user_names import user_name
from burst.lead import PING_S, Lead
from burst.lead_setup.flux_install import (
    builtin,
    find_flux,
    read_tables,
    security_directory,
)
from burst.lead_setup.security_files import effective_table

_PATHS = "import sys, _flux, flux; print(sys.executable, _flux.__file__, flux.__file__)"


def is_multi_user(config: Mapping[str, Any]) -> bool:
    """Tell whether users other than the owner may submit, flux-config-access(5)."""
    return bool(config.get("access", {}).get("allow-guest-user"))


def read_multi_user(
    uri: str, config: Mapping[str, Any], lead: Lead, settings: str
) -> MultiUserFacts | ReadFailure:
    """Read the facts about the lead at this URI, whose configuration is `config`.

    `settings` is the path of burst.toml, or empty.
    """
    asked = try_call(lambda: _ask_broker(uri))
    if isinstance(asked, ReadFailure):
        return asked
    owner, rundir, place = asked
    imp = str(config.get("exec", {}).get("imp", ""))
    security = try_call(lambda: _security(imp))
    sign = try_call(lambda: _table(security, "security", "sign"))
    files = () if isinstance(security, ReadFailure) else _security_files(security)
    certificate = str(config.get("bootstrap", {}).get("curve_cert", ""))
    return MultiUserFacts(
        owner=owner,
        user=user_name(owner),
        imp=try_call(lambda: read_file(imp)) if imp else None,
        shell=try_call(lambda: _shell(config)),
        exec_table=try_call(lambda: _imp_table(security)),
        sign_table=sign,
        security_files=tuple(files),
        munge=try_call(lambda: _try_munge(sign)),
        certificate=try_call(lambda: read_file(certificate)),
        rundir=rundir,
        rundir_closed=first_closed(Path(rundir)),
        python=try_call(_python),
        trusted=try_call(lambda: _trusted(config, (place, settings), owner)),
        daemon=_daemon_uid(lead),
    )


def _ask_broker(uri: str) -> tuple[int, str, str]:
    """Return the owner's UID, the socket's directory and the configuration's path.

    The path is empty if the instance has no configuration.
    """
    with closing(Handle(uri)) as handle:
        client = RpcClient(handle)
        path = read_attribute(client, "local-uri").removeprefix("local://")
        owner = int(read_attribute(client, "security.owner"))
        return owner, str(Path(path).parent), find_attribute(client, "config.path")


def _trusted(
    config: Mapping[str, Any], places: Sequence[str], owner: int
) -> dict[str, str]:
    """Return files that decide what runs as the owner, and what others can change.

    `places` are paths of the lead's configuration and of the settings. The daemon is
    assumed to run with this Python. Raises LeadError.
    """
    table = config.get("ingest", {}).get("frobnicator", {})
    plugins = [Path(name) for name in table.get("plugins", ()) if "/" in str(name)]
    resources = str(config.get("resource", {}).get("path", ""))
    command = read_installed(os.environ).plugin
    paths = [Path(sys.executable), *_modules(Path(__file__).parents[1]), *plugins]
    for plugin in plugins:  # beside the frobnicator is our scheduler, which Flux loads
        paths += plugin.parent.glob("sched-burst*.py")
    for name in (*places, resources, command):
        if name:
            path = Path(name).absolute()
            paths += [path, *(path.glob("*.toml") if path.is_dir() else ())]
    try:
        return {str(path): first_changeable(path, owner) for path in paths}
    except OSError as error:
        raise LeadError(
            f"{error.filename}: cannot be looked at: {error.strerror}",
            "have the owner of the instance check it, who has to trust it",
        ) from error


def _modules(package: Path) -> Iterator[Path]:
    """Return the Python files of a package; caches, which may vanish, are left out."""
    for directory, _, names in os.walk(package):
        yield from (Path(directory, name) for name in names if name.endswith(".py"))


def read_file(path: str) -> FileFacts:
    """Return a file's owner and mode. Raises LeadError."""
    try:
        found = os.stat(path)
        nosuid = bool(os.statvfs(path).f_flag & os.ST_NOSUID)
    except OSError as error:
        raise LeadError(f"{path}: cannot be looked at: {error.strerror}") from error
    return FileFacts(
        path=path, uid=found.st_uid, mode=stat.S_IMODE(found.st_mode), nosuid=nosuid
    )


def _security(imp: str) -> Path:
    """Return the directory of flux-security's files. Raises ConfigError."""
    found = security_directory(Path(imp)) if imp else None
    return found or Path(builtin(find_flux(), "confdir"))


def _table(security: Path | ReadFailure, kind: str, name: str) -> Mapping[str, Any]:
    """Return a table of flux-security's configuration; empty if there is none."""
    if isinstance(security, ReadFailure):
        raise LeadError(security.what, security.advice)
    return effective_table(read_tables(security / kind / "conf.d"), name)


def _imp_table(security: Path | ReadFailure) -> Mapping[str, Any] | None:
    """Return [exec] of the IMP's configuration; None if this user may not read it.

    The IMP reads it as root (imp.c), so a file of mode 0600 is right, too.
    """
    if isinstance(security, Path):
        directory = security / "imp" / "conf.d"
        if directory.is_dir() and not os.access(directory, os.R_OK | os.X_OK):
            return None
        if not all(os.access(path, os.R_OK) for path in directory.glob("*.toml")):
            return None
    return _table(security, "imp", "exec")


def _security_files(security: Path) -> Iterator[FileFacts]:
    for kind in ("imp", "security"):
        directory = security / kind / "conf.d"
        if directory.is_dir():
            for path in (directory, *sorted(directory.glob("*.toml"))):
                found = try_call(partial(read_file, str(path)))
                if isinstance(found, FileFacts):
                    yield found


def _shell(config: Mapping[str, Any]) -> str:
    own = config.get("exec", {}).get("job-shell")
    return str(own) if own else builtin(find_flux(), "shell_path")


def _try_munge(sign: Mapping[str, Any] | ReadFailure) -> str:
    """Make a credential and read it again, as signing a job does. Raises BurstError."""
    table = {} if isinstance(sign, ReadFailure) else sign.get("munge", {})
    path = table.get("socket-path")
    socket_option = ["-S", str(path)] if path else []
    if not shutil.which("munge"):
        raise LeadError(
            "there is no munge on PATH", "install munge, which signs users' jobs"
        )
    credential = run(["munge", "-n", *socket_option])
    said = run(["unmunge", *socket_option, "-k", "UID"], given=credential)
    return " ".join(said.split()[1:2])


def _python() -> dict[str, str]:
    paths = run([find_flux(), "python", "-c", _PATHS]).split()
    return {path: first_closed(Path(path)) for path in paths}


def _daemon_uid(lead: Lead) -> int | None:
    holder = try_call(lambda: lead.call("ping", {}, PING_S))
    if isinstance(holder, ReadFailure) or holder.get("host") != socket.gethostname():
        return None
    found = try_call(lambda: read_file(f"/proc/{holder['pid']}"))
    return None if isinstance(found, ReadFailure) else found.uid
