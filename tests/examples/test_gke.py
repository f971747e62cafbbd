# SPDX-License-Identifier: MIT
"""examples/gke: its settings are read, sold, ordered from a GKE of ours and reaped.

Not from Google's: that needs an account. The example says so itself.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from burst_gke.cloud import Cloud
from burst_gke.provider import Dependencies, GkeProvider
from burst_gke.resources import Labels
from burst_gke.settings import GkeSettings

from burst.cli.run_burst import command
from burst.config import Settings, convert, load
from burst.provider import BurstSpec
from burst.runtime import provider_registry
from burst.testing import example_lead, example_spec
from tests.plugins.gke import build
from tests.plugins.gke.gke import PROJECT, Gke
from tests.plugins.gke.kubernetes import Kubernetes
from tests.plugins.gke.server import Service, Token, connect, serve
from tests.support.set_clock import SetClock

EXAMPLE = Path(__file__).parents[2] / "examples" / "gke"
README = (EXAMPLE / "README.md").read_text()
CODE = [line[4:] for line in README.splitlines() if line.startswith("    ")]
CODE = "\n".join(CODE).replace("\\\n", " ").splitlines()


@pytest.fixture(scope="module")
def settings() -> Settings:
    return load(EXAMPLE / "burst.toml")


def gke_settings(settings: Settings, name: str) -> GkeSettings:
    options = {**settings.providers[name].options, "project": PROJECT}
    return convert(GkeSettings, options, name)


def test_its_providers_are_sold_with_prices(settings: Settings) -> None:
    providers = provider_registry.load_providers(settings, "owner-a")
    assert list(providers) == ["gke"], "the other is not enabled"
    offers = {offer.name: offer for offer in providers["gke"].offers()}
    assert offers["standard"].shape.cores == 4
    assert 0 < offers["spot"].price < offers["standard"].price
    assert all(o.max_nodes <= settings.limits.max_nodes for o in offers.values())


@pytest.fixture
def gke() -> Gke:
    gke = Gke()
    gke.add_cluster("shared")
    return gke


Way = tuple[GkeSettings, Cloud]


@pytest.fixture
def way(gke: Gke, settings: Settings, request: pytest.FixtureRequest) -> Iterator[Way]:
    """One of the file's providers, and the GKE that it is to speak to."""
    found = gke_settings(settings, request.param)
    with serve(Service(gke)) as address, connect(address) as client:
        yield found, Cloud(found.parent, client=client, credentials=Token())


@pytest.mark.parametrize(
    ("way", "offer", "things"),
    [("gke", "spot", 2), ("pool", "gpu", 1)],
    indirect=["way"],
)
def test_each_way_is_ordered_and_reaped(
    gke: Gke, way: Way, tmp_path: Path, offer: str, things: int
) -> None:
    settings, cloud = way
    means = Dependencies(cloud, Kubernetes(gke).followers, SetClock(build.NOW))
    provider = GkeProvider("gke", settings, "owner-a", means)
    asking = build.Asking(provider, _spec(tmp_path, offer))
    asking.provision()
    assert len(gke.things()) == things
    asking.reap()
    assert gke.things() == {}


def test_its_command_has_flags_that_there_are() -> None:
    (line,) = [line for line in CODE if line.startswith("run-burst ")]
    given = [word for word in shlex.split(line) if word.startswith("--")]
    known = {name for option in command.params for name in option.opts}
    assert set(given) <= known
    assert len(given) == 8


def test_what_it_says_of_labels_is_so(tmp_path: Path) -> None:
    spec = msgspec.structs.replace(_spec(tmp_path, "spot"), lease_end=1.0)
    labels = Labels("owner-a", "gke").labels_of(spec, "0")
    assert set(re.findall(r"`(burst-[a-z-]+)`", README)) >= labels.keys()


def _spec(directory: Path, offer: str) -> BurstSpec:
    return example_spec(example_lead(directory, "owner-a"), 0, offer)
