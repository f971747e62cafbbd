# SPDX-License-Identifier: MIT
"""manifests/ as a user would apply them, with two things changed.

Pods have this machine's Flux and Python instead of images, and nodes are smaller.
"""

from __future__ import annotations

import json
import os
import pwd
import shutil
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import tomli_w

from burst.errors import StoreError
from burst.kits import certificate
from burst.runtime.ledger_archive import LedgerArchive
from tests.e2e.programs import BURST, ENVIRONMENT, FLUX, ROOT, host_paths, run
from tests.e2e.shellimage import NEXT_IMAGE
from tests.kubelab.build import PAUSE_IMAGE
from tests.kubelab.cluster import Cluster
from tests.kubernetes.access import new_namespace
from tests.nodes.waiting import wait_until
from tests.support.pod_words import pod_words
from tests.support.waiting import HANG_S

MANIFESTS = ROOT / "manifests"
LEAD_ENVIRONMENT = {**ENVIRONMENT, "PYTHONPATH": ""}
KINDS = "pods,jobs,configmaps,secrets,services,events"
OURS = ("-l", "burst.flux-framework.org/owner")
OF_SEED = "example.com/of-seed"
"""A label of what a seed has in no namespace, with that of its lead."""


def some_user() -> int:
    """Return a user that is not root and has a name, as a broker wants."""
    return next(entry.pw_uid for entry in pwd.getpwall() if entry.pw_uid >= 1000)


def has_processes(uid: str) -> bool:
    """Tell whether a pod has any on this machine, by their cgroups."""
    for path in Path("/proc").glob("[0-9]*/cgroup"):
        with suppress(OSError):  # it has ended
            if uid in path.read_text():
                return True
    return False


