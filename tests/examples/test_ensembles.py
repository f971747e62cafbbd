# SPDX-License-Identifier: MIT
"""The example of an algorithm keeps the contract, and the files of ensembles hold."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, ClassVar

import pytest
from burst_ensemble.algorithm import JobTally, QueueCounts, Spread
from burst_ensemble.config.file import load_ensemble
from burst_ensemble.replay.member import NodeTimes
from burst_ensemble.replay.simulator import EnsembleSimulator, Workload
from burst_ensemble.runtime.algorithm_registry import load_algorithms
from burst_ensemble.testing import AlgorithmContract

from tests.plugins.ensemble.core.ensembles import NOW, view
from tests.support.examples import load_example

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

burst_backlog = load_example("backlog")


class TestBacklog(AlgorithmContract):
    algorithm = burst_backlog.Backlog
    options: ClassVar[Mapping[str, Any]] = {"minutes": 30}


def test_it_has_a_node_for_each_ten_minutes_of_work() -> None:
    made = burst_backlog.Backlog(burst_backlog.BacklogOptions())
    tally = JobTally(duration=Spread(count=1, mean=300.0))
    seen = view(2, waiting={1: 9}, queue=QueueCounts(run=2, sched=9), tally=tally)
    assert made.decide(seen, {}, NOW).nodes == 2 + 5


def test_it_is_short() -> None:
    text = (EXAMPLES / "backlog" / "burst_backlog.py").read_text()
    code = text[text.index("class BacklogOptions") :].splitlines()
    assert len([line for line in code if line.strip()]) <= 30


FILES = sorted((EXAMPLES / "ensemble").glob("*.toml")) + sorted(
    (EXAMPLES / "ensemble").glob("*.yaml")
)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_an_example_of_an_ensemble_is_right_and_comes_to_its_end(path: Path) -> None:
    providers = ["local", "kube"] if "kube" in path.read_text() else ["local"]
    file = load_ensemble(path, providers)
    backlog = EntryPoint("backlog", "burst_backlog:Backlog", "burst.algorithms")
    algorithms = load_algorithms(file.spec, file, [backlog])
    outcome = EnsembleSimulator(
        file.spec, algorithms, NodeTimes(boot=60.0), Workload()
    ).run(longest=86400.0)
    assert all(member.end for member in outcome.members.values()), outcome
    assert all(member.jobs for member in outcome.members.values()), outcome
