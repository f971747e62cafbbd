# SPDX-License-Identifier: MIT
"""What manifests/ says of the lead is what `burst lead init` would write."""

import functools
import json
import os
import shlex
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from burst_kube.provider import KubeSettings

from burst.config import convert, load
from burst.lead_setup.lead_files import LeadFiles, write_lead
from burst.lead_setup.lead_plan import LeadPlan, PlannedSlot
from burst.model.shape import Shape
from tests.manifests.reading import MANIFESTS
from tests.manifests.rights import AT_LEAD, NEEDED, Right, needed

LEAD = MANIFESTS / "base" / "lead"
NO_OBJECTS = {
    *("kustomization.yaml", "images.yaml"),
    *("daemon-token.yaml", "iam-role.yaml"),
}
"""What kustomize builds by, a patch, and a role of Google's."""
EXAMPLES = MANIFESTS.parent / "examples"
SHIPPED = [LEAD / "burst.toml", *sorted(EXAMPLES.glob("*/burst.toml"))]
OWN = "/mnt/flux/burst"
PLAN = LeadPlan(
    hosts="lead-0",
    shape=Shape(1),
    slots=tuple(
        PlannedSlot(hosts=hosts, shape=Shape(4))
        for hosts in ("burst-0-[0-3]", "burst-1-[0-3]")
    ),
    address="lead-0",
)


@pytest.fixture
def planned(tmp_path: Path) -> LeadFiles:
    return write_lead(tmp_path, PLAN)


@functools.cache
def objects() -> tuple[dict[str, Any], ...]:
    """Return all that is made; reading it takes seconds."""
    paths = [p for p in MANIFESTS.rglob("*.yaml") if p.name not in NO_OBJECTS]
    return tuple(made for p in paths for made in yaml.safe_load_all(p.read_text()))


def test_broker_toml_and_resources_are_those_of_the_plan(planned: LeadFiles) -> None:
    expected = tomllib.loads(planned.config.read_text())
    expected["bootstrap"]["curve_cert"] = f"{OWN}/curve.cert"
    expected["resource"]["path"] = "/etc/burst/lead/R"
    assert tomllib.loads((LEAD / "broker.toml").read_text()) == expected
    resources = json.loads(planned.resources.read_text())
    assert json.loads((LEAD / "R").read_text()) == resources
    # The daemon looks where the lead listens.
    assert load(LEAD / "burst.toml").lead.uri == f"local://{OWN}/run/local"


def test_the_lead_is_started_as_planned(planned: LeadFiles) -> None:
    script = (LEAD / "start.sh").read_text()
    lines = script.replace("\\\n", "").splitlines()
    [line] = [line for line in lines if line.startswith("flux broker ")]
    # The KVS is on a volume of its own.
    assert "\nstate=/var/lib/burst/state\n" in script
    line = line.removesuffix(" &").replace("$state", f"{OWN}/state")
    started = shlex.split(line.replace("$own", OWN))
    place = str(planned.config.parent)
    expected = [
        word.replace(str(planned.config), "/etc/burst/lead/broker.toml")
        .replace(place, OWN)
        .replace("=lead-0", "=lead-${JOB_COMPLETION_INDEX:-0}")
        for word in planned.commands[0]
    ]
    assert started == expected


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.parent.name)
def test_no_burst_of_shipped_settings_lives_for_ever(path: Path) -> None:
    assert load(path).deadlines.lease <= 86400


def test_what_the_daemon_makes_is_known_again_without_the_leads_state() -> None:
    lead = load(LEAD / "burst.toml").lead
    assert lead.has_owner_of_service
    services = {o["metadata"]["name"] for o in objects() if o["kind"] == "Service"}
    assert services == {lead.service, "burst-daemon"}


def test_the_state_of_the_lead_outlives_its_pod() -> None:
    claim = "burst-state"
    claims = [o for o in objects() if o["kind"] == "PersistentVolumeClaim"]
    assert claim in {claim["metadata"]["name"] for claim in claims}
    [job] = [thing for thing in objects() if thing["kind"] == "Job"]
    pod = job["spec"]["template"]["spec"]
    volume = {"name": "state", "persistentVolumeClaim": {"claimName": claim}}
    assert volume in pod["volumes"]
    mount = {"name": "state", "mountPath": "/var/lib/burst"}
    assert mount in pod["containers"][0]["volumeMounts"]
    lead = miniclusters()["lead"]
    volumes = lead["spec"]["containers"][0]["volumes"].values()
    mounts = [(v["claimName"], v["path"]) for v in volumes if "claimName" in v]
    assert mounts == [(claim, "/var/lib/burst")]


