# SPDX-License-Identifier: MIT
"""A burst, whole: a lead broker behind a NodePort, followers in another namespace, a waiting job.

python3 -m tests.kubelab.demo_burst, as root, with `flux` on PATH. One JSON line of seconds goes
to stdout.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

from tests.kubelab import nodes
from tests.kubelab.build import log
from tests.kubelab.cluster import kubectl
from tests.kubelab.pods import flux_mounts, pod_spec
from tests.kubelab.sandbox import node_ip

FOLLOWERS = 2
HOSTS = f"lead-0,burst-0-[0-{FOLLOWERS - 1}]"
NODE_PORT = 30093
BROKER_TOML = f"""\
[bootstrap]
curve_cert = "/secret/curve.cert"
default_port = 8050
default_bind = "tcp://eth0:%p"
hosts = [
    {{ host = "lead-0", bind = "tcp://eth0:8050", connect = "tcp://{node_ip(0)}:{NODE_PORT}" }},
    {{ host = "burst-0-[0-{FOLLOWERS - 1}]" }},
]
[resource]
noverify = true
path = "/config/R"
[tbon]
tcp_user_timeout = "5s"
"""
LEAD_URI = "local:///tmp/lead"
FOLLOW = ["flux", "broker", "--config-path=/config/broker.toml", "-Slog-stderr-level=6"]
# Quorum 1: the lead runs without its followers. rc2_none: it stays, with no initial program.
LEAD = [*FOLLOW, "-Sbroker.quorum=1", "-Sbroker.rc2_none=1", f"-Slocal-uri={LEAD_URI}"]


def create(namespace, kind, name, api="v1", **fields):
    """Creates one object."""
    manifest = {"apiVersion": api, "kind": kind, "metadata": {"name": name}, **fields}
    kubectl("create", "-n", namespace, "-f", "-", manifest=manifest)


def flux(*args):
    return subprocess.run(["flux", *args], capture_output=True, text=True, check=True).stdout


def create_namespace(name):
    """A namespace with the brokers' configuration and resources."""
    kubectl("create", "namespace", name)
    size = f"0-{FOLLOWERS}"
    ranks = flux("R", "encode", "-r", size, "-c", "0-1", "-H", HOSTS, "-p", f"burst:1-{FOLLOWERS}")
    create(name, "ConfigMap", "broker", data={"broker.toml": BROKER_TOML, "R": ranks})


def share_certificate(*namespaces):
    """One CURVE key pair for all; it is on disk here only while kubectl reads it."""
    with tempfile.TemporaryDirectory() as folder:
        flux("keygen", "--name=burst", f"{folder}/curve.cert")
        for name in namespaces:
            file = f"--from-file={folder}/curve.cert"
            kubectl("create", "secret", "generic", "curve", "-n", name, file)


def create_brokers(namespace, name, size, command):
    """An indexed Job, so pod I has the hostname NAME-I, spread over the nodes."""
    volumes = {
        "/config": {"configMap": {"name": "broker"}},
        "/secret": {"secret": {"secretName": "curve", "defaultMode": 0o400}},
    }
    env = {
        "PATH": f"{pathlib.Path(str(shutil.which('flux'))).parent}:/usr/bin:/bin",
        "HOME": "/tmp",
    }
    spec = pod_spec(command, flux_mounts(), env, volumes)
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"job-name": name}},
    }
    spec["topologySpreadConstraints"] = [spread]
    job = {"completions": size, "parallelism": size, "completionMode": "Indexed", "backoffLimit": 0}
    create(namespace, "Job", name, "batch/v1", spec=job | {"template": {"spec": spec}})


def open_node_port():
    """The lead's port on each node: how brokers outside its namespace reach it."""
    index = {"batch.kubernetes.io/job-completion-index": "0"}
    port = {"port": 8050, "targetPort": 8050, "nodePort": NODE_PORT}
    spec = {"type": "NodePort", "selector": {"job-name": "lead"} | index, "ports": [port]}
    create("near", "Service", "lead", spec=spec)


class Lead:
    """The lead's pod, and flux commands in it."""

    def __init__(self):
        ready = "--for=jsonpath={.status.ready}=1"
        kubectl("wait", "-n", "near", "job/lead", ready, "--timeout=60s")
        self.pod = kubectl("get", "pods", "-n", "near", "-o", "name").strip()

    def flux(self, *args, check=True):
        command = ("/usr/bin/env", f"FLUX_URI={LEAD_URI}", "flux", *args)
        return kubectl("exec", "-n", "near", self.pod, "--", *command, check=check).strip()

    def nodes(self, states):
        """-> how many nodes are in these states, or None while the broker does not answer."""
        count = self.flux("resource", "list", "-s", states, "-no", "{nnodes}", check=False).split()
        return int(count[0]) if count else None


def wait_until(what, check, timeout=60):
    """-> seconds until check() was true."""
    start = time.monotonic()
    while not check():
        if time.monotonic() - start > timeout:
            raise TimeoutError(f"{what}: not after {timeout} s")
        time.sleep(0.05)
    log(f"{what}: {time.monotonic() - start:.2f} s")
    return time.monotonic() - start


def burst(lead, seconds):
    """The job waits, the followers come, the job runs, the followers go."""
    size = f"-N{FOLLOWERS + 1}"
    job = lead.flux("submit", size, "--setattr=burstable", "--cwd=/tmp", "hostname")
    start = time.monotonic()
    create_brokers("far", "burst-0", FOLLOWERS, FOLLOW)
    online = FOLLOWERS + 1
    wait_until("brokers online", lambda: lead.nodes("free,allocated") == online)
    seconds["created_to_online"] = time.monotonic() - start
    lead.flux("job", "wait-event", "-t", "30", job, "clean")
    seconds["created_to_job_done"] = time.monotonic() - start
    output = sorted(lead.flux("job", "attach", "--read-only", job).split())
    expected = sorted(["lead-0", *(f"burst-0-{rank}" for rank in range(FOLLOWERS))])
    if output != expected:
        raise RuntimeError(f"the job ran on {output}, not on {expected}")
    print(kubectl("get", "pods", "-A", "-o", "wide"), file=sys.stderr)
    start = time.monotonic()
    kubectl("delete", "job", "burst-0", "-n", "far", "--cascade=foreground", "--timeout=60s")
    seconds["delete_to_gone"] = time.monotonic() - start
    wait_until("lead lost them", lambda: lead.nodes("down") == FOLLOWERS)
    seconds["delete_to_down_in_flux"] = time.monotonic() - start


def run_experiment():
    """-> seconds of each part."""
    seconds = {}
    start = time.monotonic()
    create_namespace("near")
    create_namespace("far")
    share_certificate("near", "far")
    open_node_port()
    create_brokers("near", "lead", 1, LEAD)
    lead = Lead()
    wait_until("lead up", lambda: lead.nodes("free") == 1)
    seconds["lead_up"] = time.monotonic() - start
    burst(lead, seconds)
    return {name: round(value, 2) for name, value in seconds.items()}


def main():
    try:
        print(json.dumps(run_experiment()))
    except BaseException:
        for namespace in ("near", "far"):
            logs = kubectl("logs", "-n", namespace, "-l", "job-name", "--tail=20", check=False)
            print(logs, file=sys.stderr)
        raise


if __name__ == "__main__":
    if "KUBELAB" in os.environ:
        main()
    elif not shutil.which("flux"):
        sys.exit("flux is not on PATH")
    else:
        sys.exit(nodes.run([sys.executable, "-m", "tests.kubelab.demo_burst"]))
