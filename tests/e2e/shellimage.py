# SPDX-License-Identifier: MIT
"""Images with this machine's bash and a few commands, such as the operator needs.

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
DAEMON_IMAGE = "local.test/burst-daemon:1"
"""The same, and runs `burst daemon`, which its pod has to bring."""
# What the scripts of the Flux Operator call before anything of ours is mounted.
_PROGRAMS = ("bash", "cat", "cp", "hostname", "ls", "mkdir", "sh", "touch")


def write_images(place: Path) -> list[Path]:
    """Write both as tars; return their paths."""
    files = {path: path for path in SYSTEM if Path(path).is_file()}
    for name in _PROGRAMS:
        program = os.path.realpath(shutil.which(name) or name)
        files[f"/bin/{name}"] = program
        ldd = ("ldd", program)
        said = subprocess.run(ldd, capture_output=True, text=True, check=True).stdout
        linked = [word for word in said.split() if word.startswith("/")]
        files |= {path: os.path.realpath(path) for path in linked}
    shell, daemon = place / "shell.tar", place / "daemon.tar"
    write_image(shell, SHELL_IMAGE, files)
    write_image(daemon, DAEMON_IMAGE, files, entrypoint=[BURST, "daemon"])
    return [shell, daemon]
