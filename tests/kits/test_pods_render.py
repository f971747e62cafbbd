# SPDX-License-Identifier: MIT
"""What a BurstSpec becomes, in both forms."""

import base64
import json
import os
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from burst.errors import Refused, SpecRefused
from burst.kits import certificate
from burst.kits.kube.kinds import annotations_of, name_of
from burst.kits.pods import MultiUserTable, OfferTable, offers
from burst.kits.pods.diagnose.probe_job import render_probe
from burst.kits.pods.names import HOSTS, SPOT, parse_hosts
from burst.kits.pods.template.render import refuse_user, render
from burst.model.lead import HostEntry
from burst.provider import BurstSpec
from tests.kits.pods import SETTINGS, TAGS, by_kind, pod_spec, replace, run
from tests.support.pod_words import pod_words


def test_every_object_says_whose_it_is(spec: BurstSpec) -> None:
    leased = replace(spec, lease_end=1234.5)
    objects = render(leased, SETTINGS, TAGS, 1000.0)
    assert [item["kind"] for item in objects] == ["ConfigMap", "Secret", "Job"]
    prefix = "burst.flux-framework.org"
    for item in [*objects, objects[-1]["spec"]["template"]]:
        assert item["metadata"]["labels"] == {
            f"{prefix}/owner": "owner",
            f"{prefix}/provider": "far",
            f"{prefix}/id": spec.burst_id,
        }
        assert parse_hosts(annotations_of(item)[HOSTS]) == spec.hosts
    leases = {item["metadata"]["annotations"][f"{prefix}/lease"] for item in objects}
    assert leases == {"234"}
    assert {name_of(item) for item in objects} == {spec.burst_id}


def test_followers_that_need_systemd_are_refused_before_anything_is_made(
    spec: BurstSpec,
) -> None:
    needs = replace(spec, lead=replace(spec.lead, systemd=True))
    with pytest.raises(Refused, match="a pod has no systemd") as refused:
        render(needs, SETTINGS, TAGS, 0)
    assert "no [exec] service" in refused.value.advice


def test_followers_of_another_user_than_the_leads_are_refused(spec: BurstSpec) -> None:
    def owned_by(userid: int) -> BurstSpec:
        return replace(spec, lead=replace(spec.lead, owner_userid=userid))

    with pytest.raises(SpecRefused, match="the lead runs as 499") as refused:
        render(owned_by(499), SETTINGS, TAGS, 0)
    assert "set user = 499" in refused.value.advice
    assert render(owned_by(1000), SETTINGS, TAGS, 0)
    assert render(owned_by(499), replace(SETTINGS, user=None), TAGS, 0)
    guests = replace(
        SETTINGS,
        multi_user=MultiUserTable(users="image"),
        security="baseline",
        host_paths=("/run/munge",),
    )
    refuse_user(owned_by(499).lead, guests)  # the IMP starts the jobs of guests


@pytest.mark.parametrize("form", ["job", "operator"])
def test_images_by_digest_stay_so(spec: BurstSpec, form: Any) -> None:
    app, view = (f"r.test:5000/{n}@sha256:{'0a' * 32}" for n in ("app", "view"))
    given = replace(SETTINGS, image=app, view=view, form=form)
    made = render(spec, given, TAGS, 0)[-1]
    for item in (made, render_probe("probe", spec.lead, given, TAGS)):
        found = set(re.findall(r'"image": "([^"]+)"', json.dumps(item)))
        assert found == {app, view}


def test_a_job_makes_no_pod_before_it_is_started_and_does_not_stay(
    spec: BurstSpec,
) -> None:
    job = by_kind(spec, SETTINGS)["Job"]["spec"]
    assert job["suspend"] is True
    assert job["ttlSecondsAfterFinished"] == 300
    # It is the same each time.
    assert render(spec, SETTINGS, TAGS, 1) == render(spec, SETTINGS, TAGS, 2)


@pytest.mark.parametrize("form", ["job", "operator"])
def test_autoscalers_leave_its_pods_alone(spec: BurstSpec, form: Any) -> None:
    parent = render(spec, replace(SETTINGS, form=form), TAGS, 0)[-1]["spec"]
    pod = parent["pod"] if form == "operator" else parent["template"]["metadata"]
    noted = pod["annotations"]
    assert noted["cluster-autoscaler.kubernetes.io/safe-to-evict"] == "false"
    assert noted["karpenter.sh/do-not-disrupt"] == "true"


