# SPDX-License-Identifier: MIT
"""A kind node image made by hand: Debian's packages, kind's own files, Kubernetes as built here.

No registry is asked. Needs root, docker, debootstrap, Go (to find kind's module) and cc.
"""

import pathlib
import re
import shutil
import subprocess
import time

from tests.kubelab.kind import images

PACKAGES = (
    *("systemd", "systemd-sysv", "dbus", "conntrack", "iptables", "nftables", "iproute2"),
    *("ethtool", "util-linux", "mount", "kmod", "libseccomp2", "pigz", "bash"),
    *("ca-certificates", "curl", "jq", "procps", "socat", "containerd", "runc"),
    "containernetworking-plugins",
)
PROGRAMS = ("kubeadm", "kubelet", "kubectl", "crictl")
BALLAST = (
    *("var/cache/apt", "var/lib/apt/lists", "var/log"),
    *(f"usr/share/{name}" for name in ("doc", "man", "locale", "info")),
)
# kube-controller-manager's own, which kind's kubeadm configuration turns on: no provisioner pod.
DEFAULT_STORAGE = """\
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata:
  name: standard
  annotations: {storageclass.kubernetes.io/is-default-class: "true"}
provisioner: kubernetes.io/host-path
"""
# Units that kind's Dockerfile removes, since a container has none of their work to do.
UNITS = (
    "lib/systemd/system/sysinit.target.wants/systemd-tmpfiles-setup.service",
    "lib/systemd/system/multi-user.target.wants/*",
    "etc/systemd/system/*.wants/*",
    "lib/systemd/system/local-fs.target.wants/*",
    "lib/systemd/system/sockets.target.wants/*udev*",
    "lib/systemd/system/sockets.target.wants/*initctl*",
    "lib/systemd/system/basic.target.wants/*",
)
# As kind's Dockerfile: the runtime's own specification, with a hook that hides the machine's
# product id, and no limits of ours.
OCI_SPEC = (
    "ctr oci spec | jq '.hooks.createContainer[.hooks.createContainer| length]"
    ' |= . + {"path": "/kind/bin/mount-product-files.sh"} | del(.process.rlimits)\''
)
CAP_SYS_RESOURCE = 24


def sh(*command, **more):
    """Runs a command that must succeed, quietly."""
    words = [str(word) for word in command]
    return subprocess.run(words, check=True, **{"stdout": subprocess.DEVNULL, **more})


def out(*command):
    """-> what a command says."""
    return sh(*command, stdout=subprocess.PIPE, text=True).stdout.strip()


def debian(folder):
    """Makes the folder a Debian with what a node needs: all that asks the network."""
    mirror = out(
        *("apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages")
    ).split()[0]
    packages = "--include=" + ",".join(PACKAGES)
    sh("debootstrap", "--variant=minbase", packages, "bookworm", folder, mirror)


def build(tag, work, root, kind_module):
    """Builds the image `tag` in the folder `work`, where `bin` has the programs.

    `root` is a Debian. Call it with a docker that nobody else uses.
    """
    programs = work / "bin"
    version = out(programs / "kubeadm", "version", "-o", "short")
    cni, cni_image = default_cni(kind_module)
    archive = work / "images.tar"
    names = images.cluster_images(archive, programs, root, version, cni_image)
    node = node_root(work / "node", root, kind_module)
    pause = next(name for name in names if "/pause:" in name)
    configure(node, pause)
    add_kubernetes(node, programs, version, cni)
    with subprocess.Popen(["tar", "-C", node, "-c", "."], stdout=subprocess.PIPE) as tar:
        sh(
            "docker",
            "import",
            "--change",
            "ENV container=docker",
            "-",
            f"{tag}-base",
            stdin=tar.stdout,
        )
    shutil.rmtree(node)
    import_images(tag, archive)


def default_cni(kind):
    """-> kind's own manifest and its image's name, out of kind's source."""
    text = (kind / "pkg/build/nodeimage/const_cni.go").read_text()
    image = text.split('kindnetdImage = "')[1].split('"')[0]
    body = text.split("const defaultCNIManifest = `")[1]
    return body.replace("` + kindnetdImage + `", image).split("`")[0], image


def node_root(folder, base, kind):
    """-> the node's root folder: Debian and kind's own files."""
    shutil.rmtree(folder, ignore_errors=True)
    sh("cp", "-a", "--reflink=auto", base, folder)
    for name in BALLAST:
        shutil.rmtree(folder / name, ignore_errors=True)
        (folder / name).mkdir(parents=True)
    files = kind / "images/base/files"
    # The module cache is read-only: copy the contents, set the modes as the Dockerfile does.
    for source in files.rglob("*"):
        name = source.relative_to(files)
        if source.is_file() and "LICENSES" not in source.parts:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, folder / name)
            (folder / name).chmod(0o755 if "bin" in name.parts else 0o644)
    return folder


