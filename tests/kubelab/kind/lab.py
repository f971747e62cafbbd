# SPDX-License-Identifier: MIT
"""A docker of its own in which kind makes clusters. Needs root.

python3 -m tests.kubelab.kind.lab COMMAND ...

runs COMMAND beside it, with kind, kubectl and docker on PATH and KINDLAB_IMAGE, the node image.
All of it, the network too, is in namespaces of their own, and gone when the command has ended.
"""

import fcntl
import os
import pathlib
import subprocess
import sys

from tests.kubelab import build
from tests.kubelab.kind import nodeimage

HERE = pathlib.Path(__file__).resolve().parent
IMAGE = "local.test/node:v1.34.4"
INPUTS = ("nodeimage.py", "images.py", "private-sysctls.sh")
TOOLS = ("docker", "dockerd", "iptables", "debootstrap", "cc")
INSTALL = "apt-get install --no-install-recommends docker.io iptables debootstrap"


def run(command):
    """Runs a command in a lab -> its exit status."""
    if os.geteuid():
        raise build.Unavailable("a docker of its own needs root")
    for name in TOOLS:
        build.tool(name, f"run kind: {INSTALL}")
    programs = build.programs_for_kind()
    root = build.kind_debian(nodeimage.PACKAGES, nodeimage.debian)
    inputs = b"".join((HERE / name).read_bytes() for name in INPUTS)
    folder = build.folder_for("kind", f"{programs} {root}".encode() + inputs)
    folder.mkdir(parents=True, exist_ok=True)
    # Its docker is for one at a time: its images stay in the folder.
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "done").exists():
            build.log(f"making kind's node image in {folder} (once)")
            link_programs(folder / "bin", programs)
            make = [sys.executable, "-m", __spec__.name, "--image", folder, root]
            isolated(folder, make).check_returncode()
            (folder / "done").touch()
        path = f"{folder / 'bin'}:{os.environ['PATH']}"
        env = os.environ | {"PATH": path, "KINDLAB_IMAGE": IMAGE}
        return isolated(folder, command, env=env).returncode


def isolated(folder, command, **more):
    """Runs a command beside a docker whose data is in the folder."""
    script = [HERE / "isolated.sh", folder / "docker", *command]
    return subprocess.run([str(word) for word in script], **more)


def link_programs(folder, programs):
    """Makes the folder one of links to programs, {name: path}."""
    folder.mkdir(exist_ok=True)
    for name, path in programs.items():
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(path)


def make_image(folder, root):
    """The half of run() that has a docker."""
    nodeimage.build(IMAGE, folder, root, build.kind_module())


if __name__ == "__main__":
    try:
        if sys.argv[1] == "--image":
            make_image(*map(pathlib.Path, sys.argv[2:]))
        else:
            sys.exit(run(sys.argv[1:]))
    except build.Unavailable as problem:
        sys.exit(f"kubelab: {problem}")