class Seed:
    """The lead's namespace, and the one for bursts."""

    overlay = "overlays/plain"
    changed: tuple[str, ...] = ("R", "burst.toml")
    """Files of the ConfigMap burst-lead that `_write_files` writes."""
    files = MANIFESTS / "base" / "lead"
    """Where its R and burst.toml are."""
    far_parts: tuple[str, ...] = ()
    """Of manifests/parts, what is added to `far`."""
    parent = "Job"
    """The kind of what makes a burst's pods."""
    made = frozenset({"Secret", "Job", "Pod", "ConfigMap"})
    """Kinds of which a burst has objects that bear our labels."""

    def __init__(self, cluster: Cluster, near: str, far: str, place: Path) -> None:
        self.cluster = cluster
        self.near = near
        self.far = far
        self.place = place
        self.certificate = place / "curve.cert"
        # Each process of the tests has a port of its own on the nodes.
        worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0")
        self.port = 30093 + int(worker.removeprefix("gw"))
        self._lead: dict[str, Any] = {}

    def apply(self, idle: str = "1s") -> None:
        """Apply manifests/far, the certificate, and the lead with its daemon."""
        patches = [self._subject(), self._host_paths_allowed()]
        parts = [self._path(f"parts/{part}", "far") for part in self.far_parts]
        fields = {"namespace": self.far, "patches": patches, "components": parts}
        self._apply("far", fields)
        self.apply_lead(idle, namespace=self.near)

    def apply_lead(self, idle: str, **fields: Any) -> None:
        """Apply the certificate and the overlay; `fields` are of its kustomization."""
        run(BURST, "keygen", str(self.certificate))
        secret = ("create", "secret", "generic", "burst-curve")
        source = f"--from-file=curve.cert={self.certificate}"
        self.cluster.kubectl(*secret, "-n", self.near, source)
        self._write_files(idle)
        settings = {
            "name": "burst-lead",
            "namespace": "burst",
            "behavior": "merge",
            "files": list(self.changed),
            "options": {"disableNameSuffixHash": True},
        }
        patches = [self.programs(), self._host_paths_allowed(), self._volume()]
        patches += [self._port(), self._binding()]
        lead = {
            **fields,
            "configMapGenerator": [settings],
            "patches": [*patches, *fields.get("patches", ())],
        }
        self._lead = lead
        self._apply(self.overlay, lead)

    def apply_again(self, *patches: dict[str, Any]) -> None:
        """Apply the overlay as before, with these changes."""
        changed = [*self._lead["patches"], *patches]
        self._apply(self.overlay, {**self._lead, "patches": changed})

    def image_of_the_daemon(self, image: str) -> dict[str, Any]:
        """Return the patch by which the daemon's container has another image."""
        daemon = {"name": "burst", "image": image}
        spec = {"template": {"spec": {"initContainers": [daemon]}}}
        job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "lead"}}
        return {"patch": json.dumps({**job, "spec": spec})}

    def evict(self) -> str:
        """Ask for the eviction of the lead's pod, as a drain does; return why not."""
        name = self.pod()
        meta = {"name": name, "namespace": self.near}
        wish = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": meta}
        path = f"/api/v1/namespaces/{self.near}/pods/{name}/eviction"
        try:
            self.cluster.kubectl("create", "--raw", path, "-f", "-", manifest=wish)
        except RuntimeError as error:
            return str(error)
        return ""

    def has_other_pod(self, name: str) -> bool:
        """Return whether a pod of the lead is there, and not the one of this name."""
        where = ("-l", "job-name=lead", "-n", self.near)
        path = "jsonpath={.items[*].metadata.name}"
        names = self.cluster.kubectl("get", "pods", *where, "-o", path).split()
        return bool(names) and name not in names

    def flux(self, *words: str) -> str:
        """Run flux in the lead's container, as its user does."""
        where = ("exec", "-n", self.near, "job/lead", "-c", "lead")
        return self.cluster.kubectl(*where, "--", "flux", *words)

    def burst(self, *words: str, check: bool = True) -> str:
        """Run burst in the daemon's container."""
        where = ("exec", "-n", self.near, "job/lead", "-c", "burst")
        return self.cluster.kubectl(*where, "--", BURST, *words, check=check)

    def status(self, *options: str) -> dict[str, Any]:
        """Return what `burst status` says; empty while no daemon serves."""
        try:
            found = json.loads(self.burst("status", "--json", *options, check=False))
        except json.JSONDecodeError:
            return {}
        # Without a daemon, what is on record is told.
        return dict(found) if found["daemon"] else {}

    def ensemble(self) -> dict[str, Any]:
        """Return the one ensemble, empty while there is none or no daemon."""
        said = self.burst("ensemble", "status", "--json", check=False)
        try:
            found = json.loads(said)["ensembles"]
        except json.JSONDecodeError:
            return {}
        return dict(found[0]) if found else {}

    def pod(self) -> str:
        """Return the name of the lead's pod."""
        where = ("-l", "job-name=lead", "-n", self.near)
        path = "jsonpath={.items[0].metadata.name}"
        return self.cluster.kubectl("get", "pods", *where, "-o", path)

    def delete_pod(self, *how: str) -> None:
        """Delete the lead's pod, as an eviction does; its Job makes another."""
        where = ("pods", "-l", "job-name=lead", "-n", self.near)
        path = "jsonpath={.items[*].metadata.uid}"
        uids = self.cluster.kubectl("get", *where, "-o", path).split()
        self.cluster.kubectl("delete", *where, *how)
        # By force, it is deleted while its containers still run.
        wait_until(lambda: not any(map(has_processes, uids)), self.look)

    def containers(self) -> dict[str, dict[str, Any]]:
        """Return the states of the containers of the lead's pod, by name."""
        where = ("pod", self.pod(), "-n", self.near, "-o", "json")
        status = json.loads(self.cluster.kubectl("get", *where))["status"]
        listed = [
            *status.get("initContainerStatuses", ()),
            *status["containerStatuses"],
        ]
        return {each["name"]: each for each in listed}

    def log(self) -> str:
        """Return what the daemon said, and the lead."""
        return "\n".join(
            self.cluster.kubectl(
                "logs", "-n", self.near, "job/lead", "-c", name, check=False
            )
            for name in ("burst", "lead")
        )

    def look(self) -> str:
        """Return all that a person would look at who asks what is wrong."""
        said = []
        for namespace in (self.near, self.far):
            said.append(self.cluster.kubectl("get", KINDS, "-n", namespace))
            logs = ("logs", "-n", namespace, "-l", "job-name", "--all-containers")
            said.append(self.cluster.kubectl(*logs, "--tail=40", check=False))
        return "\n".join(said)

    def bursts(self) -> list[dict[str, Any]]:
        """Return all objects of bursts."""
        kinds = KINDS.removesuffix(",events")
        found = self.cluster.kubectl("get", kinds, "-n", self.far, *OURS, "-o", "json")
        return list(json.loads(found)["items"])

    def archived(self) -> list[str]:
        """Return the bursts in the archive of what was settled, in the lead's state."""
        file = self.place / "state" / "state" / "burst-ledger.sqlite"
        try:
            return [row.burst for row in LedgerArchive(file).read(0.0).rows]
        except StoreError:
            return []  # the daemon has just made the file, and not its table

    def key(self) -> str:
        """Return the secret key of its certificate."""
        return certificate.read(self.certificate).secret.decode()

    def _apply(self, part: str, fields: dict[str, Any]) -> None:
        folder = self.place / part.replace("/", "-")
        folder.mkdir(exist_ok=True)
        for name in self.changed:
            if (self.place / name).exists():
                shutil.copy(self.place / name, folder)
        resources = [self._path(part, folder.name)]
        (folder / "kustomization.yaml").write_text(
            json.dumps({"resources": resources, **fields})
        )
        self.cluster.kubectl("apply", "-k", folder)

    def _path(self, part: str, folder: str) -> str:
        """Return the path of a part of manifests/ as a kustomization names it."""
        return os.path.relpath(MANIFESTS / part, (self.place / folder).resolve())

    def _subject(self) -> dict[str, Any]:
        path = "/subjects/0/namespace"
        change = [{"op": "replace", "path": path, "value": self.near}]
        return {"target": {"kind": "RoleBinding"}, "patch": json.dumps(change)}

    def followers(self) -> dict[str, Any]:
        """Return what of the provider's settings says in what followers run."""
        return {"image": PAUSE_IMAGE, "host_paths": host_paths(flux=True)}

    def more_settings(self) -> dict[str, Any]:
        """Return tables that replace those of burst.toml."""
        return {}

    def _host_paths_allowed(self) -> dict[str, Any]:
        """Return the patch without which no pod may see files of its node."""
        path = "/metadata/labels/pod-security.kubernetes.io~1enforce"
        change = [{"op": "replace", "path": path, "value": "privileged"}]
        return {"target": {"kind": "Namespace"}, "patch": json.dumps(change)}

    def _port(self) -> dict[str, Any]:
        path = "/spec/ports/0/nodePort"
        change = [{"op": "replace", "path": path, "value": self.port}]
        target = {"kind": "Service", "name": "burst-lead"}
        return {"target": target, "patch": json.dumps(change)}

    def _binding(self) -> dict[str, Any]:
        """Return the patch that names what is in no namespace for this seed alone."""
        name = f"burst-{self.near}"
        return {
            "target": {"kind": "ClusterRoleBinding"},
            "patch": json.dumps(
                [{"op": "replace", "path": "/metadata/name", "value": name}]
            ),
            "options": {"allowNameChange": True},
        }

    def _volume(self) -> dict[str, Any]:
        """Make a volume for the lead's state; return the patch that claims it."""
        return self._claim("burst-state", self.near)

    def _claim(self, claimed: str, namespace: str) -> dict[str, Any]:
        """Make a volume for a claim of a namespace; return the patch that claims it.

        It is the directory `state` of the seed's place for the lead's, else one that
        is named for the claim.
        """
        name = f"{claimed.removeprefix('burst-')}-{namespace}"
        path = self.place / claimed.removeprefix("burst-")
        path.mkdir()
        path.chmod(0o777)
        spec = {
            "capacity": {"storage": "4Gi"},
            "accessModes": ["ReadWriteOnce", "ReadWriteMany"],
            "hostPath": {"path": str(path)},
            "storageClassName": "",
        }
        volume = {"apiVersion": "v1", "kind": "PersistentVolume", "spec": spec}
        meta = {"name": name, "labels": {OF_SEED: self.near}}
        manifest = {**volume, "metadata": meta}
        self.cluster.kubectl("create", "-f", "-", manifest=manifest)
        claim = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": claimed},
            "spec": {"storageClassName": "", "volumeName": name},
        }
        return {"patch": json.dumps(claim)}

    def _write_files(self, idle: str) -> None:
        """Write burst.toml and R as they are, for nodes of one core of this machine."""
        resources = json.loads((self.files / "R").read_text())
        for group in resources["execution"]["R_lite"]:
            group["children"]["core"] = "0"
        (self.place / "R").write_text(json.dumps(resources))
        tables = tomllib.loads((self.files / "burst.toml").read_text())
        tables["deadlines"] |= {"idle": idle, "join": "1h"}
        tables["daemon"] |= {"cadence": "1s"}
        tables["providers"]["kube"] |= {
            "namespace": self.far,
            "flux": FLUX,
            "pod": pod_words(ENVIRONMENT),
            "one_per_node": False,
            "offers": {"nodes": {"cores": 1, "cpu": "100m", "max_nodes": 3}},
            **self.followers(),
        }
        tables |= self.more_settings()
        (self.place / "burst.toml").write_text(tomli_w.dumps(tables))

    def programs(self) -> dict[str, Any]:
        """Return the patch that puts this machine's programs in place of images."""
        names = {path: f"host-{n}" for n, path in enumerate(host_paths(flux=True))}
        common = {
            "image": PAUSE_IMAGE,
            "imagePullPolicy": "Never",
            "resources": {"requests": {"cpu": "50m"}},
            "volumeMounts": [
                {"name": name, "mountPath": path, "readOnly": True}
                for path, name in names.items()
            ],
        }
        env = [
            {"name": name, "value": value} for name, value in LEAD_ENVIRONMENT.items()
        ]
        user = some_user()
        pod = {
            "securityContext": {"runAsUser": user, "runAsGroup": user, "fsGroup": user},
            "initContainers": [
                {"name": "flux-view", "$patch": "delete"},
                {"name": "burst", "command": [BURST], "env": env, **common},
            ],
            "containers": [{"name": "lead", "env": env, **common}],
            "volumes": [
                {"name": name, "hostPath": {"path": path}}
                for path, name in names.items()
            ],
        }
        job = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "lead"},
            "spec": {"template": {"spec": pod}},
        }
        return {"patch": json.dumps(job)}


