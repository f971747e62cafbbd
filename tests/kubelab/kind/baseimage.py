# SPDX-License-Identifier: MIT
"""A base for the Dockerfile, laid out as its own: a Debian with a Python and pip in /usr/local.

For tests: no registry is asked. pip finds in it all that the Dockerfile installs, as wheels that
were fetched before, where there was a network.
"""

import fnmatch
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig

from tests.kubelab.build import Unavailable, kind_debian, wheelhouse
from tests.kubelab.kind import hostimage, nodeimage
from tests.kubelab.mkimage import PATH_ENV

ROOT = pathlib.Path(__file__).resolve().parents[3]
WHEELS = "BURST_TEST_WHEELS"
"""Names the folder of wheels."""
DOCKERFILE = ROOT / "Dockerfile"
UNWANTED = ("site-packages", "dist-packages", "test", "idlelib", "config-*", "tkinter")
BALLAST = (
    *("./usr/bin/ctr", "./usr/bin/containerd*", "./usr/sbin/runc", "./usr/share", "./var"),
    *("./usr/lib/systemd", "./usr/lib/cni", "./dev", "./proc", "./sys", "./etc/ld.so.cache"),
    # Docker takes no path twice.
    "./usr/local",
)


def fetch():
    """-> the folder of wheels for the Dockerfile, made by this machine's pip."""
    inputs = [ROOT / "constraints.txt", ROOT / "pyproject.toml", DOCKERFILE]
    return wheelhouse(b"".join(path.read_bytes() for path in inputs), _wheels)


def _wheels(folder):
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--wheel-dir", folder]
    (extras,) = re.findall(r"^ARG EXTRAS=(\S+)$", DOCKERFILE.read_text(), re.MULTILINE)
    wanted = ["--constraint", ROOT / "constraints.txt", f"{ROOT}[{extras}]", "hatchling"]
    try:
        subprocess.run([*map(str, pip), *map(str, wanted)], check=True)
    except subprocess.CalledProcessError as error:
        raise Unavailable(f"pip cannot fetch what the Dockerfile installs: {error}") from error


def make(tag, work):
    """Makes the image in the folder `work`, with the docker that is there."""
    root = kind_debian(nodeimage.PACKAGES, nodeimage.debian)
    _put_python(work)
    shutil.copytree(os.environ[WHEELS], work / "wheels")
    # What Debian has as well stays Debian's.
    libraries = [str(path).lstrip("/") for path in hostimage.libraries({work / "usr"})]
    libraries = sorted({path for path in libraries if not (root / path).exists()})
    ballast = [f"--exclude={pattern}" for pattern in BALLAST]
    command = ["tar", "-c", *ballast, "--exclude=__pycache__", "-C", root, "."]
    command += ["-C", "/", *libraries, "-C", work, "usr/local", "wheels"]
    # No linker cache is made, which would know a libpython in /usr/local/lib.
    changes = (
        "ENV LD_LIBRARY_PATH=/usr/local/lib",
        "ENV PIP_NO_INDEX=1 PIP_FIND_LINKS=/wheels",
        f"ENV {PATH_ENV}",
    )
    options = [word for change in changes for word in ("--change", change)]
    with subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE) as tar:
        nodeimage.sh("docker", "import", *options, "-", tag, stdin=tar.stdout)
    if tar.returncode:
        raise RuntimeError(f"tar ended with {tar.returncode}")


def _put_python(work):
    """Puts the Python that runs this, and its pip, below work/usr/local."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    local = work / "usr" / "local"
    programs, library = local / "bin", local / "lib" / version
    programs.mkdir(parents=True)
    shutil.copy2(os.path.realpath(sys.executable), programs / version)
    for name in ("python3", "python"):
        (programs / name).symlink_to(version)

    def unwanted(folder, names):
        del folder
        return [n for n in names if any(fnmatch.fnmatch(n, pattern) for pattern in UNWANTED)]

    paths = sysconfig.get_paths()
    shutil.copytree(paths["stdlib"], library, ignore=unwanted, symlinks=True)
    shared = pathlib.Path(sysconfig.get_config_var("LIBDIR")) / f"lib{version}.so.1.0"
    if shared.exists():
        shutil.copy2(shared, local / "lib")
    for path in pathlib.Path(paths["purelib"]).glob("pip*"):
        shutil.copytree(path, library / "site-packages" / path.name)
