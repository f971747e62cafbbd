# SPDX-License-Identifier: MIT
"""A real control plane on loopback: etcd, kube-apiserver, controller-manager, scheduler.

with Cluster() as cluster:
    cluster.kubectl("create", "namespace", "test")     # or a client, with cluster.kubeconfig

Its nodes are none, or fake ones (kwok, or statuses that the test writes).
"""

import json
import os
import re
import shutil
import ssl
import subprocess
import tempfile
import time

from tests.kubelab import build
from tests.kubelab.pki import Pki
from tests.kubelab.programs import Programs, free_ports, http_get

USERS = {  # static tokens: name of the file, (user, groups)
    "admin": ("admin", "system:masters"),
    "controllers": ("system:kube-controller-manager", ""),
    "scheduler": ("system:kube-scheduler", ""),
}
BUSY = re.compile(
    "TLS handshake timeout|error dialing backend|was refused - did you|etcdserver: request timed"
)
"""What kubectl says where a busy machine did not answer in time, as it will a moment later."""
FACTS = "facts.json"  # what a Joined cluster has to know, under `root`


def kubectl(*args, manifest=None, check=True, env=None) -> str:
    """-> what kubectl prints. `manifest`, an object, goes to its stdin (create -f -)."""
    stdin = None if manifest is None else json.dumps(manifest)
    command = ["kubectl", *map(str, args)]
    for _ in range(10):
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, env=env)
        if not (done.returncode and BUSY.search(done.stderr)):
            break
        time.sleep(1)
    if check and done.returncode:
        raise RuntimeError(f"{' '.join(command[:6])}: {done.stderr.strip()}")
    return done.stdout


