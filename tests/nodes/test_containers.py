# SPDX-License-Identifier: MIT
"""Several containers in a pod, on real nodes: sidecars, a service; and from outside.

Examples are used as they are, but for images, which are empty with this machine's
programs in them.
"""

from __future__ import annotations

import base64
import json
import os
import shlex
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from burst_kube.provider import KubeProvider, KubeSettings

from burst.config import convert, load
from burst.kits import certificate
from burst.provider import Phase
from tests.e2e.programs import FLUX, ROOT, provider_table
from tests.kubelab.cluster import Cluster
from tests.kubelab.sandbox import OUTSIDE_IP
from tests.nodes.fluxbursts import burst, reap_all, wait_for_return
from tests.nodes.isolated_site import (
    KINDS,
    NEVER,
    SLOT,
    UNTIL_TOLD,
    IsolatedSite,
    container,
    isolated_site,
)
from tests.nodes.waiting import wait_until
from tests.support.fluxlead import flux_lead, needs_flux
from tests.support.ports import free_port
from tests.support.waiting import HANG_S

pytestmark = [pytest.mark.nodes, needs_flux]
EXAMPLES = ROOT / "examples"
TOKEN = "not-a-secret"
FLUX_URI = {"name": "FLUX_URI", "value": "local:///burst/socket/broker/local"}


def shared(name: str) -> dict[str, Any]:
    """Return a native sidecar that has the broker's socket and is never ready."""
    mount = {"name": "socket", "mountPath": "/burst/socket", "readOnly": True}
    return container(
        name,
        restartPolicy="Always",
        readinessProbe=NEVER,
        env=[FLUX_URI],
        volumeMounts=[mount],
    )


def restarts(cluster: Cluster, namespace: str, pod: str) -> int:
    """Return how often the broker of a pod was started again."""
    status = json.loads(
        cluster.kubectl("get", "pod", pod, "-n", namespace, "-o", "json")
    )["status"]
    return sum(
        int(each["restartCount"])
        for each in status["containerStatuses"]
        if each["name"] == "broker"
    )


def test_beside_sidecars_brokers_join_come_back_and_end(
    cluster: Cluster, namespace: str
) -> None:
    spec_of_pod = {
        "initContainers": [shared("watcher")],
        "containers": [container("endless", readinessProbe=NEVER)],
    }
    table = provider_table(cluster, namespace, pod={"spec": spec_of_pod})
    settings = convert(KubeSettings, table, "providers.far")
    provider = KubeProvider("far", settings, "owner-1", timeout=HANG_S)
    with flux_lead(SLOT, address=OUTSIDE_IP) as lead:
        spec = burst(lead, provider, 2)
        where = ("-n", namespace)
        pods = json.loads(cluster.kubectl("get", "pods", *where, "-o", "json"))["items"]
        for pod in pods:
            conditions = {c["type"]: c["status"] for c in pod["status"]["conditions"]}
            assert conditions["Ready"] == "False"
        name, other = (pod["metadata"]["name"] for pod in pods)
        inside = ("exec", *where, name, "-c", "watcher", "--", "flux", "getattr")
        assert cluster.kubectl(*inside, "size").strip() == "3"
        # The broker is told to end, by whom the daemon does not know: it comes back.
        end = ("exec", *where, name, "-c", "broker", "--", "sh", "-c", "kill -TERM 1")
        cluster.kubectl(*end, check=False)
        # By what status it ended a busy kubelet does not always know.
        wait_for_return(lead, provider, spec, "exit status")
        assert provider.observe()[0].phase is Phase.RUNNING
        # The lead cuts off the other's; pods are listed by their index.
        cut = lead.flux("overlay", "disconnect", "2")
        assert cut.returncode == 0, cut.stderr
        wait_until(lambda: restarts(cluster, namespace, other) > 0, provider.observe)
        wait_until(lambda: set(spec.hosts) <= lead.online(), "it to be back")
        reap_all(provider, spec)


