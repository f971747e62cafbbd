# SPDX-License-Identifier: MIT
"""The user data of a follower's VM, for cloud-init.

It writes two units of systemd. One fetches the follower's files, runs the follower, and
powers the VM off when the follower ends by itself; a reboot starts it again. The other
powers the VM off after the lease's end, whatever else happened. The only secret in the
user data is a token that is accepted once, for which the VM gets its files.
"""

from __future__ import annotations

import base64
import gzip
import json
import math
import re
from collections.abc import Mapping
from pathlib import Path

from burst.errors import Refused
from burst.provider import BurstSpec
from burst_vm.settings import VmSettings

HOME = "/var/lib/burst"
"""The VM's directory of the follower's files."""
LONGEST = 16 * 1024
"""Largest size of user data in bytes, the limit of EC2."""
_HERE = Path(__file__).parent
_MARK = re.compile(r"\{\{(\w+)\}\}")
_PYTHON = "/usr/bin/python3"
# From the lease's end the follower has 30 seconds to leave in order.
_GRACE_S = 60
_FOLLOWER = """\
[Unit]
Description=Flux follower {host} of {burst}
Wants=network-online.target
After=network-online.target munge.service
[Service]
User={user}
ExecStartPre=+{python} {home}/fetch.py {home}/handover.json
ExecStart=/bin/sh {home}/start {host}
KillMode=mixed
TimeoutStartSec=infinity
TimeoutStopSec=90
ExecStopPost=+/bin/sh -c '[ "$$(systemctl is-system-running)" = stopping ] || \
systemctl --no-block poweroff'
[Install]
WantedBy=multi-user.target
"""
# By default systemd stops restarting a unit that ended five times in ten seconds. This
# one does so if the machine cannot be powered off at once.
_END = """\
[Unit]
Description=Powers this machine off after the end of {burst}
StartLimitIntervalSec=0
[Service]
ExecStart=/bin/sh -c 'while [ "$$(date +%%s)" -lt {end} ]; do sleep 5; done; \
systemctl --no-block poweroff'
Restart=always
RestartSec=5
[Install]
WantedBy=multi-user.target
"""


def user_data(
    settings: VmSettings, spec: BurstSpec, host: str, handover: Mapping[str, object]
) -> str:
    """Return the user data of a follower's VM. `handover` is given to `fetch.py`.

    Raises Refused for a template that cannot be used.
    """
    words = {
        "host": host,
        "burst": spec.burst_id,
        "user": settings.user,
        "home": HOME,
        "python": _PYTHON,
        "end": math.ceil(spec.lease_end) + _GRACE_S,
    }
    # Without an end of the lease there is nothing to wait for.
    end = _END if spec.lease_end else "[Service]\nExecStart=/bin/true\n"
    entries = {
        "fetch": _entry(f"{HOME}/fetch.py", (_HERE / "fetch.py").read_text()),
        "handover": _entry(
            f"{HOME}/handover.json", json.dumps({**handover, "home": HOME})
        ),
        "follower_unit": _entry(
            "/etc/systemd/system/burst-follower.service", _FOLLOWER.format(**words)
        ),
        "end_unit": _entry(
            "/etc/systemd/system/burst-end.service", end.format(**words)
        ),
    }
    text = _MARK.sub(lambda mark: entries[mark[1]], template(settings))
    if len(text.encode()) > LONGEST:
        raise Refused(
            f"the user data has more than {LONGEST} bytes", "shorten the template"
        )
    return text


def template(settings: VmSettings) -> str:
    """Return the template. Raises Refused if it cannot be read or has wrong marks."""
    path = Path(settings.user_data or _HERE / "user-data.yaml")
    try:
        text = path.read_text()
    except (OSError, ValueError) as error:
        raise Refused(f"user_data: {path}: {error}", "name a template") from error
    wanted = {"fetch", "handover", "follower_unit", "end_unit"}
    if set(_MARK.findall(text)) != wanted:
        marks = ", ".join(f"{{{{{name}}}}}" for name in sorted(wanted))
        raise Refused(f"user_data: {path}: must have the marks {marks}, and no others")
    return text


def _entry(path: str, content: str) -> str:
    """Return an entry of write_files: JSON is YAML, and needs no indentation.

    Compressed, as Libcloud sends the user data to EC2 in a URL.
    """
    packed = base64.b64encode(gzip.compress(content.encode(), mtime=0)).decode()
    entry = {"path": path, "permissions": "0600", "encoding": "gz+b64"}
    return json.dumps({**entry, "content": packed})
