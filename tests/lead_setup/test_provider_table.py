# SPDX-License-Identifier: MIT
"""`burst lead init --provider` writes a table that works, for each installed type."""

import re
import sys
from collections.abc import Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

from burst.config import ProviderTable, convert, load
from burst.errors import ConfigError
from burst.lead_setup.init_lead import InitializedLead, init_lead
from burst.lead_setup.lead_plan import LeadPlan, PlannedSlot, slot_provider
from burst.model.shape import Shape
from burst.provider_type import GROUP, PROVIDERS, installed_types, provider_type

EIGHT = Shape(8)
SHAPES = [Shape(16, 2), Shape(16)]
FILLED_IN = {"accelerator": '"nvidia-l4"', "machine_type": '"n2-standard-32"'}
"""What the example in a table does not do for, as it depends on the shape."""


def init(place: Path, kind: str, shape: Shape, other: Shape = EIGHT) -> InitializedLead:
    slots = tuple(
        PlannedSlot(hosts=hosts, shape=each, provider=slot_provider(kind))
        for hosts, each in (("burst-0-[0-3]", shape), ("burst-1-[0-1]", other))
    )
    plan = LeadPlan(hosts="lead-0", shape=Shape(4), slots=slots, address="lead-0")
    return init_lead(place, plan, kind)


def read(path: Path, kind: str) -> ProviderTable:
    tables = load(path).providers
    assert list(tables) == [kind]
    assert tables[kind].type == kind
    return tables[kind]


def options_of(path: Path, kind: str) -> object:
    """Read the table as the provider does. Raises ConfigError."""
    (point,) = entry_points(group=PROVIDERS, name=kind)
    return convert(point.load().Settings, read(path, kind).options, kind)


def uncomment(text: str, key: str) -> str:
    value = FILLED_IN.get(key)
    wanted = rf"{key} = {value}" if value else rf"{key} = \1"
    text, count = re.subn(rf"^# {key} = (.*)$", wanted, text, flags=re.MULTILINE)
    assert count, key
    return text


def asked_for(said: str) -> list[str]:
    """Return the keys that a person is told to fill in."""
    found = re.match(r"fill in (.*) of \[providers", said)
    return found[1].split(", ") if found else []


@pytest.mark.parametrize("kind", installed_types())
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_each_types_table_works_once_what_it_asks_for_is_filled_in(
    place: Path, kind: str, shape: Shape
) -> None:
    ready = init(place, kind, shape)
    read(ready.settings, kind)
    missing = asked_for(ready.fill_in)
    for key in missing:
        # Each is needed: without it the provider says so, by its name.
        text = ready.settings.read_text()
        with pytest.raises(ConfigError, match=rf"\b({'|'.join(missing)})\b"):
            options_of(ready.settings, kind)
        ready.settings.write_text(uncomment(text, key))
    options_of(ready.settings, kind)


@pytest.mark.parametrize("kind", installed_types())
def test_it_offers_what_the_slots_declare(place: Path, kind: str) -> None:
    shape = SHAPES[0]
    ready = init(place, kind, shape)
    for key in asked_for(ready.fill_in):
        ready.settings.write_text(uncomment(ready.settings.read_text(), key))
    table = read(ready.settings, kind).options
    if "offers" in table:
        assert offered(table) == {"cores-16-gpus-2": (shape, 4), "cores-8": (EIGHT, 2)}
    else:
        # Its nodes fit both slots.
        all_slots = provider_type(kind).own_host
        assert offered(table) == {"": (shape, 6 if all_slots else 4)}


@pytest.mark.parametrize("kind", installed_types())
def test_slots_of_one_shape_need_one_offer(place: Path, kind: str) -> None:
    table = read(init(place, kind, EIGHT).settings, kind).options
    (offer,) = offered(table)
    assert offer == ("nodes" if "offers" in table else "")


@pytest.mark.parametrize("kind", installed_types())
def test_no_offer_is_of_nodes_that_no_slot_has(place: Path, kind: str) -> None:
    slots = (Shape(16), Shape(8, 4))
    try:
        ready = init(place, kind, *slots)
    except ConfigError as error:
        told = str(error)
    else:
        table = read(ready.settings, kind).options
        found = {shape for shape, _ in offered(table).values()}
        # Followers that are processes of this host have no node of their own.
        assert provider_type(kind).own_host or found == set(slots)
        return
    assert kind in {"slurm", "flux", "command"}
    assert "nodes of 16 cores and of 8 cores, 4 GPUs, and a provider of this" in told
    assert "ask for slots of one shape; `burst lead add-slot --provider NAME`" in told
    assert not place.exists()


def offered(table: Mapping[str, Any]) -> dict[str, tuple[Shape, int]]:
    """Return the shape and the most nodes of each offer, by its name."""
    return {
        name: (Shape(offer["cores"], offer.get("gpus", 0)), offer["max_nodes"])
        for name, offer in table.get("offers", {"": table}).items()
    }


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[providers.odd]\ntype = "odd"\ncores: 2\n', "line 3, column 6"),
        ('[providers.other]\ntype = "odd"\n', "it is not a table [providers.odd] with"),
        ("providers = 1\n", "cannot be made"),
    ],
)
def test_a_table_that_cannot_be_read_is_not_written(
    text: str, told: str, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "odd-1.dist-info"
    package.mkdir()
    (package / "entry_points.txt").write_text(
        f"[{PROVIDERS}]\nodd = burst_odd:Odd\n[{GROUP}]\nodd = burst_odd:TYPE\n"
    )
    (tmp_path / "burst_odd.py").write_text(
        "from burst.provider_type import ProviderType\n"
        "class OddType(ProviderType):\n"
        "    def table_template(self, wanted):\n"
        f"        return {text!r}\n"
        "TYPE = OddType()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    try:
        with pytest.raises(ConfigError, match=re.escape(told)) as raised:
            init(place, "odd", EIGHT)
    finally:
        sys.modules.pop("burst_odd", None)
    assert str(raised.value).startswith("burst_odd: the table of provider type odd")
    assert not place.exists()


def test_what_is_known_of_a_type_is_of_one_that_is_installed() -> None:
    assert {point.name for point in entry_points(group=GROUP)} == set(installed_types())


def test_of_others_nothing_is_known() -> None:
    known = provider_type("nope")
    assert (known.own_host, list(known.flags)) == (False, [])
