# SPDX-License-Identifier: MIT
"""manifests/ensemble-agent: its two sides fit together, and no more is open."""

import shlex
from typing import Any

import msgspec
import yaml
from burst_ensemble.config.file import load_ensemble
from burst_ensemble.config.settings import ensemble_settings
from burst_ensemble.runtime.algorithms import load_algorithms
from burst_ensemble_agent.command import agent

from burst.config import load, parse_listen
from tests.manifests.network import Peer, Policies
from tests.manifests.reading import MANIFESTS

PART = MANIFESTS / "ensemble-agent"
SETTINGS = load(PART / "lead" / "burst.toml")
AGENT_POD = {"burst.flux-framework.org/agent": "true", "job-name": "research"}
LEAD_POD = {"job-name": "lead"}
PORT = 9779


def document(path: str) -> dict[str, Any]:
    return dict(yaml.safe_load((PART / path).read_text()))


def container(name: str) -> dict[str, Any]:
    found = document("member/minicluster.yaml")["spec"]["containers"]
    return dict(next(each for each in found if each.get("name") == name))


def command_line() -> list[str]:
    """Return how the agent is started, by the script of its container."""
    script = container("agent")["commands"]["init"].replace("\\\n", "")
    (line,) = [line for line in script.splitlines() if line.startswith("exec ")]
    return shlex.split(line)


def option(name: str) -> str:
    words = command_line()
    return words[words.index(name) + 1]


def test_the_leads_settings_are_those_of_the_base_and_what_agents_need() -> None:
    base = load(MANIFESTS / "base" / "lead" / "burst.toml")
    kept = {"http": base.http, "packages": base.packages, "providers": base.providers}
    assert SETTINGS.providers == {}
    assert msgspec.structs.replace(SETTINGS, **kept) == base
    files = (f"/etc/burst/lead/{PART.joinpath('lead', 'ensemble.toml').name}",)
    assert ensemble_settings(SETTINGS).files == files
    made = document("lead/kustomization.yaml")["configMapGenerator"][0]
    assert (made["name"], made["behavior"]) == ("burst-lead", "merge")
    assert set(made["files"]) == {"burst.toml", "ensemble.toml"}


def test_the_agent_is_started_for_the_member_of_the_file() -> None:
    file = load_ensemble(PART / "lead" / "ensemble.toml", [])
    load_algorithms(file)
    (member,) = file.spec.members
    assert (member.mode, file.spec.limits.time <= 3600) == ("external", True)
    words = command_line()
    begins = ["exec", "/opt/burst/bin/burst", "ensemble", "agent"]
    assert words[:5] == [*begins, f"{file.spec.name}/{member.name}"]
    # What it is given is taken, in this order: nothing is left of the line.
    context = agent.make_context("agent", words[4:])
    assert context.params["about"] == f"{file.spec.name}/{member.name}"
    assert context.params["plain_http"] is True
    assert context.params["gone"] == 600.0


def test_it_finds_the_daemon_by_its_service() -> None:
    service = document("lead/service.yaml")
    name, place = (service["metadata"][key] for key in ("name", "namespace"))
    assert option("--daemon") == f"http://{name}.{place}.svc:{PORT}"
    (port,) = service["spec"]["ports"]
    assert (port["port"], port["targetPort"]) == (PORT, PORT)
    assert parse_listen(SETTINGS.http.listen).port == PORT
    assert service["spec"]["selector"].items() >= LEAD_POD.items()


def test_the_token_is_mounted_for_the_agent_only() -> None:
    """The operator mounts a container's volumes in all that follow."""
    cluster = document("member/minicluster.yaml")
    first, last = cluster["spec"]["containers"]
    assert (first["runFlux"], last["name"]) == (True, "agent")
    assert "volumes" not in first
    (volume,) = last["volumes"].values()
    script = last["commands"]["init"]
    assert script.startswith(f"umask 077\ncp {volume['path']}/token ")
    assert option("--token-file") in script.partition("exec")[0].split()
    assert "secrets" not in last, "not in the environment"
    assert not cluster["spec"].get("shareProcessNamespace")


def test_each_container_asks_for_no_more_than_the_restricted_standard_allows() -> None:
    """What the pod says the operator does not hand on."""
    spec = document("member/minicluster.yaml")["spec"]
    contexts = [
        each["securityContext"]
        for each in (*spec["containers"], spec["flux"]["container"])
    ]
    assert len(contexts) == 3
    for context in contexts:
        assert context["runAsNonRoot"]
        assert context["allowPrivilegeEscalation"] is False
        assert context["capabilities"] == {"drop": ["ALL"]}
        assert context["seccompProfile"] == {"type": "RuntimeDefault"}
    # The agent is the instance owner only as the broker's user.
    assert len({context["runAsUser"] for context in contexts}) == 1
    label = "pod-security.kubernetes.io/enforce"
    assert document("member/namespace.yaml")["metadata"]["labels"][label] == (
        "restricted"
    )


def test_the_daemon_is_reached_by_agents_only() -> None:
    (patch,) = (
        yaml.safe_load(each["patch"])
        for each in document("lead/kustomization.yaml")["patches"]
        if each.get("target", {}).get("kind") == "NetworkPolicy"
    )
    text = (MANIFESTS / "base" / "networkpolicy.yaml").read_text()
    _, base = yaml.safe_load_all(text)
    assert patch[0]["path"] == "/spec/ingress/-"
    base["spec"]["ingress"].append(patch[0]["value"])
    lead = Policies([base], "burst")
    assert lead.may("Ingress", LEAD_POD, Peer("burst-member", AGENT_POD), PORT)
    for peer in (
        Peer("burst-member", {"app": "other"}),
        Peer("burst-far", AGENT_POD),
        Peer("burst", LEAD_POD),
        Peer(address="203.0.113.7"),
    ):
        assert not lead.may("Ingress", LEAD_POD, peer, PORT), peer
    assert not lead.may("Ingress", LEAD_POD, Peer("burst-member", AGENT_POD), 22)


def test_the_member_reaches_the_daemon_and_is_reached_by_nobody() -> None:
    network = Policies([document("member/networkpolicy.yaml")], "burst-member")
    own = Peer("burst-member", AGENT_POD)
    daemon = Peer("burst", LEAD_POD)
    assert network.may("Egress", AGENT_POD, daemon, PORT)
    assert network.may("Egress", AGENT_POD, own, 8050)
    assert network.may("Ingress", AGENT_POD, own, 8050)
    dns = Peer("kube-system", {"k8s-app": "kube-dns"})
    assert network.may("Egress", AGENT_POD, dns, 53, "UDP")
    assert not network.may("Egress", AGENT_POD, daemon, 8050)
    assert not network.may("Egress", AGENT_POD, Peer(address="169.254.169.254"), 80)
    assert not network.may("Egress", AGENT_POD, Peer(address="203.0.113.7"), 443)
    assert not network.may("Ingress", AGENT_POD, daemon, 8050)
    assert not network.may("Ingress", AGENT_POD, Peer(address="203.0.113.7"), 8050)