class Cluster(Programs):
    """start() .. stop(), or a context manager. Everything it writes is under `root`."""

    def __init__(self, root=None, address="127.0.0.1", crds=()):
        """`crds` are manifest files, applied before the controllers start (see README)."""
        in_memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        for name in ("openssl", "setpriv"):
            build.tool(name, "start a control plane")
        self.paths = build.ensure()
        self.own_root = root is None
        super().__init__(root or tempfile.mkdtemp(prefix="kubelab-", dir=in_memory))
        self.address = address
        self.crds = crds
        self.kubeconfig = self.root / "admin.kubeconfig"

    # The control plane

    def start(self):
        """-> self, with all programs up and the default ServiceAccount made."""
        start = time.monotonic()
        self.pki = Pki(self.root / "pki")
        self.pki.issue_apiserver(self.address)
        self._start_etcd()
        self._start_apiserver()
        self._apply_crds()
        self._start_controllers()
        self._start_scheduler()
        account = "/api/v1/namespaces/default/serviceaccounts/default"
        self.wait_for("controllers", lambda: self.get(account), needs=["kube-controller-manager"])
        facts = {"address": self.address, "url": self.url, "tokens": self.tokens}
        (self.root / FACTS).touch(mode=0o600)
        (self.root / FACTS).write_text(json.dumps(facts))
        self.seconds["control plane"] = round(time.monotonic() - start, 2)
        return self

    def _start_etcd(self):
        client, peer = (f"http://127.0.0.1:{port}" for port in free_ports(2))
        self.etcd_url = client
        self.spawn(
            "etcd",
            self.paths.bin / "etcd",
            f"--data-dir={self.root / 'etcd'}",
            *(f"--listen-client-urls={client}", f"--advertise-client-urls={client}"),
            *(f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}"),
            f"--initial-cluster=default={peer}",
            *("--heartbeat-interval=10", "--election-timeout=100"),  # one member elects at once
            "--unsafe-no-fsync",
        )
        self.wait_for("etcd", lambda: http_get(client + "/health"), needs=["etcd"])

    def _start_apiserver(self):
        pki = self.pki
        self.url = f"https://{self.address}:{free_ports(1)[0]}"
        self.tokens = {name: os.urandom(16).hex() for name in USERS}
        table = self.root / "tokens.csv"
        table.touch(mode=0o600)
        lines = [f'{self.tokens[n]},{user},{n},"{groups}"' for n, (user, groups) in USERS.items()]
        table.write_text("\n".join(lines) + "\n")
        self.spawn(
            "kube-apiserver",
            self.paths.bin / "kube-apiserver",
            f"--etcd-servers={self.etcd_url}",
            *(f"--bind-address={self.address}", f"--advertise-address={self.address}"),
            f"--secure-port={self.url.rpartition(':')[2]}",
            *("--service-cluster-ip-range=10.96.0.0/16", "--allow-privileged=true"),
            *("--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction"),
            *(f"--token-auth-file={table}", f"--client-ca-file={pki['ca.crt']}"),
            f"--tls-cert-file={pki['apiserver.crt']}",
            f"--tls-private-key-file={pki['apiserver.key']}",
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
            f"--service-account-key-file={pki['sa.pub']}",
            f"--service-account-signing-key-file={pki['sa.key']}",
            *self.apiserver_flags(),
        )
        self.wait_for("API server", lambda: self.get("/readyz"), needs=["kube-apiserver"])
        self.write_kubeconfig("admin", {"token": self.tokens["admin"]})

    def apiserver_flags(self):
        """A loopback address can't be the endpoint of the Service `kubernetes`."""
        return ["--endpoint-reconciler-type=none"]

    def _apply_crds(self):
        for file in self.crds:
            self.kubectl("apply", "--server-side", "-f", file)
            # kubectl fails at once, rather than wait, while a CRD has no conditions at all.
            wait = ("wait", "--for=condition=Established", "--timeout=5s", "-f", file)
            self.wait_for("CRDs", lambda wait=wait: self.kubectl(*wait, check=False))

    def _start_controllers(self):
        pki = self.pki
        self._start_client(
            "kube-controller-manager",
            "controllers",
            *("--use-service-account-credentials=true", "--service-cluster-ip-range=10.96.0.0/16"),
            f"--service-account-private-key-file={pki['sa.key']}",
            f"--root-ca-file={pki['ca.crt']}",
            f"--cluster-signing-cert-file={pki['ca.crt']}",
            f"--cluster-signing-key-file={pki['ca.key']}",
            f"--flex-volume-plugin-dir={self.root / 'flex'}",
            *("--kube-api-qps=1000", "--kube-api-burst=2000"),
            # On a busy machine heartbeats are late, and nobody makes kwok's pods ready again.
            "--node-monitor-grace-period=1h",
            *self.controller_flags(),
        )

    def controller_flags(self):
        """Pods of nodes that are not there stay, for a test to see who deletes them."""
        return ["--controllers=*,-pod-garbage-collector-controller"]

    def _start_scheduler(self):
        self._start_client("kube-scheduler", "scheduler")

    def _start_client(self, program, user, *flags):
        config = self.write_kubeconfig(user, {"token": self.tokens[user]})
        self.spawn(
            program,
            self.paths.bin / program,
            *(f"--{kind}kubeconfig={config}" for kind in ("", "authentication-", "authorization-")),
            *("--bind-address=127.0.0.1", f"--secure-port={free_ports(1)[0]}"),
            *(f"--cert-dir={self.pki.folder}", "--leader-elect=false"),
            *flags,
        )

    def write_kubeconfig(self, name, user):
        """-> root/NAME.kubeconfig, for a user such as {"token": ...}. JSON is YAML."""
        cluster = {"server": self.url, "certificate-authority": str(self.pki["ca.crt"])}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "lab",
            "clusters": [{"name": "lab", "cluster": cluster}],
            "users": [{"name": name, "user": user}],
            "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": name}}],
        }
        file = self.root / f"{name}.kubeconfig"
        file.touch(mode=0o600)
        file.write_text(json.dumps(config))
        return file

    # For its users

    def env(self):
        """-> the environment that makes kubectl and clients of this cluster work."""
        no_proxy = os.environ.get("NO_PROXY") or os.environ.get("no_proxy") or "localhost"
        no_proxy += f",127.0.0.1,{self.address}"
        return os.environ | {
            "KUBECONFIG": str(self.kubeconfig),
            "KUBECACHEDIR": str(self.root / "kubectl-cache"),
            "PATH": f"{self.paths.bin}:{os.environ['PATH']}",
            "NO_PROXY": no_proxy,
            "no_proxy": no_proxy,
        }

    def kubectl(self, *args, **options) -> str:
        return kubectl(*args, **options, env=self.env())

    def ready_nodes(self):
        """-> how many nodes are Ready."""
        nodes = json.loads(self.get("/api/v1/nodes") or '{"items": []}')["items"]
        conditions = [c for node in nodes for c in node["status"].get("conditions", [])]
        return sum(c["type"] == "Ready" and c["status"] == "True" for c in conditions)

    def get(self, path):
        """-> the API server's answer to GET path, as admin, or None where there is none."""
        context = ssl.create_default_context(cafile=str(self.pki["ca.crt"]))
        return http_get(self.url + path, self.tokens["admin"], context)

    def stop(self):
        """Kills the programs, and removes root unless it was given."""
        self.kill_all()
        if self.own_root:
            shutil.rmtree(self.root, ignore_errors=True)

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.stop()
            raise

    def __exit__(self, *_exc):
        self.stop()


class Joined(Cluster):
    """One that another process has started under `root`, and that goes on without this one."""

    def __init__(self, root: str) -> None:
        Programs.__init__(self, root)
        self.paths = build.ensure()
        self.kubeconfig = self.root / "admin.kubeconfig"
        self.pki = Pki(self.root / "pki")
        vars(self).update(json.loads((self.root / FACTS).read_text()))

    def start(self):
        return self

    def stop(self):
        """It is not this one's to stop."""
