# SPDX-License-Identifier: MIT
"""Gateways, the operator's form, and what is refused in either."""

import json
import os
import tomllib
from pathlib import Path
from typing import Any

import pytest

from burst.config import Seconds, convert
from burst.errors import ConfigError, Refused
from burst.kits.kube.kinds import name_of
from burst.kits.pods import OfferTable, PodSettings, Tags
from burst.kits.pods.pod_provider import offers
from burst.kits.pods.template.job import ENDLESS
from burst.kits.pods.template.render import render
from burst.model.lead import HostEntry
from burst.model.shape import Shape
from burst.provider import BurstSpec, Offer
from tests.kits.pods import SETTINGS, TAGS, by_kind, replace, run
from tests.support.pod_words import pod_words


def gateway(spec: BurstSpec, address: str, *others: str) -> BurstSpec:
    """Let burst-0-1 join through burst-0-0, which is found at the address."""
    first = HostEntry("burst-0-0", bind="tcp://*:8050", connect=address)
    second = HostEntry("burst-0-1", parent="burst-0-0")
    entries = spec.lead.bootstrap.hosts
    rest = HostEntry("burst-0-[2-3]")
    bootstrap = replace(
        spec.lead.bootstrap, hosts=(entries[0], first, second, rest, *entries[2:])
    )
    return replace(spec, lead=replace(spec.lead, bootstrap=bootstrap))


@pytest.mark.parametrize("form", ["job", "operator"])
def test_a_gateway_is_found_by_the_name_that_the_lead_gives_it(
    spec: BurstSpec, form: Any
) -> None:
    spec = gateway(spec, "tcp://burst-0.jobs.svc.cluster.local:8050")
    service = by_kind(spec, replace(SETTINGS, form=form))["Service"]
    assert name_of(service) == "burst-0"
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["publishNotReadyAddresses"] is True
    index = "batch.kubernetes.io/job-completion-index"
    selector = {**TAGS.labels(spec.burst_id), index: "0"}
    assert service["spec"]["selector"] == selector


@pytest.mark.parametrize(
    "address",
    [
        "tcp://10.0.0.7:8050",
        "tcp://gateway.example.com:8050",
        "tcp://burst-0.another.svc.cluster.local:8050",
    ],
)
def test_an_address_elsewhere_is_the_sites_own(spec: BurstSpec, address: str) -> None:
    assert "Service" not in by_kind(gateway(spec, address), SETTINGS)


def test_a_minicluster_has_no_secret_and_is_no_lead(spec: BurstSpec) -> None:
    with_view = replace(
        SETTINGS,
        form="operator",
        view="flux-view:0.88.0",
        pod=pod_words(
            serviceAccountName="flux", imagePullSecrets=[{"name": "registry"}]
        ),
        host_paths=("/opt/flux",),
    )
    objects = render(spec, with_view, TAGS, 0)
    kinds = [item["kind"] for item in objects]
    assert kinds == ["ConfigMap", "Secret", "MiniCluster"]
    assert "data" not in objects[0]
    made = objects[-1]["spec"]
    assert made["size"] == 2
    # The operator's default of 100 counts the restarts of all brokers together.
    assert made["backoffLimit"] == ENDLESS
    flux = made["flux"]
    assert set(flux["bursting"]) == {"hostlist"}
    assert flux["curveCert"]
    security = {
        "runAsUser": 1000,
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }
    # A quota may demand limits of each container, init containers too.
    little = {
        "requests": {"cpu": "10m", "memory": "32Mi"},
        "limits": {"memory": "256Mi"},
    }
    assert flux["container"] == {
        "image": "flux-view:0.88.0",
        "resources": little,
        "securityContext": security,
    }
    table = tomllib.loads(flux["brokerConfig"])["bootstrap"]
    assert table["curve_cert"] == "/mnt/flux/config/curve/curve.cert"
    (container,) = made["containers"]
    assert container["imagePullSecret"] == "registry"
    assert container["volumes"]["burst-key"]["secretName"] == spec.burst_id
    assert container["volumes"]["host-0"]["readOnly"] is True
    assert made["pod"]["serviceAccountName"] == "flux"
    # All that the operator hands on for the pod.
    assert made["pod"]["securityContext"] == {"fsGroup": 1000}
    assert container["securityContext"] == security
    own = by_kind(spec, replace(with_view, view="", user=None))["MiniCluster"]["spec"]
    # Its init container runs in any case, and would be one from the internet.
    init = {"disable": True, "image": "flux:0.88.0", "resources": little}
    assert own["flux"]["container"] == init
    assert "securityContext" not in own["pod"] | own["containers"][0]


