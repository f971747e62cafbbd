# SPDX-License-Identifier: MIT
"""Real nodes: containerd, kubelet and kube-proxy in a network namespace each. Needs root.

python3 -m tests.kubelab.nodes run [-n NODES] [--crd FILE] [--image TAR] [--logs DIR] -- COMMAND ...

runs COMMAND in a lab, with KUBECONFIG and kubectl on PATH, and then takes everything down. The
command is at 10.200.0.1, node I at 10.200.0.(11+I), its pods in 10.244.I.0/24.
"""

import argparse
import json
import os
import pathlib
import platform
import shutil
import signal
import subprocess
import sys

from tests.kubelab import build, sandbox
from tests.kubelab.cluster import Cluster
from tests.kubelab.programs import http_get
from tests.kubelab.sandbox import OUTSIDE_IP, node_ip, pod_subnet

CONTAINERD = """\
version = 2
root = "{folder}/containerd"
state = "{folder}/containerd-state"
[plugins."io.containerd.internal.v1.opt"]
  path = "{folder}/opt"
[grpc]
  address = "{folder}/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  stream_server_address = "127.0.0.1"
  restrict_oom_score_adj = true
  disable_apparmor = true
[plugins."io.containerd.grpc.v1.cri".containerd]
  snapshotter = "overlayfs"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
  BinaryName = "{debs}/usr/sbin/runc"
  SystemdCgroup = false
  Root = "{folder}/runc"
[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "{debs}/usr/lib/cni"
  conf_dir = "{folder}/cni"
"""
COREFILE = """\
.:53 {{
    bind {ip}
    errors
    ready 127.0.0.1:8181
    kubernetes cluster.local in-addr.arpa ip6.arpa {{
        kubeconfig {kubeconfig}
        pods insecure
        ttl 1
    }}
}}
"""
NO_EVICTION = {
    "memory.available": "50Mi",
    **dict.fromkeys(("nodefs.available", "nodefs.inodesFree"), "0%"),
    **dict.fromkeys(("imagefs.available", "imagefs.inodesFree"), "0%"),
}


class Lab(Cluster):
    """A Cluster with real nodes. To be used inside the namespaces: see run() and inside()."""

    def __init__(self, work, nodes=2, images=(), crds=()):
        """`work` is the sandbox's folder, `images` are tars to load into each node."""
        super().__init__(root=work, address=OUTSIDE_IP, crds=crds)
        self.paths = build.ensure(nodes=True)
        self.nodes = nodes
        self.images = [self.paths.image, *images]

    def apiserver_flags(self):
        """kubectl logs and exec: the API server calls kubelets, and has to prove who it is."""
        user = "/O=system:masters/CN=kube-apiserver-kubelet-client"
        self.pki.issue("kubelet-client", user)
        return [
            f"--kubelet-client-certificate={self.pki['kubelet-client.crt']}",
            f"--kubelet-client-key={self.pki['kubelet-client.key']}",
            "--kubelet-preferred-address-types=InternalIP",
        ]

    def start(self):
        """-> self, with each node Ready, kube-proxy and DNS answering."""
        super().start()
        for number in range(self.nodes):
            folder = self.root / f"node-{number}"
            folder.mkdir()
            self._start_containerd(number, folder)
        for number in range(self.nodes):
            folder = self.root / f"node-{number}"
            self._import_images(number, folder)
            self._start_kubelet(number, folder)
            self._start_proxy(number, folder)
        self._start_dns()
        self.wait_for("nodes", lambda: self.ready_nodes() == self.nodes, needs=[*self.procs])
        for number in range(self.nodes):
            health = f"http://{node_ip(number)}:10256/healthz"
            needs = [f"kube-proxy-{number}"]
            self.wait_for(f"kube-proxy-{number}", lambda url=health: http_get(url), needs=needs)
        return self

    def _spawn_on(self, number, name, *argv):
        """Starts a program in the node's network namespace, with the unpacked packages."""
        debs, libraries = self.paths.debs, f"{platform.machine()}-linux-gnu"
        env = {
            "PATH": f"{debs}/usr/bin:{debs}/usr/sbin:{os.environ['PATH']}",
            "LD_LIBRARY_PATH": f"{debs}/usr/lib/{libraries}:{debs}/lib/{libraries}",
        }
        enter = ("nsenter", f"--net=/run/netns/node-{number}", "--")
        self.spawn(f"{name}-{number}", *enter, *argv, env=env)

    def _start_containerd(self, number, folder):
        ranges = [[{"subnet": pod_subnet(number)}]]
        ipam = {
            "type": "host-local",
            "dataDir": str(folder / "cni-ipam"),
            "ranges": ranges,
            "routes": [{"dst": "0.0.0.0/0"}],
        }
        bridge = {"type": "bridge", "bridge": "cni0", "isGateway": True, "hairpinMode": True}
        plugins = [bridge | {"ipMasq": False, "ipam": ipam}]
        network = {"cniVersion": "0.4.0", "name": "pods", "plugins": plugins}
        (folder / "cni").mkdir()
        (folder / "cni" / "pods.conflist").write_text(json.dumps(network))
        facts = {"folder": folder, "debs": self.paths.debs, "pause": build.PAUSE_IMAGE}
        config = folder / "containerd.toml"
        config.write_text(CONTAINERD.format(**facts))
        program = self.paths.debs / "usr/bin/containerd"
        self._spawn_on(number, "containerd", program, "--config", config)

    def _import_images(self, number, folder):
        program, socket = self.paths.debs / "usr/bin/ctr", folder / "containerd.sock"

        def ctr(*args):
            command = [program, "--address", socket, "--namespace", "k8s.io", *args]
            return subprocess.run(command, capture_output=True).returncode == 0

        name = f"containerd-{number}"
        self.wait_for(name, lambda: ctr("version"), needs=[name])
        for image in self.images:
            if not ctr("images", "import", image):
                raise RuntimeError(f"{image}: no image that containerd can import")

    def _start_kubelet(self, number, folder):
        name, ip, pki = f"node-{number}", node_ip(number), self.pki
        key = f"kubelet-{number}"
        pki.issue(key, f"/O=system:nodes/CN=system:node:{name}", f"DNS:{name},IP:{ip}")
        certificate = {"client-certificate": str(pki[f"{key}.crt"])}
        config = self.write_kubeconfig(key, certificate | {"client-key": str(pki[f"{key}.key"])})
        (folder / "kubelet.yaml").write_text(json.dumps(self._kubelet_config(number, folder)))
        self._spawn_on(
            *(number, "kubelet", self.paths.bin / "kubelet"),
            *(f"--config={folder / 'kubelet.yaml'}", f"--kubeconfig={config}"),
            *(f"--root-dir={folder / 'kubelet'}", f"--cert-dir={folder}"),
            *(f"--hostname-override={name}", f"--node-ip={ip}"),
        )

    def _kubelet_config(self, number, folder):
        pki, key = self.pki, f"kubelet-{number}"
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": str(pki["ca.crt"])},
            },
            "authorization": {"mode": "Webhook"},
            "tlsCertFile": str(pki[f"{key}.crt"]),
            "tlsPrivateKeyFile": str(pki[f"{key}.key"]),
            "address": node_ip(number),
            "healthzBindAddress": "127.0.0.1",
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": f"/{self.root.name}/node-{number}",
            "failSwapOn": False,
            "failCgroupV1": False,
            "containerRuntimeEndpoint": f"unix://{folder / 'containerd.sock'}",
            "imageGCHighThresholdPercent": 100,  # never removes an image: none can be pulled
            "imageGCLowThresholdPercent": 99,
            "evictionHard": NO_EVICTION,
            "clusterDomain": "cluster.local",
            "clusterDNS": [OUTSIDE_IP],
            "resolvConf": "",
            "podLogsDir": str(folder / "podlogs"),
            "volumePluginDir": str(folder / "volume-plugins"),
            "maxPods": 50,
        }

    def _start_proxy(self, number, folder):
        ip = node_ip(number)
        config = {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "mode": "nftables",
            "bindAddress": ip,
            "healthzBindAddress": f"{ip}:10256",
            "metricsBindAddress": "127.0.0.1:10249",
            "clusterCIDR": "10.244.0.0/16",
            "hostnameOverride": f"node-{number}",
            "clientConnection": {"kubeconfig": str(self.kubeconfig)},
            "conntrack": {"maxPerCore": 0, "min": 0},  # its sysctls are the machine's: hands off
        }
        config["conntrack"] |= {"tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"}
        (folder / "proxy.yaml").write_text(json.dumps(config))
        flag = f"--config={folder / 'proxy.yaml'}"
        self._spawn_on(number, "kube-proxy", self.paths.bin / "kube-proxy", flag)

    def _start_dns(self):
        corefile = self.root / "Corefile"
        corefile.write_text(COREFILE.format(ip=OUTSIDE_IP, kubeconfig=self.kubeconfig))
        self.spawn("coredns", self.paths.coredns, "-conf", corefile)
        ready = "http://127.0.0.1:8181/ready"
        self.wait_for("coredns", lambda: http_get(ready), needs=["coredns"])


