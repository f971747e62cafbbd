# SPDX-License-Identifier: MIT
"""Finds Fluxion (flux-sched), and what a lead needs to be scheduled by it.

It is looked for in /opt/fluxion, where it can be built without a change to the Flux
that is installed, and in Flux's own prefix. Its modules find their libraries by
themselves (RUNPATH).
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

PREFIX = Path("/opt/fluxion")
MISSING = "Fluxion (flux-sched) is neither in /opt/fluxion nor in Flux's prefix"
RESOURCE = "sched-fluxion-resource"
QMANAGER = "sched-fluxion-qmanager"
_LIBRARIES = ("lib", "lib64", "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu")


class Fluxion(NamedTuple):
    """Where its files are."""

    modules: Path
    """The directory of its broker modules."""
    modprobe: Path
    """The directory that has `modprobe.d` and `rc1.d` of it: ETC/flux/modprobe."""
    encoder: Path
    """The command `flux ion-R`, which puts a graph into R."""
    python: Path
    """The directory of its Python package, which that command needs."""

    @property
    def environment(self) -> Mapping[str, str]:
        """Of a lead's broker, whose rc1 loads Fluxion instead of sched-simple then.

        By `flux modprobe rc1`, which has priorities (`[modules]`) decide between
        schedulers that are installed.
        """
        return {
            "FLUX_MODULE_PATH_PREPEND": str(self.modules),
            "FLUX_MODPROBE_PATH_APPEND": str(self.modprobe),
        }

    def module(self, name: str) -> str:
        """Return the path of a module, for `flux module load`."""
        return str(self.modules / f"{name}.so")


@cache
def find_fluxion() -> Fluxion | None:
    """Return where Fluxion is; None if it is not installed."""
    flux = shutil.which("flux")
    prefixes = [PREFIX, *([Path(flux).parents[1]] if flux else [])]
    for prefix in prefixes:
        for library in _LIBRARIES:
            modules = prefix / library / "flux" / "modules"
            if (modules / f"{QMANAGER}.so").exists():
                etc = Path("/etc") if str(prefix) == "/usr" else prefix / "etc"
                return Fluxion(
                    modules,
                    etc / "flux" / "modprobe",
                    encoder=prefix / "libexec" / "flux" / "cmd" / "flux-ion-R.py",
                    python=_python(prefix),
                )
    return None


def _python(prefix: Path) -> Path:
    """Return where the package `fluxion` is: Debian's pip installs below local."""
    found = sorted(prefix.glob("**/python3*/*-packages/fluxion/__init__.py"))
    return found[0].parents[1] if found else prefix