def configure(node, pause):
    """Makes systemd, containerd and the network plugins those of a node."""
    toml = node / "etc/containerd/config.toml"
    text = re.sub(r'sandbox_image = ".*"', f'sandbox_image = "{pause}"', toml.read_text())
    if not _may(CAP_SYS_RESOURCE):  # without it nothing may lower its oom_score_adj
        text = text.replace("restrict_oom_score_adj = false", "restrict_oom_score_adj = true")
    cri = '[plugins."io.containerd.grpc.v1.cri"]\n'
    toml.write_text(text.replace(cri, f"{cri}  disable_apparmor = true\n"))
    for name in ("containerd", "ctr", "containerd-shim-runc-v2"):
        (node / "usr/local/bin" / name).symlink_to(f"/usr/bin/{name}")
    (node / "usr/local/sbin/runc").symlink_to("/usr/sbin/runc")
    (node / "opt/cni").mkdir(parents=True)
    (node / "opt/cni/bin").symlink_to("/usr/lib/cni")
    (node / "etc/cni/net.d").mkdir(parents=True)
    for pattern in UNITS:
        for unit in node.glob(pattern):
            unit.unlink()
    with (node / "etc/systemd/journald.conf").open("a") as journald:
        journald.write("ReadKMsg=no\n")
    enabled = ("kubelet.service", "containerd.service", "undo-mount-hacks.service")
    sh("chroot", node, "systemctl", "enable", *enabled, stderr=subprocess.DEVNULL)
    sh("chroot", node, "systemctl", "mask", "systemd-binfmt.service", stderr=subprocess.DEVNULL)
    # Debian's own (kernel.pid_max, fs.protected_*) are machine-wide: none of a node's business.
    for settings in (node / "usr/lib/sysctl.d").iterdir():
        settings.unlink()
    spec = out("chroot", node, "sh", "-c", OCI_SPEC)
    (node / "etc/containerd/cri-base.json").write_text(spec)


def add_kubernetes(node, programs, version, cni):
    """Adds the Kubernetes programs and what kind applies."""
    private = node / "kind/bin/private-sysctls.sh"
    shutil.copy(pathlib.Path(__file__).with_name("private-sysctls.sh"), private)
    private.chmod(0o755)
    (node / "etc/systemd/system/kubelet.service.d/12-private-sysctls.conf").write_text(
        "[Service]\nExecStartPre=/kind/bin/private-sysctls.sh\n"
    )
    (node / "etc/kubernetes/manifests").mkdir(parents=True)
    shutil.copy(programs / "kube", node / "usr/bin/kube")
    for name in PROGRAMS:
        (node / "usr/bin" / name).symlink_to("kube")
    (node / "kind/version").write_text(version)
    (node / "kind/manifests").mkdir()
    (node / "kind/manifests/default-cni.yaml").write_text(cni)
    (node / "kind/manifests/default-storage.yaml").write_text(DEFAULT_STORAGE)


def import_images(tag, archive):
    """Puts the cluster's images into the image, as `kind build node-image` does."""
    run = ("docker", "run", "-d", "--entrypoint=sleep", "--security-opt", "seccomp=unconfined")
    box = out(*run, "--stop-signal=SIGRTMIN+3", f"{tag}-base", "infinity")
    ctr = ("docker", "exec", box, "ctr", "--namespace=k8s.io", "images")
    load = ("import", "--all-platforms", "--no-unpack", "--digests", "-")
    change = 'ENTRYPOINT [ "/usr/local/bin/entrypoint", "/sbin/init" ]'
    try:
        sh("docker", "exec", "-d", box, "containerd")
        _wait_until(lambda: _succeeds("docker", "exec", box, "ctr", "version"))
        with archive.open("rb") as file:
            sh("docker", "exec", "-i", box, *ctr[3:], *load, stdin=file)
        for name in out(*ctr, "list", "-q").split():
            sh(*ctr, "label", name, "io.cri-containerd.pinned=pinned")
        sh("docker", "exec", box, "pkill", "containerd")
        _wait_until(lambda: not _succeeds("docker", "exec", box, "pgrep", "containerd"))
        sh("docker", "commit", "--change", change, box, tag)
    finally:
        sh("docker", "rm", "-f", "-v", box)


def _may(capability):
    """-> whether this machine has the capability at all."""
    status = pathlib.Path("/proc/self/status").read_text()
    return int(status.split("CapBnd:")[1].split()[0], 16) >> capability & 1


def _succeeds(*command):
    return subprocess.run(command, capture_output=True).returncode == 0


def _wait_until(check, timeout=600):
    end = time.monotonic() + timeout
    while not check():
        if time.monotonic() > end:
            raise TimeoutError(f"containerd: not after {timeout} s")
        time.sleep(0.1)