def test_a_miniclusters_start_lines_work(spec: BurstSpec, tmp_path: Path) -> None:
    """In a bash with the variables that the operator's script has there."""
    made = by_kind(spec, replace(SETTINGS, form="operator"))["MiniCluster"]["spec"]
    lines = made["containers"][0]["commands"]["pre"]
    (tmp_path / "curve.cert").write_text("key")
    curve = tmp_path / "curve"
    curve.write_text("placeholder")
    flux = tmp_path / "flux"
    flux.write_text('#!/bin/sh\necho "$@"\n')
    flux.chmod(0o700)
    environ = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "curvepath": str(curve),
        "cfg": "/cfg",
        # As the operator writes them with `logging.quiet`.
        "brokerOptions": "-Slog-stderr-level=0 -Slog-stderr-mode=local",
        "JOB_COMPLETION_INDEX": "1",
    }
    script = lines.replace("/burst/secret", str(tmp_path))
    told = run(["bash", "-euc", script], environ)
    theirs = "-Slog-stderr-level=0 -Slog-stderr-mode=local"
    # A broker ends at once if it gets the mode twice.
    expected = f"broker --config-path /cfg {theirs} -Shostname=burst-0-1"
    assert told.strip() == f"{expected} -Slog-stderr-level=7"
    assert (curve.read_text(), curve.stat().st_mode & 0o777) == ("key", 0o600)


REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("no offer 'other'; there are nodes", {"offer": "other"}),
    ("fewer cores or GPUs than the lead's R", {"shape": Shape(5)}),
    ("fewer cores or GPUs than the lead's R", {"shape": Shape(1, 1)}),
    ("62 characters, and Kubernetes allows 61 with 2 pods", {"burst_id": "b" * 62}),
    ("not a valid name in Kubernetes", {"burst_id": "Burst-0-aa"}),
    ("not a valid name in Kubernetes", {"burst_id": "0-burst"}),
]


@pytest.mark.parametrize(("words", "changed"), REFUSED)
def test_what_cannot_be_made_is_refused_in_words(
    spec: BurstSpec, words: str, changed: dict[str, Any]
) -> None:
    with pytest.raises(Refused, match=words):
        render(replace(spec, **changed), SETTINGS, TAGS, 0)


def test_too_many_nodes_and_an_owner_that_is_no_label_are_refused(
    spec: BurstSpec,
) -> None:
    one = replace(SETTINGS, offers={"nodes": OfferTable(cores=4, max_nodes=1)})
    with pytest.raises(Refused, match="which has at most 1"):
        render(spec, one, TAGS, 0)
    for owner in ("o" * 64, "a b"):
        with pytest.raises(Refused, match="cannot be a label's value"):
            render(spec, SETTINGS, Tags(owner, "far"), 0)


def test_a_lead_that_cannot_be_joined_is_refused(spec: BurstSpec) -> None:
    nowhere = replace(spec, lead=replace(spec.lead, endpoint=""))
    with pytest.raises(Refused, match="no follower can connect to the lead"):
        render(nowhere, SETTINGS, TAGS, 0)
    without = replace(spec, lead=replace(spec.lead, certificate="/no/such"))
    with pytest.raises(Refused, match="/no/such"):
        render(without, SETTINGS, TAGS, 0)


def test_the_operator_starts_flux_and_hands_on_what_its_shell_leaves(
    spec: BurstSpec,
) -> None:
    operator = replace(SETTINGS, form="operator")
    other = replace(spec, lead=replace(spec.lead, follower_module="m"))
    with pytest.raises(Refused, match="the lead is not Flux"):
        render(other, operator, TAGS, 0)
    bind = replace(spec.lead.bootstrap, default_bind="tcp://$HOST:1")
    dollar = replace(spec, lead=replace(spec.lead, bootstrap=bind))
    with pytest.raises(Refused, match="has a \\$"):
        render(dollar, operator, TAGS, 0)


def test_settings_come_from_a_table() -> None:
    table = {
        "image": "flux:0.88.0",
        "offers": {"small": {"cores": 2, "max_nodes": 8, "join_time": "3s"}},
        "pod": pod_words(tolerations=[{"key": "spot", "operator": "Exists"}]),
        "schedule": "1m",
    }
    settings = convert(PodSettings, table, "providers.far")
    (offer,) = offers(settings)
    sold = Offer(name="small", shape=Shape(2), max_nodes=8, join_time=3.0)
    both = ("joined", "isolated")
    assert offer == replace(sold, modes=both, own_images=True, guests=False)
    assert settings.schedule == Seconds(60)
    for wrong in ({"image": "x"}, {**table, "offers": {"a": {"cores": 0}}}):
        with pytest.raises(ConfigError, match=r"providers.far"):
            convert(PodSettings, wrong, "providers.far")


@pytest.mark.parametrize("form", ["job", "operator"])
def test_a_burst_may_have_an_image_of_its_own(spec: BurstSpec, form: Any) -> None:
    settings = replace(SETTINGS, form=form, view="view:1")
    usual = json.dumps(render(spec, settings, TAGS, 0))
    other = json.dumps(render(replace(spec, image="lammps:2"), settings, TAGS, 0))
    assert usual.count("flux:0.88.0") == 1
    assert other == usual.replace("flux:0.88.0", "lammps:2")
