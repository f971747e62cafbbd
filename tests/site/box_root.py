# SPDX-License-Identifier: MIT
"""The first thing that runs in a box: it makes the root, and becomes systemd.

Sources: unshare(1), pivot_root(8), "The Container Interface" of systemd.
"""

from __future__ import annotations

import secrets
import sys
from pathlib import Path

from tests.multiuser.lab import closed_ancestors, flux_prefix

SYSTEMD = Path("/lib/systemd/systemd")
REPOSITORY = Path(__file__).parents[2]
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

_DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "fuse")
# Of the machine, and none of a box's: its hardware, clock, network and packages.
_MASKED = (
    *("systemd-udevd.service", "systemd-udev-trigger.service", "getty.target"),
    *("systemd-udevd-kernel.socket", "systemd-udevd-control.socket"),
    *("console-getty.service", "systemd-networkd.service", "systemd-resolved.service"),
    *("systemd-timesyncd.service", "systemd-sysctl.service", "tmp.mount"),
    *("systemd-modules-load.service", "systemd-remount-fs.service"),
    *("apt-daily.timer", "apt-daily-upgrade.timer", "systemd-tmpfiles-clean.timer"),
    *("dev-hugepages.mount", "dev-mqueue.mount", "sys-kernel-debug.mount"),
    *("sys-kernel-tracing.mount", "sys-kernel-config.mount", "fstrim.timer"),
    *("sys-fs-fuse-connections.mount", "proc-sys-fs-binfmt_misc.automount"),
    *("e2scrub_all.timer", "man-db.timer", "dpkg-db-backup.timer"),
)


def init_script(name: str, directory: Path, shared: Path) -> str:
    """Return what the first process does before it is systemd."""
    root, masked = directory / "root", " ".join(_MASKED)
    lines = [
        *("set -e", "umask 022", f"hostname {name}"),
        f"mkdir -p {root} {directory}/layer",
        f"mount -t tmpfs -o size=4g,mode=755 box {directory}/layer",
        f"mkdir {directory}/layer/up {directory}/layer/work",
        f"mount -t overlay box -o lowerdir=/,upperdir={directory}/layer/up,"
        f"workdir={directory}/layer/work {root}",
        # systemd would empty it at boot, file by file of what the machine has there.
        f"mount -t tmpfs -o mode=1777 tmp {root}/tmp",
        *_mounted_places(root),
        f"mkdir -p {root}{shared}",
        f"mount --bind {shared} {root}{shared}",
        f"cd {root}",
        "mount -t proc proc proc",
        "mount -t sysfs sysfs sys",
        "mount -t tmpfs -o mode=755 dev dev",
        "mkdir dev/pts dev/shm",
        f"for each in {' '.join(_DEVICES)}; do [ -e /dev/$each ] || continue;"
        " : > dev/$each; mount --bind /dev/$each dev/$each; done",
        "mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts dev/pts",
        *("ln -s pts/ptmx dev/ptmx", "ln -s /proc/self/fd dev/fd"),
        "for each in 0:stdin 1:stdout 2:stderr; do"
        " ln -s fd/${each%:*} dev/${each#*:}; done",
        "mount -t tmpfs -o mode=1777 shm dev/shm",
        "mount -t tmpfs -o mode=755 run run",
        "mkdir -m 1777 run/lock",
        "mount -t cgroup2 cgroup2 sys/fs/cgroup",
        # What the machine starts by itself is not for a box.
        "rm -rf etc/systemd/system/*.wants etc/systemd/system/default.target",
        f"for each in {masked}; do ln -sf /dev/null etc/systemd/system/$each; done",
        "ln -sf /lib/systemd/system/multi-user.target"
        " etc/systemd/system/default.target",
        *(f"chmod a+x .{place}" for place in closed_ancestors()),
        f"echo {name} > etc/hostname",
        f"echo {secrets.token_hex(16)} > etc/machine-id",
        ": > etc/fstab",
        "rm -f etc/resolv.conf",
        # The machine may be busy.
        "mkdir -p etc/systemd/system.conf.d etc/systemd/user.conf.d",
        "for each in system user; do"
        " printf '[Manager]\\nDefaultTimeoutStartSec=10min\\n'"
        " > etc/systemd/$each.conf.d/test.conf; done",
        "ip link set lo up",
        *("mkdir -p oldroot", "pivot_root . oldroot", "umount -l /oldroot"),
        f"exec env -i container=site PATH={PATH} {SYSTEMD} --system"
        " --log-target=console --log-level=notice --show-status=no",
    ]
    return "\n".join([*lines, ""])


def _mounted_places(root: Path) -> list[str]:
    """Return commands that bring in what is needed and lies on other file systems."""
    needed = {
        Path(sys.prefix),
        Path(sys.base_prefix),
        REPOSITORY,
        flux_prefix(),
    }
    of_root = Path("/").stat().st_dev
    return [
        f"mkdir -p {root}{place}; mount --rbind {place} {root}{place}"
        for place in sorted(needed)
        if place.stat().st_dev != of_root
    ]
