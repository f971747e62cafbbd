# SPDX-License-Identifier: MIT
"""The files of ensembles in `examples/` hold."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from burst_ensemble.config.file import load_ensemble
from burst_ensemble.runtime.algorithms import load_algorithms
from burst_ensemble_replay.member import NodeTimes
from burst_ensemble_replay.simulator import EnsembleSimulator, Workload

from tests.support.examples import load_example

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

load_example("algorithms", "cost")


FILES = sorted((EXAMPLES / "ensemble").glob("*.toml")) + sorted(
    (EXAMPLES / "ensemble").glob("*.yaml")
)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_an_example_of_an_ensemble_is_right_and_comes_to_its_end(path: Path) -> None:
    providers = ["local", "kube"] if "kube" in path.read_text() else ["local"]
    file = load_ensemble(path, providers)
    cost = EntryPoint("cost", "burst_cost:Cost", "burst.algorithms")
    algorithms = load_algorithms(file, [cost])
    outcome = EnsembleSimulator(
        file.spec, algorithms, NodeTimes(boot=60.0), Workload()
    ).run(longest=86400.0)
    assert all(member.end for member in outcome.members), outcome
    assert all(member.jobs for member in outcome.members), outcome
