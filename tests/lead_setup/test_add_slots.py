# SPDX-License-Identifier: MIT
"""Further rank slots for a lead's files, and what a restart from them would change."""

import json
import os
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from burst.core.plan.slots import find_slots
from burst.errors import ConfigError
from burst.lead_setup.add_slots import (
    AddedSlot,
    add_slots,
    compare_with_running,
    declared_hosts,
)
from burst.lead_setup.lead_files import write_lead
from burst.lead_setup.lead_plan import LeadPlan, PlannedSlot, parse_slot
from burst.model.shape import Shape
from tests.builders import but, identity, view
from tests.support.fluxlead import short_directory

PLAN = LeadPlan(
    hosts="lead-[0-1]",
    shape=Shape(2),
    slots=(PlannedSlot(hosts="burst-0-[0-3]", shape=Shape(4, 1)),),
    address="127.0.0.1",
)
NEW = parse_slot("burst-1-[0-1]:8:2", Shape(1))


@pytest.fixture
def lead() -> Iterator[Path]:
    with short_directory() as directory:
        write_lead(directory / "lead", PLAN)
        yield directory / "lead"


def hosts_of(lead: Path) -> tuple[str, ...]:
    return declared_hosts(tomllib.loads((lead / "broker.toml").read_text()))


def test_new_ranks_come_after_all_others(lead: Path) -> None:
    before = hosts_of(lead)
    added, _ = add_slots(lead, [NEW])
    assert added == [AddedSlot("burst-1-[0-1]", "6-7", "8 cores, 2 GPUs")]
    assert hosts_of(lead) == (*before, "burst-1-0", "burst-1-1")
    execution = json.loads((lead / "R").read_text())["execution"]
    assert execution["R_lite"][-1] == {
        "rank": "6-7",
        "children": {"core": "0-7", "gpu": "0-1"},
    }
    assert ",".join(execution["nodelist"]) == "lead-[0-1],burst-0-[0-3],burst-1-[0-1]"
    slots = {"burst": "2-7", "burst-0": "2-5", "burst-1": "6-7"}
    assert execution["properties"] == {"local": "0-1", **slots}
    found = find_slots(identity("lead-[0-1],burst-0-[0-3],burst-1-[0-1]"))
    assert [slot.ranks for slot in found] == [(2, 3, 4, 5), (6, 7)]


@pytest.mark.parametrize(
    ("gateways", "connect"),
    [
        ((), "tcp://burst-1-0:8050"),
        (("10.0.0.7",), "tcp://10.0.0.7:8050"),
        (("gate.example.org:9000",), "tcp://gate.example.org:9000"),
        (("tcp://[2001:db8::7]:9000",), "tcp://[2001:db8::7]:9000"),
        (("2001:db8::7",), "tcp://[2001:db8::7]:8050"),
    ],
)
def test_a_slot_behind_a_gateway(
    lead: Path, gateways: tuple[str, ...], connect: str
) -> None:
    before = hosts_of(lead)
    add_slots(lead, [NEW], gateways=gateways)
    table = tomllib.loads((lead / "broker.toml").read_text())["bootstrap"]
    *_, gate, rest = table["hosts"]
    assert table.get("enable_ipv6", False) == ("[" in connect)
    port = connect.rpartition(":")[2]
    assert gate == {"host": "burst-1-0", "bind": f"tcp://*:{port}", "connect": connect}
    assert rest == {"host": "burst-1-1", "parent": "burst-1-0"}
    assert hosts_of(lead) == (*before, "burst-1-0", "burst-1-1")


@pytest.mark.parametrize(
    ("gateways", "told"),
    [
        (("10.0.0.7", "10.0.0.8"), "2 gateways for 1 rank slots; give one address"),
        (("10.0.0.7:0",), "port 0 of gateway 10.0.0.7:0 is out of range"),
        (("a b",), "not a host name or address: 'a b'"),
    ],
)
def test_a_gateway_that_cannot_be(
    lead: Path, gateways: tuple[str, ...], told: str
) -> None:
    before = (lead / "broker.toml").read_text()
    with pytest.raises(ConfigError, match=told):
        add_slots(lead, [NEW], gateways=gateways)
    assert (lead / "broker.toml").read_text() == before


def test_a_graph_in_r_is_refused(lead: Path) -> None:
    path = lead / "R"
    before = json.dumps({**json.loads(path.read_text()), "scheduling": {"graph": {}}})
    path.write_text(before)
    hosts = hosts_of(lead)
    with pytest.raises(ConfigError, match="a graph for Fluxion") as refused:
        add_slots(lead, [NEW])
    assert "make R without it" in refused.value.advice
    assert (path.read_text(), hosts_of(lead)) == (before, hosts)


def test_a_dry_run_writes_nothing(lead: Path) -> None:
    before = (lead / "broker.toml").read_text(), (lead / "R").read_text()
    added, kept = add_slots(lead, [NEW], dry_run=True)
    assert added
    assert kept == []
    assert {path.name for path in lead.iterdir()} == {
        *("R", "broker.toml", "burst.cert", "run", "state")
    }
    assert ((lead / "broker.toml").read_text(), (lead / "R").read_text()) == before


