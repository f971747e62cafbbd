# SPDX-License-Identifier: MIT
"""A lead's files together with settings that go with them."""

import json
from pathlib import Path

import msgspec
import pytest

from burst.config import IntakeSettings, load
from burst.core.plan.slots import find_slots
from burst.errors import ConfigError
from burst.flux_setup.setup_files import IntakeChoice
from burst.kits import certificate
from burst.lead_setup.add_slots import add_slots
from burst.lead_setup.init_lead import InitializedLead, init_lead
from burst.lead_setup.lead_plan import LeadPlan, PlannedSlot, parse_slot
from burst.model.shape import Shape
from burst.provider_type import installed_types
from tests.builders import identity

OWN = Shape(4, 1)
PLAN = LeadPlan(
    hosts="lead-[0-1]",
    shape=OWN,
    slots=(
        PlannedSlot(hosts="burst-0-[0-3]", shape=Shape(8, 2)),
        PlannedSlot(hosts="burst-1-[0-1]", shape=Shape(16)),
    ),
    address="lead-0",
)


def init(place: Path, *slots: str, replace: bool = False) -> InitializedLead:
    made = tuple(parse_slot(slot, OWN) for slot in slots) or PLAN.slots
    plan = msgspec.structs.replace(PLAN, slots=made)
    return init_lead(place, plan, "local", replace=replace)


def test_it_says_what_was_made_and_the_provider_can_fill_every_rank(
    place: Path,
) -> None:
    ready = init(place)
    assert ready.kept == ()
    assert ready.own == "lead-[0-1]"
    assert ready.hosts == "lead-[0-1],burst-0-[0-3],burst-1-[0-1]"
    made = certificate.read(ready.files.certificate)
    assert ready.fingerprint == made.fingerprint
    provider = load(ready.settings).providers["local"]
    assert provider.type == "local"
    assert provider.options == {"max_nodes": 6, "cores": 16, "gpus": 2}


def test_without_a_provider_none_is_written(place: Path) -> None:
    ready = init_lead(place, PLAN, "none")
    assert load(ready.settings).providers == {}


def test_slots_are_for_the_provider_alone(place: Path) -> None:
    slots = (PlannedSlot(hosts="burst-0-[0-3]", shape=Shape(8), provider="kube"),)
    plan = msgspec.structs.replace(PLAN, slots=slots)
    ready = init_lead(place, plan, "kube")
    found = json.loads(ready.files.resources.read_text())["execution"]["properties"]
    assert found == {"local": "0-1", "burst": "2-5", "burst-0": "2-5", "kube": "2-5"}
    add_slots(place, [parse_slot("burst-1-[0-1]:2", OWN, "gke")])
    found = json.loads(ready.files.resources.read_text())["execution"]["properties"]
    assert (found["kube"], found["gke"]) == ("2-5", "6-7")


def test_a_type_that_is_not_installed_is_refused(place: Path) -> None:
    names = ", ".join(sorted({"none", *installed_types()}))
    with pytest.raises(ConfigError, match=f"type nope; there are {names}"):
        init_lead(place, PLAN, "nope")
    assert not place.exists()


@pytest.mark.parametrize("name", ["local", "a b", "a|b"])
def test_what_no_slot_can_have_as_provider(name: str) -> None:
    with pytest.raises(ConfigError):
        parse_slot("burst-0-[0-3]", OWN, name)


@pytest.mark.parametrize(
    ("slots", "declared"),
    [
        (("burst-0-[0-3]", "burst-1-[0-3]"), ()),
        (("gpu-[0-3]",), ("gpu-[0-3]",)),
        (("burst-0-[0-3]", "x1", "x2"), ("burst-0-[0-3]", "x1", "x2")),
        # By their names alone, they would be one slot.
        (("burst-0-[0-1]", "burst-0-[2-3]"), ("burst-0-[0-1]", "burst-0-[2-3]")),
    ],
)
def test_slots_are_declared_where_their_names_do_not_tell(
    slots: tuple[str, ...], declared: tuple[str, ...], place: Path
) -> None:
    ready = init(place, *slots)
    settings = load(ready.settings)
    assert settings.lead.slots == declared
    found = find_slots(identity(ready.hosts), settings.lead.slots)
    assert len(found) == len(slots)
    assert len({slot.name for slot in found}) == len(slots)


@pytest.mark.parametrize("name", ["burst.toml", "broker.toml", "R", "burst.cert"])
def test_what_is_there_is_not_touched(name: str, place: Path) -> None:
    place.mkdir()
    (place / name).write_text("# mine\n")
    choice = IntakeChoice(intake=IntakeSettings(mode="hold"))
    with pytest.raises(ConfigError, match=f"{name}: exists already; name another"):
        init_lead(place, PLAN, "local", choice=choice)
    assert [path.name for path in place.iterdir()] == [name]


