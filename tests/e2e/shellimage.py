# SPDX-License-Identifier: MIT
"""Images with this machine's bash and a few commands, such as the operator needs; one
of them has its Flux, too.

Those files of this machine are in it too that pods have to see: the operator's own
mounts are of directories only.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from tests.e2e.programs import BURST
from tests.kubelab.mkimage import write_image
from tests.kubelab.pods import SYSTEM

SHELL_IMAGE = "local.test/shell:1"
VIEW_IMAGE = "local.test/flux-view:1"
"""The same, and this machine's Flux where the operator's views have theirs."""
VIEW_MARK = "of-the-view"
"""A file beside it that this machine does not have."""
DAEMON_IMAGE = "local.test/burst-daemon:1"
"""The same, and runs `burst daemon`, which its pod has to bring."""
NEXT_IMAGE = "local.test/burst-daemon:2"
"""The same under another name, to which a daemon is upgraded."""
# What the scripts of the Flux Operator call before anything of ours is mounted.
_PROGRAMS = ("bash", "cat", "cp", "hostname", "ls", "mkdir", "sh", "touch")
# Where it shares its prefix, as /usr/local, with its Python and with libraries that it
# is linked with, the view hides those of the machine.
_OF_FLUX = (
    *("bin/flux*", "bin/python3*", "lib/flux", "lib/lib*.so*", "libexec/flux"),
    *("lib/python3*", "lib/*-linux-gnu"),
    *("etc/flux", "share/flux", "share/lua", "lib/lua"),
)


def flux_prefix() -> Path:
    """Return the directory that this machine's Flux was built for; / without one."""
    return Path(os.path.realpath(shutil.which("flux") or "/")).parent.parent


def write_images(place: Path) -> list[Path]:
    """Write the shell's image and the daemon's as tars; return their paths."""
    files = _shell_files()
    shell, daemon = place / "shell.tar", place / "daemon.tar"
    write_image(shell, SHELL_IMAGE, files)
    write_image(daemon, DAEMON_IMAGE, files, entrypoint=[BURST, "daemon"])
    return [shell, daemon]


def write_next(place: Path) -> Path:
    """Write the image to which a daemon is upgraded as a tar; return its path."""
    path = place / "next.tar"
    command = [BURST, "daemon"]
    # Images that are equal have one id, and a node then tells the name of either.
    env = ["BURST_TEST_IMAGE=next"]
    write_image(path, NEXT_IMAGE, _shell_files(), entrypoint=command, env=env)
    return path


def write_view(place: Path) -> list[Path]:
    """Write the image of Flux as a tar; return its path.

    There is none where Flux is among the system's own files: a view would hide them.
    """
    prefix = flux_prefix()
    if not shutil.which("flux") or prefix in (Path("/"), Path("/usr")):
        return []
    view = "/opt/views/._view/0a1b2c"
    found = (path for pattern in _OF_FLUX for path in prefix.glob(pattern))
    files = {f"{view}/{path.relative_to(prefix)}": str(path) for path in found}
    mark = place / VIEW_MARK
    mark.write_text("yes\n")
    files |= {**_shell_files(), f"{view}/{VIEW_MARK}": str(mark)}
    write_image(place / "view.tar", VIEW_IMAGE, files)
    return [place / "view.tar"]


def _shell_files() -> dict[str, str]:
    files = {path: path for path in SYSTEM if Path(path).is_file()}
    for name in _PROGRAMS:
        program = os.path.realpath(shutil.which(name) or name)
        files[f"/bin/{name}"] = program
        ldd = ("ldd", program)
        said = subprocess.run(ldd, capture_output=True, text=True, check=True).stdout
        linked = [word for word in said.split() if word.startswith("/")]
        files |= {path: os.path.realpath(path) for path in linked}
    return files
