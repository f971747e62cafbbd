# SPDX-License-Identifier: MIT
"""Jobs that followers started as systemd units, which outlive a killed follower.

With `[exec] service = "sdexec"` a job is a transient unit of the owner's systemd,
outside the session and the control group of its follower. The unit's file has the
follower's environment, so FLUX_URI tells which follower started it. This user owns the
unit's control group, and may kill all processes in it, whatever their user.

    RUNTIME/systemd/transient/imp-shell-RANK-JOBID.service
    CGROUPS/user.slice/user-UID.slice/user@UID.service/SLICE/imp-shell-….service

Sources: sdexec.c and bulk-exec.c of flux-core; systemd.unit(5), cgroups(7).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from burst.kits.systemd_user import runtime_directory

_CGROUPS = Path("/sys/fs/cgroup")


class Units:
    """The units of this user's systemd; none if the user has no systemd."""

    def __init__(self, runtime: Path | None = None, cgroups: Path = _CGROUPS) -> None:
        self._files = (runtime or runtime_directory()) / "systemd" / "transient"
        user = os.geteuid()
        self._groups = (
            cgroups / "user.slice" / f"user-{user}.slice" / f"user@{user}.service"
        )

    def kill(self, rundirs: Iterable[Path]) -> bool:
        """Kill jobs left by followers with these rundirs; tell whether there were none.

        Call it once the followers have ended: a broker ends its jobs in an orderly way.
        Raises OSError.
        """
        left = list(self._left(frozenset(map(str, rundirs))))
        for group in left:
            with contextlib.suppress(FileNotFoundError):
                (group / "cgroup.kill").write_text("1")
        return not left

    def _left(self, rundirs: frozenset[str]) -> Iterator[Path]:
        if not self._files.is_dir():
            return
        marks = [f'"FLUX_URI=local://{rundir}/local"' for rundir in rundirs]
        for file in self._files.glob("*.service"):
            if any(mark in _read(file) for mark in marks):
                for group in self._groups.glob(f"*/{file.name}"):
                    if _is_populated(group):
                        yield group


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except FileNotFoundError:  # it has ended since it was listed
        return ""


def _is_populated(group: Path) -> bool:
    return "populated 1" in _read(group / "cgroup.events")
