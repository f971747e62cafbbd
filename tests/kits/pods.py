# SPDX-License-Identifier: MIT
"""What tests of burst.kits.pods share."""

import time
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from burst.config import convert
from burst.kits.kube.kinds import Manifest
from burst.kits.pods import OfferTable, PodBursts, PodSettings, Tags
from burst.kits.pods.template.render import render
from burst.provider import BurstSpec
from burst.testing import example_lead, example_spec
from tests.kits.kubeserver import Said, cluster_of
from tests.support.commands import run_captured

TAGS = Tags("owner", "far")
replace = msgspec.structs.replace
SETTINGS = PodSettings(
    image="flux:0.88.0",
    namespace="jobs",
    user=1000,
    offers={"nodes": OfferTable(cores=4, max_nodes=4)},
)


TABLE = """
image = "flux:0.88.0"
namespace = "jobs"
user = 1000
offers.nodes.cores = 4
offers.nodes.max_nodes = 4
"""


def read_settings(more: str, **changes: Any) -> PodSettings:
    """Return the settings of a provider with these lines in its table."""
    return convert(PodSettings, tomllib.loads(TABLE + more) | changes, "providers.far")


def bursts_in(
    server: Said, clock: Callable[[], float] = time.time, **changes: Any
) -> PodBursts:
    """Return the bursts of a provider in the cluster that a server plays."""
    settings = replace(SETTINGS, **changes)
    return PodBursts(cluster_of(server), settings, TAGS, clock=clock)


def make_spec(directory: Path) -> BurstSpec:
    """Return a burst of two nodes."""
    return example_spec(example_lead(directory), 0, "nodes")


def by_kind(
    spec: BurstSpec, settings: PodSettings, now: float = 0
) -> dict[str, Manifest]:
    return {item["kind"]: item for item in render(spec, settings, TAGS, now)}


def pod_spec(spec: BurstSpec, settings: PodSettings) -> Any:
    return by_kind(spec, settings)["Job"]["spec"]["template"]["spec"]


def run(command: Sequence[str | Path], environ: Mapping[str, str]) -> str:
    """Run a command with nothing else in its environment; return its output."""
    done = run_captured(command, env=environ)
    assert done.returncode == 0, done.stderr
    return done.stdout