@pytest.mark.parametrize("hosts", ["hosts = [", "# ours\nhosts = [ # in order\n"])
def test_what_a_person_wrote_into_the_file_stays_and_the_old_one_is_kept(
    lead: Path, hosts: str
) -> None:
    config = lead / "broker.toml"
    written = "# by hand\n" + config.read_text().replace("hosts = [", hosts)
    written += "\n[access]   # of guests\nallow-guest-user = true # yes\n"
    config.write_text(written)
    _, kept = add_slots(lead, [NEW])
    _, again = add_slots(lead, [parse_slot("burst-2-0", Shape(1))])
    lines = config.read_text().splitlines()
    assert set(written.splitlines()) <= set(lines)
    assert len(lines) == len(written.splitlines()) + 2
    assert kept == [lead / "broker.toml.old", lead / "R.old"]
    assert kept[0].read_text() == written
    assert again == [lead / "broker.toml.old.2", lead / "R.old.2"]


def test_hosts_in_tables_of_their_own_are_added_to(lead: Path) -> None:
    (lead / "broker.toml").write_text(
        '[[bootstrap.hosts]]\nhost = "lead-0" # first\n[tbon]\nfanout = 2\n'
        f'[resource]\npath = "{lead}/R"'
    )
    add_slots(lead, [NEW])
    assert hosts_of(lead) == ("lead-0", "burst-1-0", "burst-1-1")
    text = (lead / "broker.toml").read_text()
    assert "# first" in text
    assert tomllib.loads(text)["tbon"] == {"fanout": 2}


def test_nothing_is_changed_where_the_old_files_cannot_be_kept(lead: Path) -> None:
    # No file can have its name and more.
    config = (lead / "broker.toml").rename(lead / f"{'x' * 240}.toml")
    before = config.read_text()
    with pytest.raises(ConfigError, match="nothing was changed"):
        add_slots(lead, [NEW])
    assert config.read_text() == before


@pytest.mark.skipif(os.geteuid() != 0, reason="another user's directory takes root")
def test_root_changes_no_files_in_a_directory_of_another_user(lead: Path) -> None:
    before = (lead / "broker.toml").read_text()
    os.chown(lead, 61000, 0)
    with pytest.raises(ConfigError, match=f"users other than root can change {lead}"):
        add_slots(lead, [NEW])
    assert (lead / "broker.toml").read_text() == before
    assert not (lead / "broker.toml.old").exists()


def test_old_files_are_not_kept_through_a_link(lead: Path, tmp_path: Path) -> None:
    """As root this would write a file anywhere, for whoever owns the directory."""
    elsewhere = tmp_path / "elsewhere"
    (lead / "R.old").symlink_to(elsewhere)
    _, kept = add_slots(lead, [NEW])
    assert kept == [lead / "broker.toml.old", lead / "R.old.2"]
    assert not elsewhere.exists()


@pytest.mark.parametrize(
    ("slot", "says"),
    [
        ("burst-0-[2-5]", "burst-0-2 is declared twice"),
        ("lead-1", "lead-1 is declared twice"),
        ("x/y", "not a"),
        ("more-[0-1]:0", "no node has"),
    ],
)
def test_slots_that_cannot_be_are_refused(lead: Path, slot: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        add_slots(lead, [parse_slot(slot, Shape(1))])


def test_a_directory_without_a_lead_is_told(lead: Path) -> None:
    with pytest.raises(ConfigError, match="name the directory"):
        add_slots(lead / "run", [NEW])
    # As strerror(3) has it, and no exception of Python's.
    with pytest.raises(ConfigError, match=r"none: cannot be read: No such file or di"):
        add_slots(lead / "none", [NEW])
    (lead / "broker.toml").write_text("[bootstrap]\n")
    with pytest.raises(ConfigError, match=r"no file has .bootstrap. hosts"):
        add_slots(lead, [NEW])
    (lead / "broker.toml").write_text(
        '[bootstrap]\nhosts = 1\n[resource]\npath = "R"\n'
    )
    with pytest.raises(ConfigError, match="hosts cannot be read"):
        add_slots(lead, [NEW])


def test_what_a_restart_would_change_is_said(lead: Path) -> None:
    runs = identity("lead-[0-1],burst-0-[0-3]")
    unchanged = "a restart changes no ranks: the lead has the hosts of its files"
    assert compare_with_running(lead, runs, view()) == ([unchanged], True)
    said, safe = compare_with_running(lead, runs, view(busy=(1,)))
    assert not safe, "other changes of the files may need a restart too"
    assert said[0] == unchanged
    assert said[1].startswith("jobs run on ranks 1, and would end with the broker")
    add_slots(lead, [NEW])
    said, safe = compare_with_running(lead, runs, view())
    assert safe
    assert said == ["a restart adds burst-1-[0-1] as ranks 6-7; all others keep theirs"]
    said, safe = compare_with_running(lead, runs, view(busy=(1,)))
    assert not safe
    words = (
        "jobs run on ranks 1, and would end with the broker: run flux queue stop --all"
    )
    assert words in said[1]


def test_ranks_at_the_end_can_go_once_no_burst_has_them(lead: Path) -> None:
    runs = identity("lead-[0-1],burst-0-[0-3],burst-1-[0-1]")
    said, safe = compare_with_running(lead, runs, view())
    gone = "a restart removes burst-1-[0-1], ranks 6-7; all others keep theirs"
    assert (said, safe) == ([gone], True)
    said, safe = compare_with_running(lead, runs, but(view(), online=frozenset({0, 7})))
    assert not safe
    assert said[1].startswith("ranks 7 are online, and would be lost: take bursts")


@pytest.mark.parametrize("runs", ["lead-[0-1],burst-1-[0-3]", "lead-[0-9]"])
def test_ranks_that_would_change_are_no_safe_restart(lead: Path, runs: str) -> None:
    said, safe = compare_with_running(lead, identity(runs), view())
    assert not safe
    assert "the files name other hosts for ranks that the lead has" in said[0]