def test_told_to_replace_it_keeps_what_others_have_or_have_edited(place: Path) -> None:
    before = init(place)
    before.settings.write_text("# mine\n")
    after = init(place, "burst-0-0", replace=True)
    assert after.fingerprint == before.fingerprint
    assert after.settings.read_text() == "# mine\n"
    assert after.kept == (after.files.certificate, after.settings)
    assert after.hosts == "lead-[0-1],burst-0-0"
    told = "it has no provider of type local; add one, or give --provider"
    assert after.unlike == (told,)


def test_what_settings_that_are_kept_have_otherwise_is_told(place: Path) -> None:
    ready = init(place)
    assert init(place, replace=True).unlike == ()
    assert init(place, "burst-0-[0-7]:32", replace=True).unlike == (
        "providers.local.max_nodes is 6 there; it would be 8",
        "providers.local.cores is 16 there; it would be 32",
        "providers.local.gpus is 2 there; it would be 0",
    )
    other = init_lead(place, PLAN, "kube", replace=True)
    told = "it has no provider of type kube; add one, or give --provider"
    assert other.unlike == (told,)
    assert init_lead(place, PLAN, "none", replace=True).unlike == ()
    ready.settings.write_text(
        '[lead]\nslots = ["burst-0-[0-1]", "burst-0-[2-3]"]\n'
        '[intake]\nmode = "scheduler"\n[providers.x]\ntype = "local"\ncores = 16\n'
    )
    assert init(place, replace=True).unlike == (
        '[intake] mode is "scheduler" there; write "hold", or give --mode',
        '[lead] slots is ["burst-0-[0-1]", "burst-0-[2-3]"] there; leave it out, as'
        " names tell which slots there are",
        "providers.x.max_nodes is not set there; it would be 6",
        "providers.x.gpus is not set there; it would be 2",
    )
    ready.settings.write_text('[lead]\nslots = ["nodes-[0-1]"]\n')
    (told,) = init_lead(
        place,
        msgspec.structs.replace(PLAN, slots=(parse_slot("n[1-2]", OWN),)),
        "none",
        replace=True,
    ).unlike
    assert told == '[lead] slots is ["nodes-[0-1]"] there; write ["n[1-2]"]'


def test_slots_that_settings_declare_as_asked_are_right(place: Path) -> None:
    slots = ("gpu-[0-3]", "burst-0-[0-3]")
    init(place, *slots)
    assert init(place, *slots, replace=True).unlike == ()
    config = init(place, *slots, replace=True).settings
    text = config.read_text()
    config.write_text(text.replace("slots = ", "# slots = "))
    (told,) = init(place, *slots, replace=True).unlike
    assert told.startswith('[lead] slots is not set there; write ["gpu-[0-3]", "burst')


def test_settings_that_cannot_be_read_are_told_before_anything_is_written(
    place: Path,
) -> None:
    ready = init(place)
    ready.settings.write_text("[lead\n")
    before = ready.files.config.read_text()
    with pytest.raises(ConfigError, match=r"burst\.toml: not TOML: .*line 1"):
        init(place, "burst-0-0", replace=True)
    assert ready.files.config.read_text() == before


def test_local_followers_cannot_be_gateways(place: Path) -> None:
    plan = msgspec.structs.replace(PLAN, gateways=True)
    with pytest.raises(ConfigError, match="none can be a gateway; leave --gateways"):
        init_lead(place, plan, "local")
    assert not place.exists()
    assert init_lead(place, plan, "none").files.config.exists()


@pytest.mark.parametrize(
    ("text", "hosts", "shape"),
    [
        ("burst-0-[0-3]", "burst-0-[0-3]", OWN),
        ("burst-0-[0-3]:8", "burst-0-[0-3]", Shape(8)),
        ("a,b:8:2", "a,b", Shape(8, 2)),
        # That there is no such node, or host, is found with the whole plan.
        ("a:0", "a", Shape(0)),
        ("", "", OWN),
    ],
)
def test_a_slot_is_written_as_hosts_and_their_shape(
    text: str, hosts: str, shape: Shape
) -> None:
    slot = parse_slot(text, OWN)
    assert (slot.hosts, slot.shape) == (hosts, shape)


@pytest.mark.parametrize("text", ["a:", "a:x", "a:1:2:3", "a:-1", "a: 1", "a:1:"])
def test_anything_else_is_no_slot(text: str) -> None:
    with pytest.raises(ConfigError, match=r"not a rank slot: .*write HOSTLIST"):
        parse_slot(text, OWN)
