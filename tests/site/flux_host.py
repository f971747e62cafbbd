# SPDX-License-Identifier: MIT
"""What a site has on each host before Flux is configured: users, munge, the IMP.

As the administrator's guide of Flux has it, "Configuring flux-security" and "Adding
Prolog/Epilog/Housekeeping Scripts".
"""

from __future__ import annotations

import shlex
from pathlib import Path

import tomli_w

from tests.multiuser.lab import GUESTS, OWNER, UIDS, flux_etc, flux_prefix, imp_path
from tests.site.box import Box

UNIT = "flux.service"
ETC = Path("/etc/flux")
"""Where a packaged Flux has its configuration; a link, where this one has another."""
CONFIG = ETC / "system/conf.d"
SCRIPTS_LOG = "/run/site-scripts"
"""Prolog, epilog and housekeeping of each host add a line to it for each job."""

_WRAPPED = ("prolog", "epilog", "housekeeping")
_USERS = (OWNER, *GUESTS)
_SCRIPT = f"""\
#!/bin/sh
echo "{{name}} $FLUX_JOB_ID $FLUX_JOB_USERID" >> {SCRIPTS_LOG}
"""
_PATIENT = """\
[Service]
TimeoutStartSec=10min
TimeoutStopSec=10min
"""


def unit_path() -> Path:
    """Return where the installation of this Flux has put its unit."""
    prefix = flux_prefix()
    places = ("lib/systemd/system", "usr/lib/systemd/system", "share/systemd/system")
    found = [prefix / place / UNIT for place in places]
    found += [Path(each) / UNIT for each in ("/lib/systemd/system",)]
    return next((path for path in found if path.exists()), found[0])


def missing() -> str:
    """Return what the Flux on PATH lacks to be a site's, empty if it has all."""
    if not unit_path().exists():
        return f"{UNIT} of the Flux on PATH (configure --with-systemdsystemunitdir)"
    if not imp_path().exists():
        return "a Flux built with flux-security (flux-imp)"
    return ""


def prepare(box: Box, munge_key: str, certificate: str) -> None:
    """Make a box a host of a site on which Flux is installed."""
    etc, imp = flux_etc(), imp_path()
    key = f"{box.shared}/munge.key"
    Path(key).write_text(munge_key)
    lines = ["set -e", "umask 022", *_make_users()]
    lines += [
        f"install -o munge -g munge -m 400 {key} /etc/munge/munge.key; rm {key}",
        "chown munge:munge /etc/munge",
        "systemctl start munge",
        f"install -m 4755 -o root -g root {imp} /run/imp; cp -a /run/imp {imp}",
        f"rm -rf {etc}/security/conf.d {etc}/imp {etc}/system",
        f"mkdir -p {etc}/security/conf.d {etc}/imp/conf.d {etc}/system/conf.d",
    ]
    if not Path("/usr/bin/flux").exists():
        # What the IMP starts as root has few directories in its PATH.
        lines.append(f"ln -s {flux_prefix()}/bin/flux /usr/bin/flux")
    if etc != ETC:
        lines.append(f"rm -rf {ETC}; ln -s {etc} {ETC}")
    if str(unit_path().parent) not in (
        "/usr/local/lib/systemd/system",
        "/lib/systemd/system",
    ):
        lines.append(f"ln -sf {unit_path().parent}/* /etc/systemd/system/")
    box.run("root", "sh", "-c", "\n".join(lines))
    sign = {"max-ttl": 1209600, "default-type": "munge", "allowed-types": ["munge"]}
    box.write(ETC / "security/conf.d/sign.toml", tomli_w.dumps({"sign": sign}))
    box.write(ETC / "imp/conf.d/imp.toml", tomli_w.dumps(_imp_tables()))
    for name in _WRAPPED:
        path = ETC / f"system/{name}.d/site"
        box.write(path, _SCRIPT.format(name=name), mode="755")
    box.write(ETC / "system/curve.cert", certificate, mode="600")
    box.run("root", "chown", OWNER, f"{ETC}/system/curve.cert")
    # The machine may be busy.
    box.write(f"/etc/systemd/system/{UNIT}.d/test.conf", _PATIENT)
    box.run("root", "systemctl", "daemon-reload")


def _make_users() -> list[str]:
    lines = []
    for user in _USERS:
        number, home = UIDS[user], f"/home/{user}"
        entry = shlex.quote(f"{user}:x:{number}:{number}:{user}:{home}:/bin/bash")
        lines += [
            # Another user or group of that name, such as a package's, goes first.
            f"sed -i '/^{user}:/d' /etc/passwd /etc/group /etc/shadow",
            f"echo {entry} >> /etc/passwd; echo '{user}:x:{number}:' >> /etc/group",
            # PAM lets nobody in who has no line here.
            f"echo '{user}:*:20000::::::' >> /etc/shadow",
            f"install -d -m 0700 -o {number} -g {number} {home}",
        ]
    return lines


def _imp_tables() -> dict[str, object]:
    shell = flux_prefix() / "libexec/flux/flux-shell"
    commands = imp_path().parent / "cmd"
    owner = [OWNER]
    return {
        "exec": {"allowed-users": owner, "allowed-shells": [str(shell)]},
        "run": {
            name: {
                "allowed-users": owner,
                "allowed-environment": ["FLUX_*"],
                "path": str(commands / f"flux-run-{name}"),
            }
            for name in _WRAPPED
        },
    }