def test_what_runs_on_spot_nodes_says_so(spec: BurstSpec) -> None:
    (name, table), *_ = SETTINGS.offers.items()
    chosen = pod_words(nodeSelector={"karpenter.sh/capacity-type": "spot"})
    for spot in (
        replace(SETTINGS, offers={name: replace(table, spot=True)}),
        replace(SETTINGS, offers={name: replace(table, pod=chosen)}),
        replace(SETTINGS, pod=chosen),
    ):
        assert [offer.spot for offer in offers(spot)] == [True]
        last = render(spec, spot, TAGS, 0)[-1]
        for item in (last, last["spec"]["template"]):
            assert annotations_of(item)[SPOT] == "true"
    assert [offer.spot for offer in offers(SETTINGS)] == [False]
    assert SPOT not in annotations_of(render(spec, SETTINGS, TAGS, 0)[-1])


def test_brokers_read_the_leads_hosts_and_their_own_certificate(
    spec: BurstSpec,
) -> None:
    objects = by_kind(spec, SETTINGS)
    secret = base64.b64decode(objects["Secret"]["data"]["curve.cert"]).decode()
    there = certificate.read(Path(spec.lead.certificate))
    assert certificate.parse(secret, "the Secret") == there
    data = objects["ConfigMap"]["data"]
    table = tomllib.loads(data["broker.toml"])["bootstrap"]
    assert table["curve_cert"] == "/burst/run/curve.cert"
    assert table["hosts"][0]["connect"] == spec.lead.endpoint
    assert data["hosts"] == "burst-0-0\nburst-0-1\n"


@pytest.mark.parametrize("module", ["", "other_lead"])
def test_the_start_script_starts_the_host_of_its_index(
    spec: BurstSpec, tmp_path: Path, module: str
) -> None:
    """Run as it is, but for where things are mounted, with a program that shows."""
    hosts = ("n-07", "n-03")
    names = tuple(HostEntry(host) for host in ("lead-0", *hosts))
    lead = replace(
        spec.lead,
        follower_module=module,
        hosts=("lead-0", *hosts),
        bootstrap=replace(spec.lead.bootstrap, hosts=names),
    )
    told = replace(spec, lead=lead, hosts=hosts, ranks=(1, 2))
    echo = replace(SETTINGS, flux="echo")
    data = by_kind(told, echo)["ConfigMap"]["data"]
    for name in ("config", "secret", "run"):
        (tmp_path / name).mkdir()
    (tmp_path / "secret/curve.cert").write_text("key")
    (tmp_path / "secret/curve.cert").chmod(0o440)
    (tmp_path / "run/broker").mkdir()
    (tmp_path / "run/broker/left").touch()
    for name, text in data.items():
        moved = text.replace("/burst/", f"{tmp_path}/")
        (tmp_path / "config" / name).write_text(moved)
    python = tmp_path / "python3"
    python.write_text('#!/bin/sh\necho "$@"\n')
    python.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    environ = {"PATH": path, "JOB_COMPLETION_INDEX": "1"}
    command = ["/bin/sh", str(tmp_path / "config/start")]
    for _ in range(2):  # the kubelet starts it again in the same pod
        told_by = run(command, environ)
        assert "n-03" in told_by
        assert "n-07" not in told_by
        assert str(tmp_path / "config/broker.toml") in told_by
    copy = tmp_path / "run/curve.cert"
    assert (copy.read_text(), copy.stat().st_mode & 0o777) == ("key", 0o600)
    assert list((tmp_path / "run/broker").iterdir()) == []