@contextmanager
def planted(make: type[Seed], cluster: Cluster, place: Path) -> Iterator[Seed]:
    """Give a seed in namespaces of its own; remove what is in none."""
    with ExitStack() as stack:
        names = [
            stack.enter_context(new_namespace(cluster, name))
            for name in ("near", "far")
        ]
        stack.callback(uproot, cluster, names[0])
        yield make(cluster, names[0], names[1], place)


@contextmanager
def named_namespaces(seed: Seed) -> Iterator[None]:
    """Leave nothing of a seed whose namespaces have the names that the files say."""
    names = (seed.near, seed.far)
    # Those of the seed before, whose end nobody waited for.
    gone = (f"namespace/{name}" for name in names)
    seed.cluster.kubectl("wait", "--for=delete", *gone, f"--timeout={HANG_S:g}s")
    try:
        yield
    finally:
        uproot(seed.cluster, seed.near)
        quick = ("--ignore-not-found", "--wait=false")
        seed.cluster.kubectl("delete", "namespace", *names, *quick)


def uproot(cluster: Cluster, near: str) -> None:
    """Remove what a seed has in no namespace, and the Service of its lead."""
    # The next seed has its NodePort, and namespaces take their time to go.
    cluster.kubectl("delete", "service", "--all", "-n", near)
    cluster.kubectl(
        "delete", "clusterrolebinding", f"burst-{near}", "--ignore-not-found"
    )
    # A volume is there until its claim goes with the namespace.
    volumes = ("persistentvolumes", "-l", f"{OF_SEED}={near}")
    cluster.kubectl("delete", *volumes, "--wait=false")


