# SPDX-License-Identifier: MIT
"""Debian's cloud-init, in a box alone: on the machine itself it would run at its boot.

Its files are unpacked, and its stages run in their order (boot stages of its manual).
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from tests.site.box import Box

_SEED = "/var/lib/cloud/seed/nocloud"
# Of Debian 12: cloud-init, and what a machine may lack of what it imports.
_PACKAGES = (
    "cloud-init",
    *("python3-configobj", "python3-jinja2", "python3-markupsafe", "python3-six"),
    *("python3-jsonpatch", "python3-json-pointer", "python3-jsonschema"),
    *("python3-pyrsistent", "python3-attr", "python3-oauthlib", "python3-yaml"),
    *("python3-requests", "python3-urllib3", "python3-idna", "python3-chardet"),
    *("python3-certifi", "python3-netifaces", "python3-serial"),
)
# What a VM's image has set up, such as host keys and locales, is not what is tried.
_CONFIG = """\
datasource_list: [NoCloud]
cloud_init_modules: [write-files]
cloud_config_modules: [runcmd]
cloud_final_modules: [scripts-user]
"""
_STAGES = (
    ("init", "--local"),
    ("init",),
    ("modules", "--mode=config"),
    ("modules", "--mode=final"),
)
_UNPACK = "dpkg-deb --fsys-tarfile {} | tar -x --keep-directory-symlink -C /"


def fetch() -> Path:
    """Return a new directory with the packages. Raises OSError if there are none."""
    place = Path(tempfile.mkdtemp(prefix="cloud-init-"))
    command = ["apt-get", "-q", "-o", "APT::Sandbox::User=root", "download"]
    got = subprocess.run(
        [*command, *_PACKAGES], cwd=place, capture_output=True, text=True, check=False
    )
    if got.returncode:
        shutil.rmtree(place)
        raise OSError(got.stderr.strip() or "apt-get download failed")
    return place


def boot(box: Box, packages: Path, user_data: str) -> None:
    """Have cloud-init do in a box what it does at the first boot of a VM."""
    for package in sorted(packages.glob("*.deb")):
        there = box.shared / package.name
        shutil.copy(package, there)
        box.run("root", "sh", "-c", _UNPACK.format(there))
    box.write("/etc/cloud/cloud.cfg", _CONFIG)
    box.write(f"{_SEED}/meta-data", f"instance-id: {box.name}\n")
    box.write(f"{_SEED}/user-data", user_data)
    for stage in _STAGES:
        box.run("root", "/usr/bin/cloud-init", *stage)