def test_a_native_sidecar_ends_with_the_broker_though_no_daemon_is_there(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    pod = {"spec": {"initContainers": [shared("watcher")]}}
    more: dict[str, Any] = {"pod": pod}
    with isolated_site(cluster, namespace, tmp_path, **more) as site:
        words = ("--isolated", "--no-wait", "--", "sh", "-c", UNTIL_TOLD)
        site.burst("request", "-N2", *words)
        wait_until(lambda: len(site.objects("pods")) == 2, site.look)
        site.daemon.kill()
        site.daemon.wait()
        site.tell_pods()

        def complete() -> bool:
            (job,) = site.objects("jobs")
            conditions = job["status"].get("conditions", [])
            return any(
                c["type"] == "Complete" and c["status"] == "True" for c in conditions
            )

        wait_until(complete, site.look)


@contextmanager
def forwarded(site: IsolatedSite, pod: str, port: int) -> Iterator[str]:
    """Give the URL at which `kubectl port-forward` has a port of a pod."""
    own = free_port()
    where = ["kubectl", "--kubeconfig", str(site.cluster.kubeconfig)]
    words = ["-n", site.namespace, "port-forward", pod, f"{own}:{port}"]
    # It ends with the first connection that the pod refuses.
    again = f"while :; do {shlex.join([*where, *words])}; sleep 0.2; done"
    with (site.place / "forward.log").open("wb") as log:
        loop = subprocess.Popen(
            ["sh", "-c", again], stdout=log, stderr=log, start_new_session=True
        )
    try:
        yield f"http://127.0.0.1:{own}"
    finally:
        os.killpg(loop.pid, signal.SIGKILL)
        loop.wait()


def ask(url: str, token: str, **body: Any) -> tuple[int, dict[str, Any]]:
    """Return the status and the body that the service answers; 0 if it does not."""
    data = json.dumps(body).encode() if body else None
    headers = {"Authorization": f"Bearer {token}"}
    request = urllib.request.Request(url, data, headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)
    except OSError:
        return 0, {}


def test_the_service_of_the_example_has_the_instance(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    source = EXAMPLES / "service"
    where = ("-n", namespace, "create")
    made = f"--from-file={source / 'queue_service.py'}"
    cluster.kubectl(*where, "configmap", "queue-service", made)
    token = f"--from-literal=token={TOKEN}"
    cluster.kubectl(*where, "secret", "generic", "queue-service", token)
    options = load(source / "burst.toml").providers["far"].options
    pod = json.loads(json.dumps(options["pod"]))
    pod["spec"]["initContainers"] = [
        container(**each) for each in pod["spec"]["initContainers"]
    ]
    more = {"pod": pod}
    with isolated_site(cluster, namespace, tmp_path, **more) as site:
        site.burst("request", "-N2", "--isolated")
        row = json.loads(site.burst("status", "--json"))["bursts"][0]
        name = next(
            p["metadata"]["name"]
            for p in site.objects("pods")
            if p["metadata"]["name"].startswith(f"{row['id']}-0-")
        )
        with forwarded(site, name, 5000) as url:
            queue = f"{url}/v1/queue"
            wait_until(lambda: ask(queue, TOKEN)[0] == 200, site.look)
            assert ask(queue, TOKEN) == (200, {"nodes": 2, "jobs": {}})
            assert ask(queue, "wrong")[0] == 401
            asked = {"command": ["sh", "-c", "exit 3"], "nodes": 2}
            status, job = ask(f"{url}/v1/jobs", TOKEN, **asked)
            assert status == 201
            path = f"{url}/v1/jobs/{job['id']}"
            wait_until(
                lambda: ask(path, TOKEN)[1].get("state") == "INACTIVE", site.look
            )
            status, job = ask(path, TOKEN)
            assert (status, job["exit_status"]) == (200, 3)
        site.burst("down", row["id"])
        site.gone()


def test_kubectl_and_a_python_program_outside_have_the_instance(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    # As by default: Flux signs a job as the user who submits it.
    with isolated_site(cluster, namespace, tmp_path, user=os.geteuid()) as site:
        said = site.burst("request", "-N2", "--isolated")
        access = next(line for line in said.splitlines() if line.startswith("kubectl "))
        burst_id = json.loads(site.burst("status", "--json"))["bursts"][0]["id"]
        hosts = [f"{burst_id}-0", f"{burst_id}-1"]
        words = shlex.split(access)
        inside = [word for word in words[1:] if word != "-it"]
        inside += ["flux", "run", "-N2", "flux", "getattr", "hostname"]
        assert sorted(cluster.kubectl(*inside).split()) == hosts
        check_secret(site)
        pod = words[words.index("-n") + 2]
        example = EXAMPLES / "interactive" / "interactive.py"
        outside = {k: v for k, v in os.environ.items() if not k.startswith("FLUX_")}
        done = subprocess.run(
            [FLUX, "python", str(example), pod, namespace, "hostname"],
            env={**outside, "KUBECONFIG": str(cluster.kubeconfig)},
            capture_output=True,
            text=True,
            timeout=HANG_S,
            check=False,
        )
        assert done.stderr.startswith("connected to 2 brokers in "), done.stderr
        assert sorted(done.stdout.split()) == hosts
        site.burst("down", burst_id)
        site.gone()


def check_secret(site: IsolatedSite) -> None:
    """The instance's certificate is its own, and in its Secret only."""
    (secret,) = site.objects("secrets")
    text = base64.b64decode(secret["data"]["curve.cert"]).decode()
    made = certificate.parse(text, "the Secret")
    assert made.public != certificate.read(site.lead.files.certificate).public
    key = made.secret.decode()
    kinds = KINDS.replace("secrets,", "") + ",events"
    where = ("-n", site.namespace, "-o", "json")
    assert key not in site.cluster.kubectl("get", kinds, *where)
    assert key not in site.log.read_text()
