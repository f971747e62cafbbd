# SPDX-License-Identifier: MIT
"""Builds what the lab runs, once, into a cache: $KUBELAB_CACHE, or else ~/.cache/kubelab.

Each part lies in a folder named after what it is made of, so a changed go.mod makes a new one and
an old one is never half-overwritten. Processes that ask at the same time wait for one another.
`python3 -m tests.kubelab.build [nodes] [kwok]` builds ahead of time and prints the paths.
"""

import contextlib
import dataclasses
import fcntl
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

from tests.kubelab import mkimage

HERE = pathlib.Path(__file__).resolve().parent
KUBE_PROGRAMS = (
    *("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"),
    *("kube-proxy", "kubelet", "kubectl", "kubeadm", "crictl"),
)
KWOK = "sigs.k8s.io/kwok"
KWOK_VERSION = "v0.7.0"
KIND = "sigs.k8s.io/kind"
KIND_VERSION = "v0.30.0"
PAUSE_IMAGE = "local.test/pause:1"
# What a node needs, with the libraries of `nft` and `runc`. They are unpacked into the cache and
# run from there: nothing is installed on this machine.
NODE_PACKAGES = (
    *("containerd", "runc", "libseccomp2", "containernetworking-plugins"),
    *("nftables", "libnftables1", "libnftnl11", "libxtables12", "libmnl0", "libjansson4"),
    *("libgmp10", "libedit2", "libbsd0", "libmd0", "libtinfo6"),
)


class Unavailable(RuntimeError):
    """A tool that the build needs is not on this machine: a reason to skip, not to fail."""


@dataclasses.dataclass(frozen=True)
class Paths:
    """Where the parts are. Those that were not asked for are None."""

    bin: pathlib.Path  # folder with kubectl, etcd, kube-apiserver, ...
    coredns: pathlib.Path | None = None  # program
    debs: pathlib.Path | None = None  # root of the unpacked Debian packages
    image: pathlib.Path | None = None  # pause image, a tar
    kwok: pathlib.Path | None = None  # program
    kwok_stages: pathlib.Path | None = None  # folder with kwok's own stage files


def cache_dir():
    """-> the cache folder; KUBELAB_CACHE sets it."""
    given = os.environ.get("KUBELAB_CACHE")
    return pathlib.Path(given) if given else pathlib.Path.home() / ".cache" / "kubelab"


def log(text):
    """Progress for people; stdout stays free for results."""
    print(f"kubelab: {text}", file=sys.stderr, flush=True)


def tool(name, why):
    """-> the path of a program, or Unavailable, saying what it is needed for."""
    path = shutil.which(name)
    if not path:
        raise Unavailable(f"{name} is not on PATH: it is needed to {why}")
    return path