def test_the_provider_takes_its_table_and_has_enough_for_a_slot() -> None:
    table = load(LEAD / "burst.toml").providers["kube"]
    options = convert(KubeSettings, table.options, "providers.kube")
    [offer] = options.offers.values()
    assert [offer.cores] == [slot.shape.cores for slot in PLAN.slots[:1]]
    assert offer.max_nodes == 4


def test_nothing_in_manifests_holds_a_key() -> None:
    secrets = [thing for thing in objects() if thing["kind"] == "Secret"]
    assert [secret["stringData"] for secret in secrets] == [{"curve.cert": ""}]
    for path in MANIFESTS.rglob("*"):
        assert path.is_dir() or "secret-key" not in path.read_text()


def test_the_roles_are_what_is_needed_and_no_more() -> None:
    assert rights("burst-daemon") == NEEDED
    with_operator = rights("burst-daemon-miniclusters")
    assert NEEDED | with_operator == NEEDED | needed("operator")
    assert not NEEDED & with_operator
    assert rights("burst-lead") == AT_LEAD
    # At the lead only its Service is read.
    (rule,) = (rule for rule in role("burst-lead") if "services" in rule["resources"])
    assert rule["resourceNames"] == [load(LEAD / "burst.toml").lead.service]


def test_each_role_is_bound_to_its_account_where_it_is() -> None:
    bound = {
        (thing["roleRef"]["kind"], thing["roleRef"]["name"]): thing["subjects"]
        for thing in objects()
        if thing["kind"] in ("RoleBinding", "ClusterRoleBinding")
    }
    here = {"kind": "ServiceAccount", "name": "burst-daemon"}
    names = {t["metadata"]["name"] for t in objects() if t["kind"] == "Namespace"}
    (lead,) = names - {"burst-far", "burst-member"}
    there = {**here, "namespace": lead}
    assert bound == {
        ("Role", "burst-lead"): [here],
        ("Role", "burst-daemon"): [there],
        ("Role", "burst-daemon-miniclusters"): [there],
        ("Role", "burst-daemon-kueue"): [there],
        ("Role", "burst-gc"): [{**here, "name": "burst-gc"}],
        ("ClusterRole", "burst-daemon-nodes"): [here],
    }


def role(name: str) -> list[dict[str, Any]]:
    """Return the rules of a Role."""
    roles = [thing for thing in objects() if thing["kind"] == "Role"]
    (found,) = (role for role in roles if role["metadata"]["name"] == name)
    return list(found["rules"])


