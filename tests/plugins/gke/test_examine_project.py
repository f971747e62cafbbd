# SPDX-License-Identifier: MIT
"""`burst doctor` on rights, machine types and quotas of a project."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from burst_gke.examine import ON_VMS, permissions

from burst.model.finding import Level
from tests.plugins.gke.apis import Google
from tests.plugins.gke.build import NAMED_POOL, OFFER, POOL, World, settings
from tests.plugins.gke.gke import PROJECT

ROLE = Path(__file__).parents[3] / "manifests" / "overlays" / "gke" / "iam-role.yaml"
N2 = "n2-standard-8"
ENOUGH = {"N2_CPUS": (100.0, 20.0), "INSTANCES": (24.0, 1.0)}


@pytest.fixture
def google() -> Google:
    return Google(
        granted={*permissions(settings()), *ON_VMS},
        on_accounts={"iam.serviceAccounts.actAs"},
        machine_types={N2: 8, "g2-standard-4": 4},
        quotas=dict(ENOUGH),
    )


NODES = {"request": {"node_pool": {"config": {"service_account": "nodes@x"}}}}


class Doctor:
    """A provider that is examined, in a project with the cluster `shared`."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.google = world.google
        world.gke.add_cluster("shared")

    def said(self, level: Level, word: str = "", **table: Any) -> list[str]:
        """Return the findings of that level that have the word."""
        plain = {"max_run_duration": "24h", **({} if "pool" in table else NODES)}
        found = self.world.make(**{**plain, **table}).examine(None)
        said = [f"{each.what}; {each.advice}" for each in found if each.level is level]
        return [text for text in said if word in text]


@pytest.fixture
def doctor(world: World) -> Doctor:
    return Doctor(world)


def test_who_may_do_all_and_has_enough_is_told_nothing_else(doctor: Doctor) -> None:
    assert f"has all rights that it needs in project {PROJECT}; " in doctor.said(
        Level.OK
    )
    assert not doctor.said(Level.WRONG)
    assert doctor.said(Level.NOTE) == doctor.said(Level.NOTE, "own cluster")
    assert doctor.google.tokens == {"Bearer token-1"}


def test_each_permission_that_is_lacking_is_named(doctor: Doctor) -> None:
    lacks = [f"container.{name}" for name in ("clusters.create", "clusters.update")]
    doctor.google.granted -= {*lacks, "container.jobs.list"}
    (found,) = doctor.said(Level.WRONG)
    assert f"in project some-project: {', '.join(lacks)}, container.jobs" in found
    doctor.google.granted.clear()
    (found,) = doctor.said(Level.WRONG)
    assert all(permission in found for permission in permissions(settings()))


def test_what_is_asked_for_is_what_the_settings_need(doctor: Doctor) -> None:
    doctor.google.granted = {f"container.clusters.{v}" for v in ("get", "list")}
    doctor.google.granted.add("container.clusters.getCredentials")
    (found,) = doctor.said(Level.WRONG, **POOL)
    assert "container.clusters.update, container.operations.list;" in found
    assert not doctor.said(Level.WRONG, "lacks", **NAMED_POOL)


def test_who_may_not_delete_single_nodes_is_told_when_they_end(doctor: Doctor) -> None:
    doctor.google.granted -= {ON_VMS[1]}
    assert not doctor.said(Level.WRONG)
    (found,) = doctor.said(Level.NOTE, "lacks")
    assert f"in project some-project: {ON_VMS[1]}; nodes that a burst gives" in found
    assert not doctor.said(Level.NOTE, "lacks", **NAMED_POOL)


@pytest.mark.parametrize("table", [{}, POOL, NAMED_POOL])
def test_the_role_of_the_overlay_has_all_of_them(table: dict[str, Any]) -> None:
    role = set(yaml.safe_load(ROLE.read_text())["includedPermissions"])
    assert {*permissions(settings(**table)), *ON_VMS} <= role
    assert {"compute.machineTypes.get", "compute.regions.get"} <= role


def test_the_nodes_account_has_to_be_lent(doctor: Doctor) -> None:
    doctor.google.on_accounts.clear()
    (found,) = doctor.said(Level.WRONG)
    assert "may not make nodes that run as nodes@x" in found
    assert not doctor.said(Level.WRONG, request={})


def test_a_machine_type_that_the_zone_lacks(doctor: Doctor) -> None:
    doctor.google.machine_types = {}
    (found,) = doctor.said(Level.WRONG)
    assert f"offer {OFFER}: zone us-central1-a has no machine type {N2}" in found