def upgrade_daemon(seed: Seed) -> None:
    """Give the daemon's container another image while a job runs on a burst.

    Only that container is restarted; lead, burst and job go on.
    """
    wait_until(lambda: " serves flux " in seed.log(), seed.look)
    options = ("-N3", "--setattr=burstable", "--cwd=/tmp")
    job = seed.flux("submit", *options, "sleep", "inf").strip()

    def started() -> bool:
        return "start" in seed.flux("job", "eventlog", job).split()

    def online() -> bool:
        return [row["state"] for row in seed.status().get("bursts", ())] == ["online"]

    wait_until(started, seed.look)
    # It may start on fewer ranks than the burst has.
    wait_until(online, seed.look)
    before, containers = seed.status(), seed.containers()
    image = f"burst={NEXT_IMAGE}"
    seed.cluster.kubectl("set", "image", f"pod/{seed.pod()}", image, "-n", seed.near)

    def upgraded() -> bool:
        daemon = seed.containers()["burst"]
        return daemon["image"] == NEXT_IMAGE and "running" in daemon["state"]

    wait_until(upgraded, seed.look)
    wait_until(lambda: seed.status() != {}, seed.look)
    after = seed.containers()
    assert after["burst"]["containerID"] != containers["burst"]["containerID"]
    lead = after["lead"]
    assert lead["containerID"] == containers["lead"]["containerID"]
    assert lead["restartCount"] == 0
    rows = [(row["id"], row["state"]) for row in before["bursts"]]
    assert [(row["id"], row["state"]) for row in seed.status()["bursts"]] == rows
    assert [state for _, state in rows] == ["online"]
    # The job has run all the time, and the new daemon takes its burst down.
    events = seed.flux("job", "eventlog", job)
    assert "finish" not in events
    assert "exception" not in events
    seed.flux("cancel", job)
    wait_until(lambda: not seed.bursts(), seed.look)


