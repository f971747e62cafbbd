# SPDX-License-Identifier: MIT
"""Dashboard and alerts name metrics that there are, and fire when they should."""

import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from burst.config import parse
from tests.manifests.monitoring import (
    CASES,
    ONE_DOWN,
    PART,
    SERIES,
    filled,
    labels_in,
    of_lead,
    panels,
    queries,
    rule_groups,
    rules,
    series_in,
)
from tests.support.commands import run_captured

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("query", [*queries()])
def test_each_query_asks_for_what_there_is(query: str) -> None:
    named = series_in(query)
    assert named
    assert named <= SERIES.keys()
    known = set().union(*(SERIES[name] for name in named))
    assert labels_in(query) <= known


def test_each_metric_is_on_the_dashboard() -> None:
    def metric(series: str) -> str:
        return re.sub("(_bucket)?(_sum)?(_count)?$", "", series)

    shown = set().union(*(series_in(query) for query in queries()))
    assert {metric(name) for name in shown} == {metric(name) for name in SERIES}


def test_panels_have_names_and_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in panels():
        assert panel["title"]
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken
        taken |= cells
    assert len({panel["id"] for panel in panels()}) == len(panels())


def test_each_alert_has_a_case() -> None:
    assert [rule["alert"] for rule in rules()] == list(CASES)


def component() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((PART / "kustomization.yaml").read_text())
    return found


def test_the_component_and_its_settings_are_of_one_port() -> None:
    text = (PART / "kustomization.yaml").read_text()
    lines = text.partition("[http]")[2].splitlines()[1:3]
    settings = " ".join(line.removeprefix("#") for line in lines)
    assert settings.split() == [
        *("listen", "=", '"0.0.0.0:9779"'),
        *("token_file", "=", '"/etc/burst/http/token"'),
    ]
    http = {"listen": "0.0.0.0:9779", "token_file": "/etc/burst/http/token"}
    assert parse({"http": http}, "x").http.listen
    job = yaml.safe_load(component()["patches"][0]["patch"])
    pod = job["spec"]["template"]["spec"]
    (daemon,) = pod["initContainers"]
    assert daemon["ports"] == [{"name": "http", "containerPort": 9779}]
    (mount,) = daemon["volumeMounts"]
    assert mount["mountPath"] == "/etc/burst/http"


@pytest.mark.skipif(not shutil.which("kubectl"), reason="want of kubectl")
def test_the_component_fits_the_overlay_whose_lead_is_a_job(tmp_path: Path) -> None:
    site = tmp_path / "manifests"
    shutil.copytree(ROOT / "manifests", site)
    overlay = site / "overlays" / "plain" / "kustomization.yaml"
    made = yaml.safe_load(overlay.read_text())
    made["components"].append("../../parts/monitoring")
    overlay.write_text(json.dumps(made))
    done = run_captured(["kubectl", "kustomize", str(overlay.parent)], check=True)
    objects = list(yaml.safe_load_all(done.stdout))
    by_kind = {each["kind"]: each for each in objects}
    named = {(each["kind"], each["metadata"]["name"]): each for each in objects}
    network = named["NetworkPolicy", "burst-lead"]["spec"]
    job = by_kind["Job"]
    pod = job["spec"]["template"]["spec"]
    (daemon,) = (c for c in pod["initContainers"] if c["name"] == "burst")
    # Whoever keeps HTTP busy must not have the kubelet restart the daemon.
    assert "/tmp/burst-alive" in daemon["livenessProbe"]["exec"]["command"][-1]
    assert "httpGet" not in daemon["livenessProbe"]
    assert {"burst-http-token"} <= {
        volume.get("secret", {}).get("secretName") for volume in pod["volumes"]
    }
    ports = [rule["ports"][0]["port"] for rule in network["ingress"]]
    assert ports == [8050, 9779]
    selected = by_kind["PodMonitor"]["spec"]["selector"]["matchLabels"]
    assert selected == network["podSelector"]["matchLabels"]
    (dashboard,) = (
        each for each in objects if each["metadata"]["name"] == "burst-dashboard"
    )
    assert json.loads(dashboard["data"]["flux-burst.json"])["panels"] == panels()


def alert_test(
    rule: dict[str, Any], series: Mapping[str, str], fired: Mapping[str, str] | None
) -> dict[str, Any]:
    """Return a test for promtool; `fired` has the labels of the alert, if it fires."""
    expected = fired is not None and {
        "exp_labels": {**rule["labels"], **fired},
        "exp_annotations": {
            key: filled(text, fired) for key, text in rule["annotations"].items()
        },
    }
    inputs = [{"series": key, "values": each} for key, each in series.items()]
    name = rule["alert"]
    alert = {"eval_time": "110m", "alertname": name, "exp_alerts": [expected]}
    if not expected:
        alert["exp_alerts"] = []
    return {"interval": "1m", "input_series": inputs, "alert_rule_test": [alert]}


def check_with_promtool(directory: Path, tests: list[dict[str, Any]]) -> None:
    (directory / "rules.yml").write_text(json.dumps(rule_groups()))
    script = {"rule_files": ["rules.yml"], "evaluation_interval": "1m", "tests": tests}
    (directory / "tests.yml").write_text(json.dumps(script))
    for words in (["check", "rules", "rules.yml"], ["test", "rules", "tests.yml"]):
        done = run_captured(["promtool", *words], cwd=directory)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.programs
@pytest.mark.prometheus
def test_each_alert_fires_when_it_should_and_then_only(tmp_path: Path) -> None:
    tests: list[dict[str, Any]] = []
    for rule in rules():
        case = CASES[rule["alert"]]
        tests.append(alert_test(rule, case.fires, case.labels))
        tests.append(alert_test(rule, case.calm, None))
    check_with_promtool(tmp_path, tests)
    assert len(tests) == 2 * len(rules()) >= 26


@pytest.mark.programs
@pytest.mark.prometheus
def test_what_is_wrong_with_one_lead_is_not_hidden_by_another(tmp_path: Path) -> None:
    tests: list[dict[str, Any]] = []
    for rule in rules():
        case = {**CASES, "BurstDaemonDown": ONE_DOWN}[rule["alert"]]
        series = dict([*of_lead("a", case.fires), *of_lead("b", case.calm)])
        tests.append(alert_test(rule, series, {**case.labels, "instance": "a"}))
    check_with_promtool(tmp_path, tests)
