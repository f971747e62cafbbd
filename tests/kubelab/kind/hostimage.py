# SPDX-License-Identifier: MIT
"""An image with this machine's own Flux and Python, each at its own path.

For tests: no registry has an image with the Flux that is installed here and this package.
"""

import fnmatch
import json
import os
import pathlib
import shutil
import subprocess
import sys

from tests.kubelab.build import kind_debian
from tests.kubelab.kind import nodeimage
from tests.kubelab.pods import pyenv_of

ROOT = pathlib.Path(__file__).resolve().parents[3]
FLUX_FOLDERS = (
    *("libexecdir", "datadir", "module_path", "connector_path", "python_path", "confdir"),
)
# What brokers import: the embedded one, and Flux's own scripts.
MODULES = (
    *("msgspec", "zmq", "pyzmq*", "tomli_w", "click", "rich", "*flux_burst_orchestrator*"),
    *("markdown_it", "mdurl", "pygments", "cffi*", "_cffi*", "pycparser*", "yaml", "_yaml", "ply"),
)
PYENV = ("bin", "libexec", "shims", "version")
UNWANTED = ("site-packages", "test", "idlelib", "config-*", "ensurepip", "tkinter")
# Of the Debian that nodes are made of; its containerd and its documents are no use here.
BALLAST = (
    *("./usr/bin/ctr", "./usr/bin/containerd*", "./usr/sbin/runc", "./usr/share", "./var"),
    *("./usr/lib/systemd", "./usr/lib/cni", "./dev", "./proc", "./sys", "./etc/ld.so.cache"),
)
PYTHON = """
import json, site, sys, sysconfig
paths = sysconfig.get_paths()
# Debian's own modules are not where sysconfig says that new ones go.
sites = sorted({paths["purelib"], paths["platlib"], *site.getsitepackages()})
print(json.dumps([sys.executable, sys.base_prefix, paths["stdlib"], sites]))
"""


def make(tag, programs=(), change=""):
    """Makes the image, with the docker that is there.

    programs: further ones of this machine, by name; change: for sh, which root runs in it.
    """
    root = kind_debian(nodeimage.PACKAGES, nodeimage.debian)
    ballast = [f"--exclude={pattern}" for pattern in BALLAST]
    # Not what the Debian has as well, as its libraries: docker takes no path twice.
    paths = [path.lstrip("/") for path in map(str, outermost(contents(programs)))]
    paths = [path for path in paths if not (root / path).exists()]
    paths += ["etc/ld.so.cache"]
    command = ["tar", "-c", *ballast, "--exclude=__pycache__", "-C", root, ".", "-C", "/", *paths]
    with subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE) as tar:
        nodeimage.sh("docker", "import", "-", tag, stdin=tar.stdout)
    if tar.returncode:
        raise RuntimeError(f"tar ended with {tar.returncode}")
    if change:
        # A run that was cut off may have left a container of this name.
        nodeimage.sh("docker", "rm", "--force", "change", stderr=subprocess.DEVNULL)
        nodeimage.sh("docker", "run", "--name=change", "--network=none", tag, "sh", "-ec", change)
        nodeimage.sh("docker", "commit", "change", tag)
        nodeimage.sh("docker", "rm", "change")


def contents(programs=()):
    """-> the files and folders of this machine that are in the image."""
    found = {ROOT / "burst", ROOT / "plugins", *python_paths(sys.executable)}
    found |= {pathlib.Path(shutil.which(program)) for program in programs}
    flux = shutil.which("flux")
    if flux:
        folders = [_output(flux, "config", "builtin", name) for name in FLUX_FOLDERS]
        found |= {pathlib.Path(flux), *map(pathlib.Path, folders)}
        # Its shell's Lua, which is beside them.
        share, lib = pathlib.Path(folders[1]).parent, pathlib.Path(folders[2]).parents[1]
        found |= {lib / "flux", *(path / "lua" for path in (share, lib))}
        found |= set(pathlib.Path("/usr").glob("share/lua"))
        found |= set(pathlib.Path("/usr/lib").glob("*-linux-gnu/lua"))
        found |= {pathlib.Path(flux).resolve().with_name("flux-python")}
        for root in pyenv_of(flux):
            found |= {pathlib.Path(root, name) for name in PYENV}
        found |= set(
            python_paths(_output(flux, "python", "-c", "import sys; print(sys.executable)"))
        )
    inside = {link for path in found if path.is_dir() for link in path.rglob("*")}
    found |= {link for path in found | inside for link in _links(path)}
    found = {path for path in found if path.exists()}
    return found | libraries(found)


def outermost(paths):
    """-> the paths less those that are in another."""
    return sorted(path for path in paths if not paths & set(path.parents))


def python_paths(python):
    """-> what a Python, of a venv or not, needs to run brokers."""
    said = json.loads(_output(python, "-c", PYTHON))
    executable, prefix, stdlib = map(pathlib.Path, said[:3])
    yield from (executable, executable.with_name("python3"), executable.parents[1] / "pyvenv.cfg")
    yield from (pathlib.Path(prefix, "bin").glob("python3*"))
    for path in stdlib.iterdir():
        if not any(fnmatch.fnmatch(path.name, pattern) for pattern in UNWANTED):
            yield path
    for site in said[3]:
        for pattern in MODULES:
            yield from pathlib.Path(site).glob(pattern)


def libraries(paths):
    """-> the shared libraries that programs and modules among the paths are linked with."""
    files = {file for path in paths for file in (path.rglob("*") if path.is_dir() else [path])}
    linked = sorted(file for file in files if file.is_file() and _is_elf(file))
    said = subprocess.run(["ldd", *linked], capture_output=True, text=True).stdout
    names = {word for word in said.split() if word.startswith("/") and ":" not in word}
    found = set()
    for name in names:
        # Debian's /lib is a link to /usr/lib: a file below it would take its place.
        path = pathlib.Path(os.path.realpath(os.path.dirname(name)), os.path.basename(name))
        found |= {path, path.resolve()}
    return found


def _links(path):
    """-> what a symbolic link leads to, step by step."""
    while path.is_symlink():
        path = path.parent / path.readlink()
        yield pathlib.Path(os.path.realpath(path.parent), path.name)


def _is_elf(file):
    with file.open("rb") as content:
        return content.read(4) == b"\x7fELF"


def _output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