@pytest.mark.parametrize(
    ("quotas", "machine", "says"),
    [
        (
            {"N2_CPUS": (40, 20)},
            {},
            "quota N2_CPUS has 40, of which 20 are used: it is enough for 2 of 4 nodes",
        ),
        ({"INSTANCES": (3, 0)}, {}, "quota INSTANCES"),
        ({"IN_USE_ADDRESSES": (5, 3)}, {}, "quota IN_USE_ADDRESSES"),
        ({"PREEMPTIBLE_CPUS": (8, 0)}, {"spot": True}, "quota PREEMPTIBLE_CPUS"),
        (
            # None was granted, so they count with the others.
            {"PREEMPTIBLE_CPUS": (0, 0), "N2_CPUS": (24, 0)},
            {"spot": True},
            "quota N2_CPUS",
        ),
        (
            {"NVIDIA_T4_GPUS": (2, 0), "CPUS": (100, 0)},
            {"gpus": 1, "accelerator": "nvidia-tesla-t4"},
            "quota NVIDIA_T4_GPUS has 2, of which 0 are used: it is enough for 2 of",
        ),
        # GKE's default disk has 100 GB.
        (
            {"SSD_TOTAL_GB": (500, 250)},
            {},
            "SSD_TOTAL_GB has 500, of which 250 are used: it is enough for 2",
        ),
    ],
)
def test_a_quota_that_is_not_enough(
    doctor: Doctor, quotas: Any, machine: dict[str, Any], says: str
) -> None:
    doctor.google.quotas = quotas
    offer = {"machine_type": N2, "max_nodes": 4, **machine}
    (found,) = doctor.said(Level.NOTE, "quota", offers={OFFER: offer})
    assert says in found


def test_a_quota_of_all_regions_that_is_not_enough(doctor: Doctor) -> None:
    doctor.google.of_project = {
        "CPUS_ALL_REGIONS": (32, 12),
        "GPUS_ALL_REGIONS": (0, 0),
    }
    machine = {"machine_type": N2, "gpus": 1, "accelerator": "nvidia-l4"}
    said = doctor.said(
        Level.NOTE, "ALL_REGIONS", offers={OFFER: {"max_nodes": 4, **machine}}
    )
    assert "quota CPUS_ALL_REGIONS has 32, of which 12 are used" in "".join(said)
    assert "quota GPUS_ALL_REGIONS has 0, of which 0 are used" in "".join(said)


def test_a_quota_of_a_family_that_the_region_does_not_list(doctor: Doctor) -> None:
    doctor.google.machine_types = {"c4-standard-8": 8}
    doctor.google.of_families = {"C3": 100, "C4": 24}
    doctor.google.quotas = {
        "CPUS": (8, 0),
        "SSD_TOTAL_GB": (0, 0),
        "HDB_TOTAL_GB": (900, 0),
    }
    offers = {OFFER: {"machine_type": "c4-standard-8", "max_nodes": 4}}
    (found,) = doctor.said(Level.NOTE, "quota", offers=offers)
    assert "quota CPUS_PER_VM_FAMILY of C4 has 24: it is enough for 3 of 4" in found
    doctor.google.of_families = {"C4": 0}
    (found,) = doctor.said(Level.NOTE, "quota", offers=offers)
    assert "has 0: it is enough for 0 of 4" in found
    # Who may not ask gets what the region says.
    doctor.google.failing = {"quotaInfos": 403}
    (found,) = doctor.said(Level.NOTE, "quota", offers=offers)
    assert "quota CPUS has 8" in found


def test_quotas_of_all_regions_that_cannot_be_asked_are_a_note(doctor: Doctor) -> None:
    doctor.google.of_project = None
    (found,) = doctor.said(Level.NOTE, "cannot be checked")
    assert found.startswith("quotas of all regions cannot be checked: Required")
    assert "grant compute.projects.get" in found


def test_private_nodes_need_no_addresses(doctor: Doctor) -> None:
    doctor.google.quotas = {"IN_USE_ADDRESSES": (0, 0)}
    private = {"cluster": {"network_config": {"default_enable_private_nodes": True}}}
    assert not doctor.said(Level.NOTE, "quota", request=private)


@pytest.mark.parametrize(
    ("part", "status", "says"),
    [
        (f"{PROJECT}:test", 403, "rights in the project cannot be checked"),
        ("nodes@x", 403, "rights on the nodes' account cannot be checked"),
        ("regions", 403, "quotas of us-central1 cannot be checked"),
        ("machineTypes", 500, f"machine type {N2} cannot be checked"),
    ],
)
def test_what_cannot_be_asked_is_a_note(
    doctor: Doctor, part: str, status: int, says: str
) -> None:
    doctor.google.failing = {part: status}
    assert not doctor.said(Level.WRONG)
    (found,) = doctor.said(Level.NOTE, "cannot be checked")
    assert found.startswith(f"{says}: no {part} for you")