def test_a_pod_is_as_safe_as_can_be(spec: BurstSpec) -> None:
    """What Kubernetes calls the restricted standard, and no token."""
    pod = pod_spec(spec, SETTINGS)
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"] == {
        "runAsUser": 1000,
        "runAsNonRoot": True,
        "fsGroup": 1000,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert pod["containers"][0]["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    secret = next(v["secret"] for v in pod["volumes"] if v["name"] == "secret")
    assert secret["defaultMode"] == 0o400


@pytest.mark.parametrize("form", ["job", "operator"])
def test_a_follower_has_bounds_of_memory_where_the_offer_has_none(
    spec: BurstSpec, form: Any
) -> None:
    """By its cores. Its volumes in memory are no larger than all of it."""
    parent = render(spec, replace(SETTINGS, form=form), TAGS, 0)[-1]["spec"]
    pod = parent["template"]["spec"] if form == "job" else parent
    assert SETTINGS.offers["nodes"].cores == 4
    assert pod["containers"][0]["resources"] == {
        "requests": {"cpu": "4", "memory": "2048Mi"},
        "limits": {"memory": "32Gi"},
    }
    listed = pod.get("volumes", ())
    sizes = [v["emptyDir"].get("sizeLimit") for v in listed if in_memory(v)]
    assert sizes == (["32Gi"] if form == "job" else [])


def in_memory(volume: dict[str, Any]) -> bool:
    return bool(volume.get("emptyDir", {}).get("medium") == "Memory")


@pytest.mark.parametrize("form", ["job", "operator"])
def test_where_setuid_programs_are_to_work_nothing_else_is_loosened(
    spec: BurstSpec, form: Any
) -> None:
    loose = replace(SETTINGS, form=form, security="baseline")
    parent = render(spec, loose, TAGS, 0)[-1]["spec"]
    pod = parent["template"]["spec"] if form == "job" else parent
    context = pod["containers"][0]["securityContext"]
    assert "allowPrivilegeEscalation" not in context
    assert "capabilities" not in context
    context = {**pod.get("securityContext", {}), **context}
    assert context["runAsNonRoot"] is True
    assert context["seccompProfile"] == {"type": "RuntimeDefault"}


def test_a_leads_user_is_the_pods_by_default(spec: BurstSpec) -> None:
    context = pod_spec(spec, replace(SETTINGS, user=None))["securityContext"]
    assert context["runAsUser"] == os.geteuid()
    root = pod_spec(spec, replace(SETTINGS, user=0))
    assert root["securityContext"]["runAsNonRoot"] is False
    assert "fsGroup" not in root["securityContext"]
    assert "capabilities" not in root["containers"][0]["securityContext"]


def test_an_offers_nodes_are_chosen_and_asked_for_in_full(spec: BurstSpec) -> None:
    table = OfferTable(
        cores=8,
        gpus=2,
        max_nodes=4,
        cpu="7500m",
        memory="28Gi",
        pod=pod_words(nodeSelector={"pool": "big"}),
    )
    tolerations = [
        {"key": "spot", "operator": "Exists"},
        {"key": "a", "operator": "Equal", "value": "b", "effect": "NoSchedule"},
    ]
    chosen = replace(
        SETTINGS,
        offers={"nodes": table},
        gpu_resource="amd.com/gpu",
        host_paths=("/opt/flux",),
        pod=pod_words(
            env={"LANG": "C"},
            nodeSelector={"arch": "arm64", "pool": "any"},
            tolerations=tolerations,
            serviceAccountName="flux",
            imagePullSecrets=[{"name": "registry"}],
        ),
    )
    pod = pod_spec(spec, chosen)
    assert pod["nodeSelector"] == {"arch": "arm64", "pool": "big"}
    assert pod["tolerations"] == tolerations
    assert pod["serviceAccountName"] == "flux"
    assert pod["imagePullSecrets"] == [{"name": "registry"}]
    container = pod["containers"][0]
    assert container["resources"] == {
        "requests": {"cpu": "7500m", "memory": "28Gi", "amd.com/gpu": 2},
        "limits": {"memory": "28Gi", "amd.com/gpu": 2},
    }
    assert container["env"] == [{"name": "LANG", "value": "C"}]
    mount = {"name": "host-0", "mountPath": "/opt/flux", "readOnly": True}
    assert mount in container["volumeMounts"]
    assert {"name": "host-0", "hostPath": {"path": "/opt/flux"}} in pod["volumes"]


def test_one_broker_a_node_or_several(spec: BurstSpec) -> None:
    alone = pod_spec(spec, SETTINGS)
    (term,) = alone["affinity"]["podAntiAffinity"].popitem()[1]
    assert term["topologyKey"] == "kubernetes.io/hostname"
    assert term["namespaceSelector"] == {}  # all of them
    shared = pod_spec(spec, replace(SETTINGS, one_per_node=False))
    assert "affinity" not in shared
    (constraint,) = shared["topologySpreadConstraints"]
    assert constraint["whenUnsatisfiable"] == "ScheduleAnyway"


LEASES = [(0.0, None), (1060.0, 61), (1059.2, 61), (900.0, 1)]


@pytest.mark.parametrize(("lease_end", "seconds"), LEASES)
@pytest.mark.parametrize("form", ["job", "operator"])
def test_the_lease_ends_it_without_us(
    spec: BurstSpec, lease_end: float, seconds: int | None, form: Any
) -> None:
    leased = replace(spec, lease_end=lease_end)
    parent = render(leased, replace(SETTINGS, form=form), TAGS, 1000.0)[-1]
    key = {"job": "activeDeadlineSeconds", "operator": "deadlineSeconds"}[form]
    assert parent["spec"].get(key) == seconds
