# SPDX-License-Identifier: MIT
import sys
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from burst.errors import ConfigError
from burst.kits import certificate
from burst.kits.broker import (
    FollowerPrograms,
    check,
    expand_hosts,
    find_gateways,
    flux_follower_argv,
    follower_argv,
    follower_config,
    follower_tables,
)
from burst.model.lead import Bootstrap, GuestAccess, HostEntry, LeadIdentity
from burst.model.ranks import parse_hostlist
from burst.model.shape import Shape

ENDPOINT = "tcp://lead.example:30093"
LEAD = HostEntry("lead-0", bind="tcp://eth0:8050", connect="tcp://lead-0:8050")


def a_lead(path: Path, *entries: HostEntry, **changes: Any) -> LeadIdentity:
    """Return a lead with these entries, and make its certificate."""
    if not path.exists():
        certificate.write(certificate.create("lead"), path)
    bootstrap = Bootstrap(
        hosts=entries or (LEAD, HostEntry("burst-0-[0-3]")),
        default_port=8050,
        default_bind="tcp://eth0:%p",
        default_connect="tcp://%h:%p",
    )
    bootstrap = msgspec.structs.replace(bootstrap, **changes)
    hosts = tuple(h for e in bootstrap.hosts for h in parse_hostlist(e.host))
    hosts = tuple(dict.fromkeys(hosts))
    return LeadIdentity(
        kind="flux",
        version="0.88.0",
        uri="local:///run/flux/local",
        owner="owner-1",
        hosts=hosts,
        shapes=(Shape(1),) * len(hosts),
        bootstrap=bootstrap,
        endpoint=ENDPOINT,
        certificate=str(path),
    )


@pytest.fixture
def lead(tmp_path: Path) -> LeadIdentity:
    return a_lead(tmp_path / "c")


def test_each_rank_has_its_entry_with_tokens_filled_in() -> None:
    bootstrap = Bootstrap(
        hosts=(
            HostEntry("a", bind="tcp://en4:9001", connect="tcp://mgmt:9001"),
            HostEntry("n[08-10]", connect="tcp://%h.example:1%p"),
        ),
        default_port=8050,
        default_bind="tcp://%h%%eth0:%p%x",
    )
    assert expand_hosts(bootstrap) == (
        HostEntry("a", bind="tcp://en4:9001", connect="tcp://mgmt:9001"),
        *(
            HostEntry(
                host,
                bind=f"tcp://{host}%eth0:8050%x",
                connect=f"tcp://{host}.example:18050",
            )
            for host in ("n08", "n09", "n10")
        ),
    )


def test_the_manuals_tree_of_256_hosts_has_its_order_and_its_parents() -> None:
    entries = expand_hosts(
        Bootstrap(
            hosts=(
                HostEntry("test[0-255]"),
                HostEntry("test[1,128]", parent="test0"),
                HostEntry("test[2-127]", parent="test1"),
                HostEntry("test[129-255]", parent="test128"),
            )
        )
    )
    assert [entry.host for entry in entries] == [f"test{n}" for n in range(256)]
    parents = [entries[n].parent for n in (0, 1, 2, 127, 128, 129, 255)]
    assert parents == ["", "test0", "test1", "test1", "test0", "test128", "test128"]
    assert {entry.bind + entry.connect for entry in entries} == {""}


def test_of_two_entries_for_a_host_the_first_decides() -> None:
    twice = Bootstrap(
        hosts=(
            HostEntry("a", connect="tcp://first:1"),
            HostEntry("a", "tcp://b:2", "tcp://c:3"),
        )
    )
    assert expand_hosts(twice) == (HostEntry("a", "tcp://b:2", "tcp://first:1"),)


@pytest.mark.parametrize(
    ("bootstrap", "what"),
    [
        (Bootstrap(hosts=(HostEntry("a[0-"),)), "not a hostlist"),
        (Bootstrap(hosts=(HostEntry("a_b"),)), "not a host name: 'a_b'.*DNS labels"),
        (Bootstrap(hosts=(HostEntry("-a"),)), "not a host name"),
        (Bootstrap(hosts=(HostEntry("a" * 64),)), "not a host name"),
        (Bootstrap(hosts=(HostEntry("%!s(MISSING)"),)), "not a host name"),
        (Bootstrap(hosts=(HostEntry("a", parent="a"),)), "parent 'a' is not one"),
        (Bootstrap(hosts=(HostEntry("a", parent="b"),)), "parent 'b' is not one"),
        (Bootstrap(hosts=(HostEntry("a", bind="eth0:1"),)), "does not begin with tcp"),
        (Bootstrap(hosts=(HostEntry("a", connect="tcp://x:%p"),)), "no default_port"),
    ],
)
def test_what_flux_refuses_is_refused(bootstrap: Bootstrap, what: str) -> None:
    with pytest.raises(ConfigError, match=what):
        expand_hosts(bootstrap)


