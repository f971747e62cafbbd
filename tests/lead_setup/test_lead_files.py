# SPDX-License-Identifier: MIT
import json
import stat
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from burst.config import convert
from burst.errors import CertificateError, ConfigError
from burst.kits import certificate
from burst.kits.broker import expand_hosts
from burst.lead_setup.lead_files import write_lead
from burst.lead_setup.lead_plan import LeadPlan, PlannedSlot
from burst.model.lead import Bootstrap
from burst.model.shape import Shape
from tests.support.fluxlead import flux_lead, needs_flux

PLAN = LeadPlan(
    hosts="lead-[0-1]",
    shape=Shape(4),
    slots=(
        PlannedSlot(hosts="burst-0-[0-3]", shape=Shape(8, 2)),
        PlannedSlot(hosts="burst-1-[0-1]", shape=Shape(2)),
    ),
    address="lead.example",
    port=8050,
)


def plan(**changes: Any) -> LeadPlan:
    return msgspec.structs.replace(PLAN, **changes)


def bootstrap(path: Path) -> Bootstrap:
    table = tomllib.loads(path.read_text())["bootstrap"]
    del table["curve_cert"]
    return convert(Bootstrap, table, "bootstrap")


def test_every_host_that_may_ever_join_is_declared_in_one_order(place: Path) -> None:
    files = write_lead(place, PLAN)
    names = [entry.host for entry in expand_hosts(bootstrap(files.config))]
    assert names == [
        *("lead-0", "lead-1"),
        *("burst-0-0", "burst-0-1", "burst-0-2", "burst-0-3"),
        *("burst-1-0", "burst-1-1"),
    ]
    resources = json.loads(files.resources.read_text())
    execution = resources["execution"]
    assert resources["version"] == 1
    assert execution["nodelist"] == ["lead-[0-1],burst-0-[0-3],burst-1-[0-1]"]
    # The shape of each host, and properties to place by.
    assert execution["R_lite"] == [
        {"rank": "0-1", "children": {"core": "0-3"}},
        {"rank": "2-5", "children": {"core": "0-7", "gpu": "0-1"}},
        {"rank": "6-7", "children": {"core": "0-1"}},
    ]
    slots = {"burst": "2-7", "burst-0": "2-5", "burst-1": "6-7"}
    assert execution["properties"] == {"local": "0-1", **slots}


def test_a_slot_called_local_does_not_pass_for_own_nodes(place: Path) -> None:
    slots = (PlannedSlot(hosts="local-[0-1]", shape=Shape(1)),)
    files = write_lead(place, plan(slots=slots))
    properties = json.loads(files.resources.read_text())["execution"]["properties"]
    assert properties == {"local": "0-1", "burst": "2-3"}


def test_the_lead_waits_for_its_own_hosts_only(place: Path) -> None:
    files = write_lead(place, PLAN)
    lead, other = files.commands
    assert lead[:3] == ("flux", "broker", f"--config-path={files.config}")
    assert {"-Shostname=lead-0", "-Sbroker.quorum=2"} <= set(lead)
    assert f"-Slocal-uri={files.uri}" in lead
    assert other == (*lead[:3], "-Shostname=lead-1")


def test_the_certificate_is_private_and_usable(place: Path) -> None:
    files = write_lead(place, PLAN)
    assert certificate.read(files.certificate).name == "lead-0"
    assert stat.S_IMODE(files.certificate.stat().st_mode) == 0o600
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    tables = tomllib.loads(files.config.read_text())
    assert tables["bootstrap"]["curve_cert"] == str(files.certificate)
    # Nothing half-written is left.
    names = sorted(path.name for path in place.iterdir())
    assert names == ["R", "broker.toml", "burst.cert", "run", "state"]


@pytest.mark.parametrize(
    ("address", "bind", "connect"),
    [
        ("lead.example", "tcp://*:8050", "tcp://lead.example:8050"),
        ("10.0.0.7", "tcp://*:8050", "tcp://10.0.0.7:8050"),
        ("127.0.0.1", "tcp://127.0.0.1:8050", "tcp://127.0.0.1:8050"),
        ("::1", "tcp://[::1]:8050", "tcp://[::1]:8050"),
        ("2001:db8::7", "tcp://*:8050", "tcp://[2001:db8::7]:8050"),
    ],
)
def test_the_lead_listens_where_it_is_reached(
    address: str, bind: str, connect: str, place: Path
) -> None:
    found = bootstrap(write_lead(place, plan(address=address)).config)
    assert (found.hosts[0].bind, found.hosts[0].connect) == (bind, connect)
    assert found.enable_ipv6 == (":" in address)


