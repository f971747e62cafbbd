# SPDX-License-Identifier: MIT
"""Container images as docker archives, made by hand: no registry, no docker build."""

import gzip
import hashlib
import io
import json
import pathlib
import platform
import subprocess
import tarfile

from tests.kubelab.build import tool
from tests.kubelab.mkimage import ARCH, PATH_ENV

DIRS = (
    *("etc", "proc", "sys", "dev", "root", "run", "tmp"),
    *("usr", "usr/local", "usr/local/bin", "var", "var/lib"),
)
NETWORK_PROGRAMS = (
    *("/bin/ip", "/usr/sbin/xtables-nft-multi", "/usr/sbin/xtables-legacy-multi"),
    *("/usr/sbin/nft", "/usr/sbin/conntrack"),
)


class Layer:
    """One layer in the making."""

    def __init__(self):
        self._raw = io.BytesIO()
        self._tar = tarfile.open(fileobj=self._raw, mode="w")  # noqa: SIM115
        self._dirs = set()

    def mkdir(self, path):
        """Adds a directory and those above it."""
        name = str(path).strip("/.")
        if not name or name in self._dirs:
            return
        self.mkdir(pathlib.PurePath(name).parent)
        self._dirs.add(name)
        info = tarfile.TarInfo(name)
        info.type, info.mode = tarfile.DIRTYPE, 0o1777 if name == "tmp" else 0o755
        self._tar.addfile(info)

    def add(self, source, path):
        """Adds a program."""
        self.mkdir(pathlib.PurePath(path).parent)
        content = pathlib.Path(source).read_bytes()
        info = tarfile.TarInfo(path.strip("/"))
        info.size, info.mode = len(content), 0o755
        self._tar.addfile(info, io.BytesIO(content))

    def link(self, path, target):
        """Adds a symbolic link."""
        self.mkdir(pathlib.PurePath(path).parent)
        info = tarfile.TarInfo(path.strip("/"))
        info.type, info.linkname = tarfile.SYMTYPE, target
        self._tar.addfile(info)

    def done(self):
        """-> (gzipped tar, diff id)."""
        self._tar.close()
        content = self._raw.getvalue()
        name = "sha256:" + hashlib.sha256(content).hexdigest()
        return gzip.compress(content, 5, mtime=0), name


def layer(files=(), links=(), dirs=()):
    """files: (source, path) pairs, links: (path, target) pairs -> a layer."""
    new = Layer()
    for path in dirs:
        new.mkdir(path)
    for source, path in files:
        new.add(source, path)
    for path, target in links:
        new.link(path, target)
    return new.done()


def archive(out, images):
    """images: {name:tag: (layers, config)}; several images may share layers."""
    members: dict[str, bytes] = {}
    manifest = []
    for name, (layers, settings) in images.items():
        config = json.dumps(
            {
                "architecture": ARCH.get(platform.machine(), platform.machine()),
                "os": "linux",
                "config": {"Env": [PATH_ENV], "WorkingDir": "/", **settings},
                "rootfs": {"type": "layers", "diff_ids": [diff for _, diff in layers]},
                "history": [{"created_by": "images.py"} for _ in layers],
            }
        ).encode()
        config_name = hashlib.sha256(config).hexdigest() + ".json"
        blobs = {f"{diff[7:]}.tar.gz": blob for blob, diff in layers}
        members |= {config_name: config} | blobs
        manifest.append({"Config": config_name, "RepoTags": [name], "Layers": list(blobs)})
    with tarfile.open(out, "w") as tar:
        for name, content in (members | {"manifest.json": json.dumps(manifest).encode()}).items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))


def with_libraries(root, programs):
    """-> (source, path) of dynamic programs in a root folder, and of the libraries they need."""
    root = pathlib.Path(root)
    files = {}
    for program in programs:
        files[program] = (root / program.lstrip("/")).resolve()
        said = subprocess.run(["chroot", root, "ldd", program], capture_output=True, text=True)
        for word in said.stdout.split():
            if word.startswith("/") and word not in files:
                real = subprocess.run(
                    ["chroot", root, "readlink", "-f", word],
                    capture_output=True,
                    text=True,
                    check=True,
                )
                files[word] = root / real.stdout.strip().lstrip("/")
    return [(source, path) for path, source in files.items()]


def network_layer(root):
    """-> the programs by which kube-proxy and kindnetd make rules and routes."""
    extensions = pathlib.Path(root, "usr/lib/x86_64-linux-gnu/xtables")
    libraries = [f"/{path.relative_to(root)}" for path in sorted(extensions.iterdir())]
    links = [
        (f"/usr/sbin/{program}{suffix}", "xtables-nft-multi")
        for program in ("iptables", "ip6tables")
        for suffix in ("", "-save", "-restore")
    ]
    return layer(with_libraries(root, [*NETWORK_PROGRAMS, *libraries]), links)


def cluster_images(out, programs, root, version, kindnetd):
    """Writes all that kubeadm wants, and kindnetd, to one archive -> what kubeadm calls them.

    programs: folder with kube (the one-file cluster program), kubeadm, coredns, kindnetd;
    root: a Debian with iptables.
    """
    wanted = [programs / "kubeadm", "config", "images", "list", "--kubernetes-version", version]
    names = subprocess.run(wanted, capture_output=True, text=True, check=True).stdout.split()
    pause, source = out.with_name("pause"), pathlib.Path(__file__).parents[1] / "pause.c"
    cc = tool("cc", "compile the pause program")
    subprocess.run([cc, "-Os", "-static", "-s", "-o", pause, source], check=True)
    base, net = layer(dirs=DIRS), network_layer(root)
    kube = layer([(programs / "kube", "/usr/local/bin/kube")])
    images = {}
    for name in names:
        program = name.split("/")[-1].split(":")[0]
        if program == "pause":
            user = {"Entrypoint": ["/pause"], "User": "65535:65535"}
            images[name] = [base, layer([(pause, "/pause")])], user
        elif program == "coredns":
            files = layer([(programs / "coredns", "/coredns")])
            images[name] = [base, files], {"Entrypoint": ["/coredns"]}
        else:  # static pods name the program themselves
            path = f"/usr/local/bin/{program}"
            more = [net] if program == "kube-proxy" else []
            layers = [base, kube, *more, layer(links=[(path, "kube")])]
            images[name] = layers, {"Entrypoint": [path]}
    files = layer([(programs / "kindnetd", "/bin/kindnetd")])
    images[kindnetd] = [base, net, files], {"Entrypoint": ["/bin/kindnetd"]}
    archive(out, images)
    return names