def run_experiment(seed: Seed) -> None:
    """Submit a job that waits, and see it run, and all of the burst go."""
    wait_until(lambda: " serves flux " in seed.log(), seed.look)
    _check_doctor(seed)
    command = ("flux", "getattr", "hostname")
    options = ("-N3", "--setattr=burstable", "--cwd=/tmp")
    job = seed.flux("submit", *options, *command).strip()
    made: list[dict[str, Any]] = []

    def ran() -> bool:
        made.extend(seed.bursts())
        return "clean" in seed.flux("job", "eventlog", job)

    wait_until(ran, seed.look)
    output = set(seed.flux("job", "attach", "--read-only", job).split())
    # One of them may be the lead's own node.
    assert len(output) == 3
    assert len({host for host in output if host.startswith("burst-")}) >= 2
    wait_until(lambda: not seed.bursts(), seed.look)
    # A broker that was killed is missed by the lead a while later.
    down = ("resource", "list", "-s", "down", "-no", "{nnodes}")
    wait_until(lambda: seed.flux(*down).strip() == "8", seed.look)
    _check_events(seed)
    _check_secret(seed, made)


def _check_events(seed: Seed) -> None:
    """Who has kubectl alone sees what became of the burst."""
    expected = {"BurstPlanned", "BurstOnline", "BurstDraining", "BurstReaped"}
    where = ("events", "-n", seed.far, "-o", "json")

    def told() -> bool:
        items = json.loads(seed.cluster.kubectl("get", *where))["items"]
        ours = [item for item in items if item["source"].get("component") == "burst"]
        assert {item["involvedObject"]["kind"] for item in ours} <= {seed.parent}
        return {item["reason"] for item in ours} >= expected

    wait_until(told, seed.look)


def _check_doctor(seed: Seed) -> None:
    """In the daemon's container nothing is wrong: rights, address, certificate."""
    said: dict[str, Any] = {}

    def is_fine() -> bool:
        said.update(json.loads(seed.burst("doctor", "--json", check=False) or "{}"))
        return bool(said.get("ok"))

    # The NodePort opens later: kube-proxy takes its time.
    wait_until(is_fine, lambda: f"{said} {seed.look()}")
    told = [finding["what"] for finding in said["findings"]]
    assert f"has all rights that it needs in namespace {seed.far}" in told
    [reached] = [what for what in told if "accepts its certificate" in what]
    assert reached.partition(" ")[0].endswith(f":{seed.port}:")
    assert f"pods connect to the lead at {reached.partition(': ')[0]}" in told


def _check_secret(seed: Seed, made: list[dict[str, Any]]) -> None:
    """The key is in Secrets and in no other object, no event and no log."""
    key = seed.key()
    everything = [thing for thing in made if thing["kind"] != "Secret"]
    assert {thing["kind"] for thing in made} >= seed.made
    for namespace in (seed.near, seed.far):
        kinds = KINDS.replace("secrets,", "")
        found = seed.cluster.kubectl("get", kinds, "-n", namespace, "-o", "json")
        everything += json.loads(found)["items"]
    assert key not in json.dumps(everything)
    assert key not in seed.log()
