# SPDX-License-Identifier: MIT
"""flux-security's configuration for a system instance, and what root has to do for it.

Only root may write it: the IMP refuses files that others own or can change. So it is
written into the lead's directory first, and root installs it from there.

Sources: flux-config-security-imp(5), flux-config-security-sign(5).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import tomli_w

from burst.kits.flux_security import imp_tables, sign_tables
from burst.lead_setup.flux_install import FluxInstall

_SIGN = """\
# SPDX-License-Identifier: MIT
# How users sign their jobs, and whose signatures are accepted. A job that waited longer
# than max-ttl, in seconds, does not start. Never allow "none": with it, each user could
# submit jobs as any other.
"""
_IMP = """\
# SPDX-License-Identifier: MIT
# Who may have the IMP start processes of other users, and which program.
"""


class SecurityPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What flux-security still needs on this host."""

    wanted: Mapping[Path, str] = {}
    """Files to install, by the path where flux-security reads them."""
    kept: tuple[str, ...] = ()
    """Files that already say what is needed."""
    by_hand: tuple[str, ...] = ()
    """Changes to existing files that a person has to make, as they are the site's."""


def plan_security(
    install: FluxInstall,
    user: str,
    sign: Mapping[str, Mapping[str, Any]],
    imp: Mapping[str, Mapping[str, Any]],
) -> SecurityPlan:
    """Return what to install so that `user` can run other users' jobs.

    `sign` and `imp` are the tables of the existing files, by their paths.
    """
    wanted: dict[Path, str] = {}
    kept, by_hand = [], []
    signs = _with_table(sign, "sign")
    lacking = wrong_in_sign(sign[signs]["sign"]) if signs else ()
    if not signs:
        target = _unused(install.sign_config / "security.toml", sign)
        wanted[target] = _SIGN + tomli_w.dumps(sign_tables())
    elif lacking:
        by_hand += [f"{signs}: {line}" for line in lacking]
    else:
        kept.append(signs)
    runs = _with_table(imp, "exec")
    lacking = missing_in_imp(imp[runs]["exec"], user, install.shell) if runs else ()
    if not runs:
        text = _IMP + tomli_w.dumps(imp_tables(user, install.shell))
        wanted[_unused(install.imp_config / "imp.toml", imp)] = text
    elif lacking:
        by_hand += [f"{runs}: {line}" for line in lacking]
    else:
        kept.append(runs)
    return SecurityPlan(wanted=wanted, kept=tuple(kept), by_hand=tuple(by_hand))


def wrong_in_sign(table: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what has to be changed in `[sign]` so that users can sign their jobs."""
    lines = []
    allowed = _listed(table, "allowed-types")
    if "none" in allowed:
        lines.append(
            'remove "none" from allowed-types under [sign]: with it, each user can'
            " submit jobs as any other"
        )
    if not {"munge", "curve"} & {*allowed}:
        lines.append('add "munge" to allowed-types under [sign]')
    default = table.get("default-type")
    if default not in {"munge", "curve"}:
        lines.append('set default-type = "munge" under [sign]')
    elif allowed and default not in allowed:
        lines.append(
            "set default-type under [sign] to one of allowed-types: jobs are signed by"
            f" {default}, which is not accepted"
        )
    if "curve" in {default, *allowed} and "curve" not in table:
        lines.append("add the table [sign.curve] with require-ca")
    ttl = table.get("max-ttl")
    if type(ttl) is not int or ttl <= 0:
        lines.append("set max-ttl under [sign] to seconds, such as 1209600")
    return tuple(lines)


def missing_in_imp(table: Mapping[str, Any], user: str, shell: str) -> tuple[str, ...]:
    """Return what to add to `[exec]` of the IMP so that `user` may use it.

    `shell` is the job shell.
    """
    wanted = {"allowed-users": user, "allowed-shells": shell}
    return tuple(
        f'add "{value}" to {key} under [exec]'
        for key, value in wanted.items()
        if value not in _listed(table, key)
    )


def effective_table(
    files: Mapping[str, Mapping[str, Any]], name: str
) -> Mapping[str, Any]:
    """Return the table that flux-security uses; empty if no file has one."""
    path = _with_table(files, name)
    return files[path][name] if path else {}


def _with_table(files: Mapping[str, Mapping[str, Any]], name: str) -> str:
    """Return the path of the file whose table of this name counts; empty if none has.

    The table of the last file counts as a whole: unlike flux-core, flux-security does
    not merge tables (`cf_update_glob` in src/libutil/cf.c, flux-security 0.15).
    """
    return max((path for path, tables in files.items() if name in tables), default="")


def _listed(table: Mapping[str, Any], key: str) -> tuple[Any, ...]:
    """Return the values of an array; empty for anything else, as in flux-security."""
    found = table.get(key)
    return tuple(found) if isinstance(found, list) else ()


def _unused(target: Path, files: Mapping[str, Any]) -> Path:
    """Return where to install a file: not where the site has one already."""
    taken = str(target) in files
    return target.with_name(f"burst-{target.name}") if taken else target
