# SPDX-License-Identifier: MIT
"""manifests/ensemble: the lead has a rank slot for each member, and starts them."""

import json
import tomllib
from pathlib import Path

import msgspec
import yaml
from burst_ensemble.config.file import load_ensemble
from burst_ensemble.config.settings import ensemble_settings
from burst_ensemble.runtime.algorithms import load_algorithms
from burst_kube.provider import KubeSettings

from burst.config import convert, load
from burst.lead_setup.lead_files import write_lead
from burst.lead_setup.lead_plan import LeadPlan, PlannedSlot
from burst.model.shape import Shape
from tests.manifests.reading import MANIFESTS

ENSEMBLE = MANIFESTS / "ensemble"
FILES = ENSEMBLE / "lead"
MOUNT = "/etc/burst/lead"
SLOTS = tuple(
    PlannedSlot(hosts=f"burst-{number}-[0-3]", shape=Shape(4)) for number in range(3)
)


def test_ranks_are_those_of_a_plan_with_a_slot_for_each_member(tmp_path: Path) -> None:
    plan = LeadPlan(hosts="lead-0", shape=Shape(1), slots=SLOTS, address="lead-0")
    planned = write_lead(tmp_path, plan)
    expected = tomllib.loads(planned.config.read_text())
    expected["bootstrap"]["curve_cert"] = "/mnt/flux/burst/curve.cert"
    expected["resource"]["path"] = f"{MOUNT}/R"
    assert tomllib.loads((FILES / "broker.toml").read_text()) == expected
    resources = json.loads(planned.resources.read_text())
    assert json.loads((FILES / "R").read_text()) == resources


def test_its_settings_are_those_of_the_base_and_the_ensemble() -> None:
    found = load(FILES / "burst.toml")
    base = load(MANIFESTS / "base" / "lead" / "burst.toml")
    assert msgspec.structs.replace(found, packages=base.packages) == base
    assert ensemble_settings(found).files == (f"{MOUNT}/ensemble.toml",)


def test_the_configmap_has_all_files_under_the_names_that_are_used() -> None:
    tables = yaml.safe_load((FILES / "kustomization.yaml").read_text())
    (made,) = tables["configMapGenerator"]
    assert made["behavior"] == "merge"
    own = {path.name for path in FILES.iterdir()} - {"kustomization.yaml"}
    assert set(made["files"]) == own
    lead = yaml.safe_load((MANIFESTS / "parts" / "lead-job" / "lead.yaml").read_text())
    pod = lead["spec"]["template"]["spec"]
    volume = {"name": "settings", "configMap": {"name": made["name"]}}
    assert volume in pod["volumes"]
    (daemon,) = (each for each in pod["initContainers"] if each["name"] == "burst")
    mount = {"name": "settings", "mountPath": MOUNT, "readOnly": True}
    assert mount in daemon["volumeMounts"]


def test_each_member_fits_in_a_slot_of_its_own_and_in_the_offer() -> None:
    settings = load(FILES / "burst.toml")
    file = load_ensemble(FILES / "ensemble.toml", list(settings.providers))
    load_algorithms(file)
    assert len(file.spec.members) == len(SLOTS) == 3
    options = convert(KubeSettings, settings.providers["kube"].options, "kube")
    (offer,) = options.offers.values()
    for member in file.spec.members:
        assert member.max <= offer.max_nodes == 4
        # The file's directory is in the lead's pod only.
        assert all(job.workdir == "/tmp" for job in member.jobs)
    # An example that is applied and forgotten costs no more than an hour.
    assert file.spec.limits.time <= 3600
