# SPDX-License-Identifier: MIT
"""A private corner of this machine for one lab: namespaces, fixed paths, network, cgroups.

run() works from outside and cleans up; the other half, set_up(), works inside the namespaces.
The lab's folder has a unique name, and its cgroups bear the same one, so labs can coexist.
"""

import contextlib
import fcntl
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from tests.kubelab.build import log, tool

CGROUPS = pathlib.Path("/sys/fs/cgroup")
OUTSIDE_IP = "10.200.0.1"  # control plane, DNS and the command that runs in the lab
NAMESPACES = (
    *("setpriv", "--pdeathsig", "KILL", "--"),
    *("unshare", "--net", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child"),
    *("--propagation", "private", "--"),
)
# kubelet insists on these and writes them where they differ. It gets private copies: bind mounts.
SYSCTLS = {
    "vm/overcommit_memory": 1,
    "vm/panic_on_oom": 0,
    "kernel/panic": 10,
    "kernel/panic_on_oops": 1,
    "kernel/keys/root_maxkeys": 1000000,
    "kernel/keys/root_maxbytes": 25000000,
}


def node_ip(number):
    return f"10.200.0.{11 + number}"


def pod_subnet(number):
    return f"10.244.{number}.0/24"


# Outside


def run(command, work):
    """Runs a command in namespaces of its own -> its exit status; then nothing of it is left.

    SIGTERM ends the lab at once. Ctrl-C reaches the command as well, which gets 15 s to finish.
    To be called in the main thread: it handles signals, and the lab dies with its thread.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    child = subprocess.Popen([*NAMESPACES, *command])
    try:
        return child.wait()
    except KeyboardInterrupt:
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(15)
        return 130
    finally:
        child.kill()  # and so the first process in there, and so all
        child.wait()
        remove_cgroups(work.name)


@contextlib.contextmanager
def work_dir():
    """A folder for one lab, locked while it lives; folders of labs that were killed go first."""
    for tool_name in ("unshare", "setpriv", "nsenter", "ip", "openssl"):
        tool(tool_name, "run nodes in namespaces")
    _sweep()
    work = pathlib.Path(tempfile.mkdtemp(prefix=f"kubelab-{os.getpid()}-")).resolve()
    if work.parts[1] in ("var", "run"):
        work.rmdir()
        raise SystemExit(f"{work} would be hidden in the lab: set TMPDIR outside /var and /run")
    with open(work / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            yield work
        finally:
            shutil.rmtree(work, ignore_errors=True)


def _sweep():
    for path in pathlib.Path(tempfile.gettempdir()).glob("kubelab-*/lock"):
        with contextlib.suppress(OSError), open(path) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # refused while its lab lives
            if time.time() - path.stat().st_mtime > 60:  # not one that is just being made
                log(f"removing what is left of a killed lab: {path.parent}")
                remove_cgroups(path.parent.name)
                shutil.rmtree(path.parent, ignore_errors=True)


def remove_cgroups(name):
    """Removes the cgroups of that name, leaves first, once the kernel has emptied them."""
    deadline = time.monotonic() + 10
    for top in (hierarchy / name for hierarchy in _hierarchies(unified=True)):
        while top.is_dir():
            for folder, _, _ in os.walk(top, topdown=False):
                with contextlib.suppress(OSError):  # a process in there is still dying
                    os.rmdir(folder)
            if time.monotonic() > deadline:
                log(f"cgroup {top} is still in use")
                break
            time.sleep(0.02)


def _hierarchies(unified=False):
    """-> the roots of the cgroup trees: one for v2, one for each controller for v1."""
    if (CGROUPS / "cgroup.controllers").exists():
        return [CGROUPS]
    skip = () if unified else ("unified",)
    roots = (p for p in CGROUPS.iterdir() if p.is_dir() and not p.is_symlink())
    return [root for root in roots if root.name not in skip]


# Inside


def set_up(work, nodes):
    """Private paths, a network namespace for each node, and a cgroup for each."""
    _private_paths(work)
    _network(nodes)
    for root in _hierarchies():
        _make_cgroup(root / work.name)
        for number in range(nodes):
            _make_cgroup(root / work.name / f"node-{number}")


def _call(*args):
    subprocess.run(list(map(str, args)), check=True, capture_output=True)


def _private_paths(work):
    """Some paths of containerd, kubelet and CNI are fixed: make them the lab's own here.

    /run/containerd, /run/netns, /var/lib/kubelet, /var/lib/cni, /var/log/containers, ...
    """
    _call("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "/run")
    os.makedirs("/run/netns")
    layers = work / "layers"
    layers.mkdir()
    _call("mount", "-t", "tmpfs", "tmpfs", layers)
    (layers / "upper").mkdir()
    (layers / "work").mkdir()
    options = f"lowerdir=/var,upperdir={layers}/upper,workdir={layers}/work"
    _call("mount", "-t", "overlay", "overlay", "-o", options, "/var")
    for name, value in SYSCTLS.items():
        copy = work / name.replace("/", ".")
        copy.write_text(f"{value}\n")
        _call("mount", "--bind", copy, f"/proc/sys/{name}")


def _network(nodes):
    """A bridge with this namespace and each node's on it, and routes to the pods behind them."""
    _call("ip", "link", "set", "lo", "up")
    _call("ip", "link", "add", "nodes", "type", "bridge")
    _call("ip", "addr", "add", f"{OUTSIDE_IP}/24", "dev", "nodes")
    _call("ip", "link", "set", "nodes", "up")
    for number in range(nodes):
        name, ip = f"node-{number}", node_ip(number)
        _call("ip", "netns", "add", name)
        _call("ip", "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", name)
        _call("ip", "link", "set", name, "master", "nodes", "up")
        _call("ip", "-n", name, "link", "set", "lo", "up")
        _call("ip", "-n", name, "addr", "add", f"{ip}/24", "dev", "eth0")
        _call("ip", "-n", name, "link", "set", "eth0", "up")
        _call("ip", "-n", name, "route", "add", "default", "via", OUTSIDE_IP)
        forward = "echo 1 > /proc/sys/net/ipv4/ip_forward"
        _call("nsenter", f"--net=/run/netns/{name}", "sh", "-c", forward)
        _call("ip", "route", "add", pod_subnet(number), "via", ip)
        for other in set(range(nodes)) - {number}:
            route = (pod_subnet(other), "via", node_ip(other))
            _call("ip", "-n", name, "route", "add", *route)
    # ClusterIPs, for the command in the lab: by way of the first node's kube-proxy
    _call("ip", "route", "add", "10.96.0.0/16", "via", node_ip(0))


def _make_cgroup(path):
    path.mkdir()
    if (path / "cgroup.controllers").exists():  # v2: the parent hands its controllers down
        names = (path.parent / "cgroup.controllers").read_text().split()
        (path.parent / "cgroup.subtree_control").write_text(" ".join(f"+{n}" for n in names))
    for name in ("cpuset.cpus", "cpuset.mems"):  # v1: starts empty, and then takes no process
        if (path / name).exists() and path.relative_to(CGROUPS).parts[0] == "cpuset":
            (path / name).write_text((path.parent / name).read_text())