def run(command, options=()):
    """Runs a command in a new lab -> its exit status. `options` are those of the command line."""
    if os.geteuid():
        raise build.Unavailable("real nodes need root")
    build.ensure(nodes=True)
    with sandbox.work_dir() as work:
        again = [sys.executable, "-m", "tests.kubelab.nodes", "inside", "--work", str(work)]
        return sandbox.run([*again, *map(str, options), "--", *command], work)


def inside(args):
    """The other half of run(), as the first process of the namespaces."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sandbox.set_up(args.work, args.nodes)
    try:
        with Lab(args.work, args.nodes, args.image, args.crd) as lab:
            build.log(f"{args.nodes} nodes up: {json.dumps(lab.seconds)}")
            env = lab.env() | {"KUBELAB": str(args.work)}
            signal.signal(signal.SIGINT, lambda *_: None)  # Ctrl-C: the command decides
            return subprocess.run(args.command, env=env).returncode
    finally:
        if args.logs:
            args.logs.mkdir(parents=True, exist_ok=True)
            for log in [*args.work.glob("*.log"), *args.work.glob("node-*/podlogs/*/*/*.log")]:
                shutil.copy(log, args.logs / str(log.relative_to(args.work)).replace("/", "_"))


def main():
    path = pathlib.Path
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=("run", "inside"), help="`inside` is for run's own use")
    parser.add_argument("-n", "--nodes", type=int, default=2)
    parser.add_argument("--crd", type=path, action="append", default=[], help="manifest to apply")
    parser.add_argument("--image", type=path, action="append", default=[], help="tar to load")
    parser.add_argument("--logs", type=path, help="folder for the programs' logs")
    parser.add_argument("--work", type=path, help=argparse.SUPPRESS)
    parser.add_argument("command", nargs="+", metavar="-- COMMAND")
    args = parser.parse_args()
    if args.action == "inside":
        return inside(args)
    options = [("--nodes", args.nodes), *(("--crd", file) for file in args.crd)]
    options += [("--image", file) for file in args.image]
    options += [("--logs", args.logs)] if args.logs else []
    return run(args.command, [part for pair in options for part in pair])


if __name__ == "__main__":
    try:
        sys.exit(main())
    except build.Unavailable as problem:
        sys.exit(f"kubelab: {problem}")