@contextlib.contextmanager
def _locked(path):
    with open(path, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def folder_for(name, inputs):
    """-> the cache folder for what is made of the bytes `inputs`, which may not be there yet."""
    return cache_dir() / f"{name}-{hashlib.sha256(inputs).hexdigest()[:12]}"


def _once(name, inputs, make):
    """-> the cache folder for `name` made of the bytes `inputs`; make(folder) fills it if new."""
    cache, out = cache_dir(), folder_for(name, inputs)
    if out.exists():
        return out
    cache.mkdir(parents=True, exist_ok=True)
    with _locked(cache / f".{name}.lock"):
        if out.exists():
            return out
        part = out.with_name(out.name + ".part")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
        log(f"making {out} (once)")
        start = time.monotonic()
        make(part)
        part.rename(out)
        log(f"made {name} in {time.monotonic() - start:.0f} s")
    return out


def _go(*args, cwd=HERE, **env):
    """Runs Go as it is installed here (it fetches no other toolchain), without cgo."""
    go = tool("go", "build Kubernetes (Go 1.24 or newer)")
    env = os.environ | {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": ""} | env
    done = subprocess.run(
        [go, *map(str, args)], cwd=cwd, env=env, check=True, stdout=subprocess.PIPE, text=True
    )
    return done.stdout.strip()


def _sources(folder):
    """-> what a Go program is made of, for its place in the cache."""
    return b"".join(
        path.read_bytes() for path in sorted([*folder.glob("go.*"), *folder.glob("*.go")])
    )


def _kube():
    """-> the folder with the Kubernetes programs: one file of 157 MB and a link for each."""
    sources = _sources(HERE)
    [version] = re.findall(r"k8s\.io/kubernetes (v[\d.]+)", (HERE / "go.mod").read_text())
    major, minor = version[1:].split(".")[:2]
    facts = {"gitVersion": version, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    stamps = [
        f"-X {package}.{key}={value}"
        for package in ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
        for key, value in facts.items()
    ]
    flags = "-ldflags=-s -w " + " ".join(stamps)

    def make(out):
        _go("build", "-trimpath", "-buildvcs=false", flags, "-o", out / "kube", ".")
        for name in KUBE_PROGRAMS:
            (out / name).symlink_to("kube")

    return _once(f"kube-{version}", sources, make)


def _program(folder):
    """-> a Go program of one folder, built."""

    def make(out):
        flags = ("-trimpath", "-buildvcs=false", "-ldflags=-s -w")
        _go("build", *flags, "-o", out / folder.name, ".", cwd=folder)

    return _once(folder.name, _sources(folder), make) / folder.name


def programs_for_kind():
    """-> {name: path} of all that a kind node, and who makes one, runs."""

    def make(out):
        _go("install", "-trimpath", f"{KIND}@{KIND_VERSION}", cwd="/", GOBIN=out)

    kube = _kube()
    built = {name: kube / name for name in ("kube", *KUBE_PROGRAMS)}
    for folder in (HERE / "coredns", HERE / "kind/kindnetd"):
        built[folder.name] = _program(folder)
    return built | {"kind": _once(f"kind-{KIND_VERSION}", b"", make) / "kind"}


def kind_debian(packages, make):
    """-> a Debian with these packages, which make(folder) fills."""
    release = pathlib.Path("/etc/os-release").read_bytes()
    inputs = release + " ".join(packages).encode()
    return _once("kind-debian", inputs, lambda out: make(out / "root")) / "root"


def wheelhouse(inputs, make):
    """-> a folder of wheels, which make(folder) fills; it is made of these bytes."""
    return _once("wheels", inputs + sys.version.encode(), make)


def kind_module():
    """-> the folder of kind's source."""
    said = _go("mod", "download", "-json", f"{KIND}@{KIND_VERSION}", cwd="/")
    return pathlib.Path(json.loads(said)["Dir"])


def _kwok():
    """-> (program, folder of the stage files that come with its module)."""
    where = f"{KWOK}@{KWOK_VERSION}"

    def make(out):
        stamp = f"-ldflags=-s -w -X {KWOK}/pkg/consts.Version={KWOK_VERSION}"
        _go("install", "-trimpath", stamp, f"{KWOK}/cmd/kwok@{KWOK_VERSION}", cwd="/", GOBIN=out)
        module = _go("list", "-m", "-f", "{{.Dir}}", where, cwd="/")
        shutil.copytree(f"{module}/kustomize/stage", out / "stage")

    out = _once(f"kwok-{KWOK_VERSION}", b"", make)
    return out / "kwok", out / "stage"


def _pause_image():
    source = HERE / "pause.c"

    def make(out):
        cc = tool("cc", "compile the pause program")
        subprocess.run([cc, "-static", "-Os", "-s", "-o", out / "pause", source], check=True)
        mkimage.write_image(out / "pause.tar", PAUSE_IMAGE, {"pause": out / "pause"}, ["/pause"])

    inputs = source.read_bytes() + (HERE / "mkimage.py").read_bytes()
    return _once("pause", inputs, make) / "pause.tar"


def _debs():
    """-> the root of the unpacked packages; apt's own sources and keys vouch for them."""
    release = pathlib.Path("/etc/os-release").read_bytes()

    def make(out):
        apt = tool("apt-get", "download the node's packages (Debian)")
        downloads = out / "downloads"
        downloads.mkdir()
        # apt drops to a user that may not write here; as root it need not drop
        command = [apt, "-q", "-o", "APT::Sandbox::User=root", "download", *NODE_PACKAGES]
        fetch = {"cwd": downloads, "capture_output": True, "text": True}
        fetched = subprocess.run(command, **fetch)
        if fetched.returncode and not os.geteuid():
            # A machine that has just been made has no lists, and an old one's are out of date.
            subprocess.run([apt, "-q", "update"], capture_output=True)
            fetched = subprocess.run(command, **fetch)
        if fetched.returncode:
            raise RuntimeError(f"apt-get download failed (apt-get update?):\n{fetched.stderr}")
        for package in sorted(downloads.glob("*.deb")):
            subprocess.run(["dpkg", "-x", package, out], check=True)
        shutil.rmtree(downloads)

    return _once("debs", release + " ".join(NODE_PACKAGES).encode(), make)


def ensure(nodes=False, kwok=False):
    """-> Paths; builds what is missing: kube always, for real nodes and for kwok when asked."""
    parts = {"bin": _kube()}
    if nodes:
        parts |= {"coredns": _program(HERE / "coredns"), "debs": _debs(), "image": _pause_image()}
    if kwok:
        parts["kwok"], parts["kwok_stages"] = _kwok()
    return Paths(**parts)


if __name__ == "__main__":
    for field, value in vars(ensure("nodes" in sys.argv, "kwok" in sys.argv)).items():
        print(f"{field}={value}")
