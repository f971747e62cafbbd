# SPDX-License-Identifier: MIT
"""manifests/ensemble, applied: an ensemble that starts and ends by itself."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from burst.model.ranks import parse_hostlist
from tests.e2e.programs import ENVIRONMENT
from tests.kubelab.cluster import Cluster
from tests.nodes.seed import MANIFESTS, Seed, named_namespaces
from tests.nodes.waiting import wait_until
from tests.support.fluxlead import needs_flux

pytestmark = [pytest.mark.xdist_group("namespace-burst"), pytest.mark.nodes, needs_flux]
OF_NAMESPACE = ("kube-root-ca.crt", "burst-gc-")
"""ConfigMaps that are there before: the cluster's, and that of the CronJob."""
_WAIT = "flux kvs get --namespace=primary --waitcreate"
HURRY = {
    # How long pods take to start and to go says how busy the machine is.
    '"sleep 45"': f'"{_WAIT} shrunk"',
    '"sleep 5"': f'"{_WAIT} grown"',
    '"sleep 3"': '"sleep 1"',
    '"sleep 8"': '"sleep 2"',
    'checkSeconds = "2s"': 'checkSeconds = "0.5s"',
    'growWindow = "5s"': 'growWindow = "1s"',
    'shrinkWindow = "10s"': 'shrinkWindow = "2s"',
    # On a busy machine a member may be idle for ten checks between two jobs.
    "failureTarget = 3": 'failureTarget = 3, disableTermination = "yes"',
    'order = ""': 'order = "", disableTermination = "yes"',
    'submit = "no"': 'submit = "no", disableTermination = "yes"',
}
"""What is shorter here than in the file, or waits for what the test has seen."""


class EnsembleSeed(Seed):
    """Applied at once, with the names that are in the files."""

    overlay = "ensemble"
    files = MANIFESTS / "ensemble" / "lead"
    changed = (*Seed.changed, "ensemble.toml")

    def apply(self, idle: str = "1s") -> None:
        self.cluster.kubectl("create", "namespace", self.near)
        # Its image cannot be had here, and it is not what is tried.
        suspended = [{"op": "add", "path": "/spec/suspend", "value": True}]
        patch = {"target": {"kind": "CronJob"}, "patch": json.dumps(suspended)}
        self.apply_lead(idle, patches=[patch])

    def _write_files(self, idle: str) -> None:
        super()._write_files(idle)
        text = (self.files / "ensemble.toml").read_text()
        for written, here in HURRY.items():
            assert written in text
            text = text.replace(written, here)
        (self.place / "ensemble.toml").write_text(text)

    def tell(self, event: str) -> None:
        """Have the jobs end that wait for this."""
        self.flux("kvs", "put", f"{event}=1")

    def more_settings(self) -> dict[str, Any]:
        files = ["/etc/burst/lead/ensemble.toml"]
        return {"ensemble": {"files": files, "environment": ENVIRONMENT}}

    def left(self) -> list[str]:
        """Return all that is in the members' namespace but for what was applied."""
        kinds = "pods,jobs,configmaps,secrets,services"
        names = self.cluster.kubectl("get", kinds, "-n", self.far, "-o", "name")
        known = tuple(f"configmap/{name}" for name in OF_NAMESPACE)
        return [name for name in names.split() if not name.startswith(known)]


@pytest.fixture
def seed(cluster: Cluster, tmp_path: Path) -> Iterator[EnsembleSeed]:
    seed = EnsembleSeed(cluster, "burst", "burst-far", tmp_path)
    with named_namespaces(seed):
        yield seed


class Sizes:
    """The nodes that are online of each member, one after the other."""

    def __init__(self, seed: EnsembleSeed) -> None:
        self._seed = seed
        self.seen: dict[str, list[int]] = {}

    def has_ended(self) -> bool:
        """Look once more; tell whether the ensemble has ended."""
        # Each look starts a program in the pod, on a machine that has other work.
        time.sleep(0.5)
        row = self._seed.ensemble()
        self._note(row)
        grown = self.seen.get("simulate", [])
        if max(grown, default=0) >= 3:
            self._seed.tell("grown")
            if grown[-1] < max(grown):
                self._seed.tell("shrunk")
        return row.get("state") == "ended"

    def _note(self, row: dict[str, Any]) -> None:
        for name, member in row.get("members", {}).items():
            nodes = member.get("nodes", {}).get("node_up_count")
            line = self.seen.setdefault(name, [])
            if nodes is not None and member["member"]["ended"] is None:
                line += [nodes] if line[-1:] != [nodes] else []


def test_three_members_grow_shrink_succeed_and_leave_nothing(
    seed: EnsembleSeed,
) -> None:
    seed.apply()
    sizes = Sizes(seed)
    wait_until(sizes.has_ended, lambda: f"{sizes.seen} {seed.look()}")
    row = seed.ensemble()
    assert {
        name: member["member"]["why"] for name, member in row["members"].items()
    } == {
        "simulate": "7 jobs have succeeded",
        "train": "3 jobs have succeeded",
        "sample": "4 jobs have succeeded",
    }
    grown = sizes.seen["simulate"]
    assert max(grown) >= 3, grown
    assert grown[-1] < max(grown), "it has not shrunk"
    largest = {name: max(seen) for name, seen in sizes.seen.items()}
    assert largest["simulate"] <= 4, largest
    assert (largest["train"], largest["sample"] in {1, 2}) == (1, True), largest
    check_jobs(seed, row)
    wait_until(lambda: not seed.left(), seed.look)

    def states() -> set[str]:
        return {burst["state"] for burst in seed.status("--all").get("bursts", ())}

    wait_until(lambda: states() == {"inactive"}, seed.look)
    check_restart(seed, row)


def check_jobs(seed: EnsembleSeed, row: dict[str, Any]) -> None:
    """Each job ran once, on nodes of its member, which have names of their own."""
    form = ("jobs", "-a", "-n", "-o", "{name} {result} {nodelist}")
    jobs = [line.split() for line in seed.flux(*form).splitlines()]
    assert {result for _, result, _ in jobs} == {"COMPLETED"}
    # Such as sweep/simulate/step/0-1a2b3c
    names = [name.partition("-")[0] for name, _, _ in jobs]
    assert len(set(names)) == len(names)
    count = Counter(tuple(name.split("/")[1:3]) for name in names)
    assert count == {
        ("simulate", "reference"): 1,
        ("simulate", "step"): 6,
        ("train", "epoch"): 3,
        ("sample", "draw"): 4,
    }
    for name, (_, _, hosts) in zip(names, jobs, strict=True):
        slot = row["members"][name.split("/")[1]]["member"]["slot"]
        assert set(parse_hostlist(hosts)) <= set(parse_hostlist(slot)), name


def check_restart(seed: EnsembleSeed, before: dict[str, Any]) -> None:
    """The next pod of the lead has the ensemble on record, and starts no other."""
    bursts = len(seed.status("--all")["bursts"])
    seed.delete_pod()
    after: dict[str, Any] = {}

    def is_back() -> bool:
        after.update(seed.ensemble())
        return bool(after)

    wait_until(is_back, seed.look)
    wait_until(lambda: "on record" in seed.log(), seed.look)
    assert (after["started"], after["ended"]) == (before["started"], before["ended"])
    assert after["state"] == "ended"
    assert len(seed.status("--all")["bursts"]) == bursts
    assert "is started" not in seed.log()
    assert seed.left() == []
