# SPDX-License-Identifier: MIT
"""The provider that docs/provider.md builds keeps the contract of all providers."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
import tomllib
import types
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import msgspec
import pytest

from burst.kits.kube import Cluster, Endpoint
from burst.kits.pods import OfferTable, PodBursts, PodProvider, PodSettings
from burst.lead import Lead
from burst.provider import BurstSpec, Provider
from burst.provider_type import PROVIDERS
from burst.testing import (
    Backend,
    ProviderContract,
    WrappedProvider,
)
from burst.testing.backend import Moment, missing
from burst.testing.contract import Count, MakeProvider
from tests.docs.doc_pages import TOP
from tests.support.contract_lead import LeadBackend, WithLead, files_of
from tests.support.fluxlead import short_directory

PAGE = (TOP / "docs" / "provider.md").read_text("utf-8")
NAME = "tutorial_provider"
LONGEST = 120


def code(title: str = "A whole provider") -> str:
    """Return the blocks of the section, one after the other."""
    section = PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]
    return "\n".join(re.findall(r"^```python\n(.*?)^```$", section, re.M | re.S))


@pytest.fixture(scope="module")
def page() -> Iterator[types.ModuleType]:
    module = types.ModuleType(NAME)
    # msgspec looks there for the types of a struct's fields.
    sys.modules[NAME] = module
    exec(compile(code(), "docs/provider.md", "exec"), module.__dict__)
    yield module
    del sys.modules[NAME]


class Dying(WrappedProvider):
    """One whose process dies in its first `provision`, before anything or within."""

    def __init__(self, provider: Provider, begun: int) -> None:
        super().__init__(provider)
        self.begun = begun

    def provision(self, spec: BurstSpec) -> None:
        hosts, ranks = spec.hosts[: self.begun], spec.ranks[: self.begun]
        if hosts:
            super().provision(msgspec.structs.replace(spec, hosts=hosts, ranks=ranks))
        raise RuntimeError("the process died")


class HereBackend(LeadBackend):
    def __init__(self, make: Callable[..., Provider], path: Path, lead: Lead) -> None:
        super().__init__(lead)
        self.make, self.path = make, path

    def pids(self, spec: BurstSpec) -> dict[str, int]:
        """Return the process groups of the followers that run."""
        found = {
            each.stem: int(each.read_text() or "0")
            for each in self.path.glob(f"*/{spec.burst_id}/*.pid")
        }
        return {host: pid for host, pid in found.items() if pid and is_alive(pid)}

    @contextlib.contextmanager
    def unreachable(self) -> Iterator[None]:
        """Others may write in its directory, which followers still find."""
        mode = self.path.stat().st_mode
        self.path.chmod(0o777)
        yield
        self.path.chmod(mode)

    def crashing(self, owner: str, when: Moment) -> Provider:
        return Dying(self.make(owner), 0 if when == "before" else 99)

    def named(self, owner: str, name: str) -> Provider:
        return self.make(owner, name)

    def kill(self, spec: BurstSpec, host: str) -> None:
        os.killpg(self.pids(spec)[host], signal.SIGKILL)

    def public(self, spec: BurstSpec) -> str:
        pids = self.pids(spec).values()
        return "\n".join(Path(f"/proc/{pid}/cmdline").read_text() for pid in pids)

    def given(self, spec: BurstSpec) -> str:
        [config] = self.path.glob(f"*/{spec.burst_id}/broker.toml")
        return config.read_text()

    def left(self, spec: BurstSpec) -> Sequence[str]:
        return [*files_of(spec, self.path), *map(str, self.pids(spec))]

    def full(self, owner: str) -> Provider:
        missing("full", "it has as many nodes as it says")


def is_alive(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def test_it_is_as_short_as_it_is_said_to_be() -> None:
    lines = [line for line in code().splitlines() if line.strip()]
    assert len(lines) <= LONGEST
    assert max(map(len, lines)) <= 88


def test_its_package_and_its_table_are_those_of_the_page(
    page: types.ModuleType,
) -> None:
    section = PAGE.split("\n## Installing it\n")[1]
    package, table, *_ = re.findall(r"^```toml\n(.*?)^```$", section, re.M | re.S)
    points = tomllib.loads(package)["project"]["entry-points"]["burst.providers"]
    [[name, options]] = tomllib.loads(table)["providers"].items()
    module, _, kind = points[options.pop("type")].partition(":")
    assert module in package.split("py-modules = ")[1]
    assert getattr(page, kind)(name, msgspec.convert(options, page.HereSettings), "o")


def test_who_can_resize_is_told_where_people_look_for_it() -> None:
    points = entry_points(group=PROVIDERS)
    able = {p.name for p in points if p.load().resize is not Provider.resize}
    able.remove("eks")  # its node group has the size of the burst
    operation = (TOP / "docs" / "operation.md").read_text("utf-8")
    for page, before, after in (
        (operation, "its provider supports that (", ")"),
        (PAGE, '<a id="who-can-resize"></a>', "each `PodProvider`"),
    ):
        listed = page.split(before)[1].split(after)[0]
        assert set(re.findall(r"`(\w+)`", listed)) - {"queue"} == able


class TestHereProvider(WithLead, ProviderContract):
    offer = "n"
    patience = 600.0
    pause = 0.1
    ends_leases = True
    lease = 5.0

    @pytest.fixture
    def path(self) -> Iterator[Path]:
        with short_directory() as path:
            yield path / "b"

    @pytest.fixture
    def make(self, page: types.ModuleType, path: Path) -> Callable[..., Provider]:
        def make(owner: str, name: str = "here", base: Path = path) -> Provider:
            settings = page.HereSettings(dir=str(base), cores=64)
            made: Provider = page.HereProvider(name, settings, owner)
            return made

        return make

    @pytest.fixture
    def make_provider(self, make: Callable[..., Provider]) -> MakeProvider:
        return make

    @pytest.fixture
    def backend(self, make: Callable[..., Provider], path: Path, lead: Lead) -> Backend:
        return HereBackend(make, path, lead)

    @pytest.fixture
    def make_interrupted(self, make: Callable[..., Provider]) -> MakeProvider:
        return lambda owner: Dying(make(owner), 1)

    @pytest.fixture
    def misconfigured(self, make: Callable[..., Provider]) -> Callable[[], Provider]:
        return lambda: make("owner-a", base=Path("/dev/null"))

    @pytest.fixture
    def count(self, backend: HereBackend) -> Count:
        return lambda spec: len(backend.pids(spec))


class FarSettings(PodSettings, frozen=True, kw_only=True):
    """What its author writes: the settings, and how the cloud is asked."""


class FarCluster(msgspec.Struct, frozen=True):
    url: str
    authority: str
    token: Callable[[], str]


def test_a_provider_of_pods_asks_its_cloud_at_the_first_call() -> None:
    asked: list[PodSettings] = []

    def ask_cloud(settings: PodSettings) -> FarCluster:
        asked.append(settings)
        return FarCluster("https://192.0.2.1", "", lambda: "token")

    kits = (Cluster, Endpoint, PodBursts, PodProvider, FarSettings)
    names: dict[str, Any] = {each.__name__: each for each in kits}
    names["ask_cloud"] = ask_cloud
    exec(compile(code("Where followers are pods"), "docs/provider.md", "exec"), names)
    settings = FarSettings(
        image="flux", offers={"std": OfferTable(cores=8, max_nodes=4)}
    )
    provider = names["FarProvider"]("far", settings, "owner-a")
    assert asked == []
    bursts = provider.bursts()
    assert isinstance(bursts, PodBursts)
    assert provider.bursts() is bursts
    assert asked == [settings]
