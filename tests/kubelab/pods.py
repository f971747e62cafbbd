# SPDX-License-Identifier: MIT
"""Pod specs that need no image build: an empty image, and this machine's files mounted read-only.

pod_spec(["/path/of/venv/bin/python", "-c", "..."], python_mounts("/path/of/venv/bin/python"))
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys

from tests.kubelab.build import PAUSE_IMAGE

SYSTEM = (
    "/usr",
    "/lib",
    "/lib64",
    "/bin",
    "/sbin",
    "/etc/passwd",
    "/etc/group",
    "/etc/ld.so.cache",
)
FLUX_SETTINGS = ("exec_path", "module_path", "connector_path", "python_path", "confdir")
PREFIXES = "import json, sys; print(json.dumps([sys.prefix, sys.base_prefix]))"


def python_mounts(*python):
    """-> the folders that a Python needs: its venv, and the Python that the venv is of."""
    command = [*(python or (sys.executable,)), "-c", PREFIXES]
    return json.loads(subprocess.run(command, capture_output=True, check=True).stdout)


def flux_mounts():
    """-> the folders that the `flux` on PATH needs: its prefix, its Python, its libraries."""
    flux = shutil.which("flux")
    if not flux:
        raise SystemExit("flux is not on PATH")
    settings = [_output(flux, "config", "builtin", name) for name in FLUX_SETTINGS]
    broker = f"{settings[0]}/flux-broker"
    linked = _output("ldd", flux, broker).split()
    libraries = [os.path.dirname(word) for word in linked if word.startswith("/")]
    prefix = os.path.commonpath([os.path.dirname(os.path.realpath(flux)), settings[0]])
    return [prefix, *settings, *libraries, *mounts_beside(flux)]


def mounts_beside(flux):
    """-> what this flux needs that may be outside of its prefix: its configuration, its Python."""
    confdir = _output(flux, "config", "builtin", "confdir")
    return [confdir, *python_mounts(flux, "python"), *pyenv_of(flux)]


def pyenv_of(flux):
    """-> the root of the pyenv whose shim is the Python that this flux was configured with, if so.

    The shim says where by PYENV_ROOT, and needs all of it but other versions.
    """
    env = {name: value for name, value in os.environ.items() if name != "PYENV_ROOT"}
    command = [flux, "python", "-c", "import os; print(os.environ.get('PYENV_ROOT', ''))"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
    return done.stdout.split()


def _output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def without_nested(paths):
    """-> the paths that exist, links followed too, less those that lie in another one."""
    names = {str(p) for path in paths for p in (path, os.path.realpath(path))}
    chosen: list[pathlib.Path] = []
    for path in sorted(map(pathlib.Path, names)):
        inside = any(path.is_relative_to(other) for other in chosen)
        if path.exists() and not inside and path != pathlib.Path("/"):
            chosen.append(path)
    return chosen


def pod_spec(command, mounts=(), env=None, volumes=None, **spec):
    """-> a PodSpec that runs the command with the system's folders and `mounts` from the host.

    `volumes` are others, {mount path: volume source}, such as {"/cfg": {"secret": {...}}}.
    More fields of PodSpec go in as they are.
    """
    sources = {
        str(path): {"hostPath": {"path": str(path)}} for path in without_nested([*SYSTEM, *mounts])
    }
    sources |= {"/tmp": {"emptyDir": {}}, "/var/tmp": {"emptyDir": {}}} | (volumes or {})
    names = {path: f"v{number}" for number, path in enumerate(sources)}
    container = {
        "name": "main",
        "image": PAUSE_IMAGE,
        "imagePullPolicy": "Never",
        "command": list(command),
        "env": [{"name": name, "value": value} for name, value in (env or {}).items()],
        "volumeMounts": [
            {"name": names[path], "mountPath": path, "readOnly": "hostPath" in source}
            for path, source in sources.items()
        ],
    }
    return {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 5,
        "containers": [container],
        "volumes": [{"name": names[path]} | source for path, source in sources.items()],
        **spec,
    }