def test_a_follower_gets_the_leads_entries_and_the_leads_endpoint(
    lead: LeadIdentity,
) -> None:
    text = follower_config(lead, ("burst-0-0", "burst-0-1"), (1, 2))
    assert tomllib.loads(text) == {
        "bootstrap": {
            "curve_cert": lead.certificate,
            "default_port": 8050,
            "default_bind": "tcp://eth0:%p",
            "default_connect": "tcp://%h:%p",
            "hosts": [
                {"host": "lead-0", "bind": "tcp://eth0:8050", "connect": ENDPOINT},
                {"host": "burst-0-[0-3]"},
            ],
        },
        "resource": {"noverify": True},
        "tbon": {"connect_timeout": "5s", "zmqdebug": 1},
    }


def test_an_ipv6_lead_has_ipv6_followers(tmp_path: Path) -> None:
    lead = a_lead(tmp_path / "c", enable_ipv6=True)
    assert follower_tables(lead, "c")["bootstrap"]["enable_ipv6"] is True


HOST = st.sampled_from(["lead", "burst-0-", "n", "x9-"])


@given(
    runs=st.lists(
        st.tuples(HOST, st.integers(0, 12), st.integers(0, 12)), min_size=1, max_size=5
    ),
    with_bind=st.booleans(),
)
def test_whatever_the_leads_hosts_are_a_follower_has_the_same_order(
    runs: list[tuple[str, int, int]],
    with_bind: bool,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    path = tmp_path_factory.getbasetemp() / "shared.cert"
    bind = "tcp://eth1:9" if with_bind else ""
    entries = [
        HostEntry(f"{stem}[{first}-{first + more}]", bind=bind)
        for stem, first, more in runs
    ]
    lead = a_lead(path, *entries)
    mine = lead.hosts[1:]
    text = follower_config(lead, mine, range(1, 1 + len(mine)))
    found = expand_hosts(_bootstrap(text))
    assert tuple(entry.host for entry in found) == lead.hosts
    assert found[0].connect == ENDPOINT
    before = expand_hosts(lead.bootstrap)
    assert found[1:] == before[1:]
    assert found[0].bind == before[0].bind


def _bootstrap(text: str) -> Bootstrap:
    return msgspec.convert(tomllib.loads(text)["bootstrap"], Bootstrap)


GATEWAY = (
    LEAD,
    HostEntry("burst-0-0", bind="tcp://eth0:8050", connect="tcp://gate:8050"),
    HostEntry("burst-0-[1-3]", parent="burst-0-0"),
    HostEntry("burst-1-[0-1]"),
)


def test_the_gateway_form_is_kept_and_the_gateway_is_known(tmp_path: Path) -> None:
    lead = a_lead(tmp_path / "c", *GATEWAY)
    hosts = lead.hosts[1:4]
    text = follower_config(lead, hosts, (1, 2, 3))
    assert [entry.parent for entry in expand_hosts(_bootstrap(text))] == (
        ["", ""] + ["burst-0-0"] * 3 + ["", ""]
    )
    assert find_gateways(lead, hosts) == ("burst-0-0",)
    for childless in ("burst-1-0", "burst-1-1"), ("burst-0-0",), ("x",):
        assert find_gateways(lead, childless) == ()


def test_a_host_whose_gateway_is_not_in_its_burst_is_refused(tmp_path: Path) -> None:
    lead = a_lead(tmp_path / "c", *GATEWAY)
    with pytest.raises(ConfigError, match="through burst-0-0, which is not a host"):
        follower_config(lead, ("burst-0-1",), (2,))


def test_a_gateway_that_nobody_could_reach_is_refused(tmp_path: Path) -> None:
    lead = a_lead(tmp_path / "c", *GATEWAY, default_connect="")
    assert follower_config(lead, ("burst-0-0", "burst-0-1"), (1, 2))
    entries = (GATEWAY[0], HostEntry("burst-0-0"), *GATEWAY[2:])
    lead = a_lead(tmp_path / "c", *entries, default_connect="")
    with pytest.raises(ConfigError, match="burst-0-0, which lacks bind or connect"):
        follower_config(lead, ("burst-0-0", "burst-0-1"), (1, 2))


@pytest.mark.parametrize(
    ("hosts", "ranks", "what"),
    [
        (("burst-0-0",), (2,), "burst-0-0 is not at rank 2"),
        (("burst-0-0",), (5,), "not at rank 5"),
        (("lead-0",), (0,), "lead-0 is not at rank 0"),
        (("burst-9-9",), (1,), "burst-9-9 is not at rank 1"),
        (("burst-0-0", "burst-0-1"), (1,), "2 hosts for 1 ranks"),
    ],
)
def test_a_host_at_another_rank_is_refused(
    hosts: tuple[str, ...], ranks: tuple[int, ...], what: str, lead: LeadIdentity
) -> None:
    with pytest.raises(ConfigError, match=what):
        follower_config(lead, hosts, ranks)


@pytest.mark.parametrize("endpoint", ["", "tcp://*:8050", "ipc:///tmp/x"])
def test_a_lead_that_no_follower_could_reach_is_refused(
    endpoint: str, lead: LeadIdentity
) -> None:
    lead = msgspec.structs.replace(lead, endpoint=endpoint)
    with pytest.raises(ConfigError, match=r"connect to the lead.*address and port"):
        follower_config(lead, ("burst-0-0",), (1,))


def test_a_lead_without_hosts_says_how_to_get_them(lead: LeadIdentity) -> None:
    lead = msgspec.structs.replace(lead, bootstrap=Bootstrap(hosts=()))
    with pytest.raises(ConfigError, match=r"no \[bootstrap\] hosts.*burst lead init"):
        follower_config(lead, ("burst-0-0",), (1,))


@pytest.mark.parametrize(
    ("damage", "what"),
    [
        (dict.clear, "curve_cert: is missing"),
        (lambda t: t["bootstrap"].pop("curve_cert"), "curve_cert: is missing"),
        (lambda t: t["bootstrap"].update(foo=1), "bootstrap: foo: no such key"),
        (
            lambda t: t["bootstrap"]["hosts"].reverse(),
            "is not the lead's list of hosts",
        ),
        (
            lambda t: t["bootstrap"]["hosts"][0].update(connect="tcp://other:1"),
            "lead-0 is not at tcp://lead.example:30093",
        ),
    ],
)
def test_a_file_that_is_not_what_was_meant_is_refused(
    damage: Any, what: str, lead: LeadIdentity
) -> None:
    tables = tomllib.loads(follower_config(lead, ("burst-0-0",), (1,)))
    check(tables, lead, ("burst-0-0",), (1,))
    damage(tables)
    with pytest.raises(ConfigError, match=what):
        check(tables, lead, ("burst-0-0",), (1,))


def test_a_directory_too_long_for_a_unix_socket_is_refused() -> None:
    longest = Path("/" + "x" * 100)
    assert flux_follower_argv("flux", Path("/c"), "n0", longest)
    with pytest.raises(ConfigError, match=r"108 bytes.*at most 107; choose"):
        flux_follower_argv("flux", Path("/c"), "n0", Path(f"{longest}x"))


def test_a_lead_says_which_module_its_followers_run(lead: LeadIdentity) -> None:
    place = (Path("/c.toml"), "n0", Path("/run/n0"))
    argv = follower_argv(lead, FollowerPrograms("/opt/flux"), *place)
    assert argv == flux_follower_argv("/opt/flux", *place)
    other = msgspec.structs.replace(lead, follower_module="other_lead")
    argv = follower_argv(other, FollowerPrograms(), *place)
    assert argv == [
        *(sys.executable, "-m", "other_lead", "follower", "--config", "/c.toml"),
        *("--hostname", "n0", "--rundir", "/run/n0"),
    ]


def test_an_identity_of_before_is_read(lead: LeadIdentity) -> None:
    """As `burst_local` keeps it with the spec of each burst."""
    kept = msgspec.to_builtins(lead)
    del kept["follower_module"]
    assert msgspec.convert({**kept, "kind": "other"}, LeadIdentity).kind == "other"


def test_a_follower_serves_whom_the_lead_serves(lead: LeadIdentity) -> None:
    hosts = lead.hosts[1:2]
    alone = tomllib.loads(follower_config(lead, hosts, (1,)))
    assert not {"access", "exec"} & alone.keys()
    access = GuestAccess(allow_guest_user=True, imp="/usr/libexec/flux/flux-imp")
    system = msgspec.structs.replace(lead, access=access)
    tables = tomllib.loads(follower_config(system, hosts, (1,)))
    assert tables.pop("access") == {"allow-guest-user": True}
    assert tables.pop("exec") == {"imp": "/usr/libexec/flux/flux-imp"}
    assert tables == alone


def test_a_follower_with_guests_changes_jobs_as_the_lead_does(
    lead: LeadIdentity,
) -> None:
    """Else a guest's job could submit there what the lead would not take."""
    ingest = {"frobnicator": {"plugins": ["defaults", "/f.py"], "burst": {"a": 1}}}
    for guests in True, False:
        access = GuestAccess(allow_guest_user=guests, ingest=ingest)
        system = msgspec.structs.replace(lead, access=access)
        tables = tomllib.loads(follower_config(system, lead.hosts[1:2], (1,)))
        assert tables.get("ingest") == (ingest if guests else None)