def test_with_gateways_the_first_of_a_slot_is_the_parent_of_the_rest(
    place: Path,
) -> None:
    slots = (
        *PLAN.slots,
        PlannedSlot(hosts="x-[0-1]", shape=Shape(1), gateway="tcp://127.0.0.1:9"),
        PlannedSlot(hosts="single", shape=Shape(1)),
    )
    files = write_lead(place, plan(gateways=True, slots=slots))
    entries = {e.host: e for e in expand_hosts(bootstrap(files.config))}
    assert entries["burst-0-0"].connect == "tcp://burst-0-0:8050"
    assert entries["burst-0-0"].bind == "tcp://*:8050"
    assert {h: e.parent for h, e in entries.items() if e.parent} == {
        **dict.fromkeys(("burst-0-1", "burst-0-2", "burst-0-3"), "burst-0-0"),
        "burst-1-1": "burst-1-0",
        "x-1": "x-0",
    }
    assert entries["x-0"].bind == entries["x-0"].connect == "tcp://127.0.0.1:9"


SLOT = PLAN.slots[0]


def behind(gateway: str) -> dict[str, Any]:
    """Return what has a plan with one slot behind a gateway."""
    slot = msgspec.structs.replace(SLOT, gateway=gateway)
    return {"gateways": True, "slots": (slot,)}


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"hosts": "burst-0-2"}, "burst-0-2 is declared twice; .*may not overlap"),
        ({"slots": (SLOT, SLOT)}, "burst-0-0 is declared twice"),
        ({"hosts": "a,b,a"}, "a is declared twice"),
        ({"hosts": "under_score"}, "not a host name: 'under_score'.*DNS labels"),
        ({"hosts": "a[0-"}, "not a hostlist.*such as burst-0"),
        ({"hosts": ""}, "a list of hosts is empty"),
        ({"slots": ()}, "no rank slot.*give at least one"),
        ({"port": 0}, "port 0 is out of range; use 1 to 65535"),
        ({"port": 65536}, "port 65536 is out of range"),
        ({"address": ""}, "not a host name or address: ''; give the name"),
        ({"address": "a b"}, "not a host name or address"),
        ({"address": "tcp://x"}, "not a host name or address"),
        ({"address": "0.0.0.0"}, r"0\.0\.0\.0 is not an address to connect to; give"),
        ({"address": "::"}, ":: is not an address to connect to"),
        ({"shape": Shape(0)}, "no node has 0 cores; give at least one"),
        ({"slots": (PlannedSlot(hosts="b", shape=Shape(1, -1)),)}, "no node has"),
        (behind("10.0.0.7:8050"), "not a gateway's address"),
        (behind("tcp://10.0.0.7"), "not a gateway's address"),
        (behind("tcp://:8050"), "not a gateway's address"),
    ],
)
def test_a_plan_that_cannot_work_is_refused_before_anything_is_written(
    changes: dict[str, Any], what: str, place: Path
) -> None:
    with pytest.raises(ConfigError, match=what):
        write_lead(place, plan(**changes))
    assert not place.exists()


def test_a_place_that_cannot_be_written_is_said(place: Path) -> None:
    with pytest.raises(ConfigError, match="unix socket"):
        write_lead(place / ("x" * 100), PLAN)
    place.write_text("a file")
    with pytest.raises(ConfigError, match="cannot be written: "):
        write_lead(place, PLAN)


def test_written_again_it_keeps_the_certificate_that_others_have(
    place: Path,
) -> None:
    before = certificate.read(write_lead(place, PLAN).certificate)
    files = write_lead(place, plan(slots=(SLOT,)))
    assert certificate.read(files.certificate) == before
    assert len(expand_hosts(bootstrap(files.config))) == 6
    files.certificate.chmod(0o644)
    with pytest.raises(CertificateError, match="open to group"):
        write_lead(place, PLAN)


@pytest.mark.flux
@needs_flux
def test_flux_starts_with_exactly_these_files_and_by_this_command() -> None:
    slots = (
        PlannedSlot(hosts="burst-0-[0-3]", shape=Shape(8, 2)),
        PlannedSlot(hosts="burst-1-[0-1]", shape=Shape(1)),
    )
    with flux_lead(*slots) as lead:
        done = lead.flux("resource", "list", "-s", "down", "-no", "{nodelist} {ncores}")
        assert done.stdout.split() == ["burst-0-[0-3],burst-1-[0-1]", "34"]
        assert lead.flux("getattr", "hostlist").stdout.split() == [
            "lead-0,burst-0-[0-3],burst-1-[0-1]"
        ]
        assert lead.run("-n2", "flux", "getattr", "hostname") == ["lead-0", "lead-0"]
        assert "err" not in lead.log()
