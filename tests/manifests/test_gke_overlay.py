# SPDX-License-Identifier: MIT
"""The lead in GKE: which container may act in Google Cloud, and what it may do."""

import json
import re
from pathlib import Path
from typing import Any

import yaml
from burst_gke.settings import GkeSettings
from google.auth import identity_pool

from burst.config import convert, load
from tests.manifests.network import METADATA, Peer, Policies

ROOT = Path(__file__).parents[2]
OVERLAY = ROOT / "manifests" / "overlays" / "gke"
CREDENTIAL = OVERLAY / "credential.json"


def pod() -> dict[str, Any]:
    """What the overlay adds to the pod of the lead."""
    patch = yaml.safe_load((OVERLAY / "daemon-token.yaml").read_text())
    spec: dict[str, Any] = patch["spec"]["template"]["spec"]
    return spec


def token() -> dict[str, Any]:
    """The projected token."""
    (volume,) = pod()["volumes"]
    sources = volume["projected"]["sources"]
    (found,) = (s["serviceAccountToken"] for s in sources if "serviceAccountToken" in s)
    return dict(found)


def test_only_the_daemons_container_gets_the_token() -> None:
    assert pod().keys() == {"initContainers", "volumes"}
    (container,) = pod()["initContainers"]
    assert container["name"] == "burst"
    (mount,) = container["volumeMounts"]
    assert mount["name"] == pod()["volumes"][0]["name"]
    assert mount["readOnly"]


def test_the_lead_reaches_cloud_dns_and_no_metadata_server() -> None:
    text = (ROOT / "manifests" / "base" / "networkpolicy.yaml").read_text()
    deny, base = yaml.safe_load_all(text)
    overlay = yaml.safe_load((OVERLAY / "kustomization.yaml").read_text())
    (patch,) = (
        yaml.safe_load(each["patch"])
        for each in overlay["patches"]
        if each.get("target", {}).get("kind") == "NetworkPolicy"
    )
    ports = base["spec"]["egress"][1]["ports"]
    assert (patch[0]["path"], patch[0]["value"]) == (
        "/spec/egress/1/ports/0/port",
        ports[0]["port"],
    )
    assert patch[1]["path"] == "/spec/egress/1/to/-"
    base["spec"]["egress"][1]["to"].append(patch[1]["value"])
    network, lead = Policies([deny, base], "burst"), {"job-name": "lead"}
    dns = Peer(address="169.254.169.254")
    assert network.may("Egress", lead, dns, 53, "UDP")
    for address, port in METADATA:
        assert not network.may("Egress", lead, Peer(address=address), port), address


def test_no_service_account_is_bound_to_an_identity_for_the_whole_pod() -> None:
    for path in (ROOT / "manifests").rglob("*.yaml"):
        assert "iam.gke.io/gcp-service-account" not in path.read_text(), path


def test_googles_library_reads_the_credential_and_finds_the_token_there() -> None:
    text = CREDENTIAL.read_text()
    assert "private_key" not in text
    assert "BEGIN" not in text
    info = json.loads(text)
    credentials = identity_pool.Credentials.from_info(info)
    assert credentials.info["audience"] == info["audience"]
    assert credentials.service_account_email.startswith("burst@")
    (container,) = pod()["initContainers"]
    (mount,) = container["volumeMounts"]
    place = f"{mount['mountPath']}/{token()['path']}"
    assert info["credential_source"]["file"] == place
    assert {
        "name": "GOOGLE_APPLICATION_CREDENTIALS",
        "value": str(Path(mount["mountPath"]) / CREDENTIAL.name),
    } in container["env"]
    # The audience that an OIDC provider of a pool accepts unless it is told another.
    assert token()["audience"] == f"https:{info['audience']}"
    assert token()["expirationSeconds"] <= 3600


def test_the_daemon_uses_provider_gke() -> None:
    settings = load(OVERLAY / "burst.toml")
    assert {table.type for table in settings.providers.values()} == {"gke"}
    options = convert(GkeSettings, settings.providers["gke"].options, "providers.gke")
    assert options.max_run_duration <= settings.deadlines.lease


def test_the_role_has_what_is_called_and_nothing_wider() -> None:
    lines = (OVERLAY / "iam-role.yaml").read_text().splitlines()
    permissions = yaml.safe_load("\n".join(lines))["includedPermissions"]
    others = [e for e in permissions if not re.fullmatch(r"container(\.\w+){2}", e)]
    assert sorted(others) == [
        "cloudquotas.quotas.get",
        "compute.instanceGroupManagers.get",
        "compute.instanceGroupManagers.update",
        "compute.machineTypes.get",
        "compute.projects.get",
        "compute.regions.get",
    ]
    assert len(set(permissions)) == len(permissions)
    told = set(
        re.findall(
            r"\b\w+_(?:clusters?|node_pool(?:_autoscaling)?|operations)\b",
            "\n".join(lines),
        )
    )
    source = (ROOT / "plugins" / "burst_gke" / "cloud.py").read_text()
    assert told == called(source)


def called(source: str) -> set[str]:
    """Return the methods of Google's client that the plug-in calls."""
    found = set(re.findall(r'"((?:get|delete|set)_\w+)", request', source))
    for listed in re.findall(r'self\._list\("(\w+)"\)', source):
        found.add(f"list_{listed}")
    assert 'f"create_{what}"' in source
    return found | {"create_cluster", "create_node_pool"}