def rights(name: str) -> set[Right]:
    """Return what a Role grants."""
    return {
        (group, resource, verb)
        for rule in role(name)
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def test_who_deletes_what_has_expired_can_make_nothing() -> None:
    granted = rights("burst-gc")
    assert granted <= NEEDED | needed("operator")
    assert {verb for _, _, verb in granted} == {"get", "list", "delete"}
    (cronjob,) = (thing for thing in objects() if thing["kind"] == "CronJob")
    pod = cronjob["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    assert pod["serviceAccountName"] == "burst-gc"
    assert pod["securityContext"]["runAsNonRoot"]
    (container,) = pod["containers"]
    assert {"--any-owner", "--expired", "--yes"} <= set(container["args"])
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    tables = load(MANIFESTS / "gc" / "burst.toml").providers
    assert f"--provider={next(iter(tables))}" in container["args"]
    convert(KubeSettings, tables["kube"].options, "providers.kube")


def test_no_rule_has_a_wildcard_and_only_two_kinds_are_read_in_the_cluster() -> None:
    rules = [
        (thing["kind"], rule)
        for thing in objects()
        if thing["kind"] in ("Role", "ClusterRole")
        for rule in thing["rules"]
    ]
    assert not [rule for _, rule in rules if "*" in json.dumps(rule)]
    assert [rule for kind, rule in rules if kind == "ClusterRole"] == [
        {"apiGroups": [""], "resources": ["nodes", "namespaces"], "verbs": ["get"]}
    ]


def test_every_container_is_confined_and_none_is_root() -> None:
    [job] = [thing for thing in objects() if thing["kind"] == "Job"]
    pod = job["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"]
    assert not pod["automountServiceAccountToken"]
    for container in pod["initContainers"] + pod["containers"]:
        context = container["securityContext"]
        assert context["allowPrivilegeEscalation"] is False, container["name"]
        assert context["capabilities"] == {"drop": ["ALL"]}, container["name"]
    with_token = [
        container["name"]
        for container in pod["initContainers"] + pod["containers"]
        if "token" in {mount["name"] for mount in container["volumeMounts"]}
    ]
    assert with_token == ["burst"]


def test_jobs_on_the_leads_node_reach_nothing_that_is_the_daemons_alone() -> None:
    [job] = [thing for thing in objects() if thing["kind"] == "Job"]
    pod = job["spec"]["template"]["spec"]
    writable = {
        container["name"]: {
            mount["name"]
            for mount in container["volumeMounts"]
            if not mount.get("readOnly")
        }
        for container in pod["initContainers"] + pod["containers"]
    }
    # The socket and the state of the lead; not the daemon's /tmp.
    assert writable["burst"] & writable["lead"] == {"own", "state"}
    for path in MANIFESTS.rglob("burst.toml"):
        assert "custom" not in tomllib.loads(path.read_text()).get("ensemble", {}), path


def probe_of_the_daemon() -> dict[str, Any]:
    [job] = [thing for thing in objects() if thing["kind"] == "Job"]
    containers = job["spec"]["template"]["spec"]["initContainers"]
    (daemon,) = (each for each in containers if each["name"] == "burst")
    probes = {key for key in daemon if key.endswith("Probe")}
    # Any other would keep the lead from its start, or take it out of its Service.
    assert probes == {"livenessProbe"}
    return dict(daemon["livenessProbe"])


@pytest.mark.parametrize(
    ("age", "alive"), [(None, True), (0, True), (200, True), (400, False)]
)
def test_a_daemon_that_does_nothing_for_five_minutes_is_restarted(
    tmp_path: Path, age: float | None, alive: bool
) -> None:
    """The probe's command is run as it is, but for where the file is."""
    here = tmp_path / "burst-alive"
    if age is not None:
        here.touch()
        then = here.stat().st_mtime - age
        os.utime(here, (then, then))
    command = probe_of_the_daemon()["exec"]["command"]
    for path in (LEAD / "burst.toml", MANIFESTS / "overlays" / "gke" / "burst.toml"):
        told = load(path).daemon.alive
        moved = [word.replace(told, str(here)) for word in command]
        assert moved != command
        done = subprocess.run(moved, check=False)
        assert (done.returncode == 0) == alive


def test_the_probe_has_patience_for_all_that_the_daemon_waits_for() -> None:
    """Between two touches it is at most a tick, whatever it waits for."""
    probe = probe_of_the_daemon()
    assert load(LEAD / "burst.toml").daemon.cadence * 10 < 300
    assert probe["initialDelaySeconds"] >= 30
    assert probe["failureThreshold"] >= 2


def miniclusters() -> dict[str, dict[str, Any]]:
    """Return the MiniClusters by their names."""
    found = (item for item in objects() if item["kind"] == "MiniCluster")
    return {item["metadata"]["name"]: item for item in found}


def test_the_operator_takes_what_is_a_minicluster() -> None:
    """It ignores a MiniCluster unless one container, and only one, runs Flux, and the
    others have names.
    """
    for cluster, other in (("lead", "burst"), ("research", "agent")):
        containers = miniclusters()[cluster]["spec"]["containers"]
        others = [c for c in containers if not c.get("runFlux")]
        assert len(containers) - len(others) == 1
        assert [c["name"] for c in others] == [other]
    # It mounts a volume of a ConfigMap by its key and makes it by the map's name.
    volumes = miniclusters()["lead"]["spec"]["containers"][0]["volumes"]
    maps = {k: v["configMapName"] for k, v in volumes.items() if "configMapName" in v}
    assert maps == {"burst-lead": "burst-lead"}
