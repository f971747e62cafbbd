# SPDX-License-Identifier: MIT
from __future__ import annotations

import re
from typing import Any

import pytest

from burst.flux.identity import (
    endpoint,
    parse_access,
    parse_bootstrap,
    parse_end,
    propose_owner,
)
from burst.model.lead import Bootstrap, GuestAccess, HostEntry
from burst.model.resource_set import resource_set

HOSTS = ("lead-0", "burst-0-0", "burst-0-1")


def table(*entries: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"hosts": list(entries), **more}


@pytest.mark.parametrize(
    ("bootstrap", "uri"),
    [
        ({}, ""),
        (table({"host": "lead-0"}), ""),
        (
            table({"host": "lead-0", "connect": "tcp://10.0.0.1:9001"}),
            "tcp://10.0.0.1:9001",
        ),
        (
            table({"host": "lead-[0-1]", "connect": "tcp://e%h:%p"}, default_port=8050),
            "tcp://elead-0:8050",
        ),
        (
            table(
                {"host": "lead-0"},
                {"host": "other", "connect": "tcp://other:1"},
                default_port=8050,
                default_connect="tcp://%h.site:%p",
            ),
            "tcp://lead-0.site:8050",
        ),
        (
            table(
                {"host": "lead-0", "connect": "tcp://first:1"},
                {"host": "lead-0", "connect": "tcp://second:2"},
            ),
            "tcp://first:1",
        ),
        (
            table({"host": "lead-0", "connect": "tcp://[fe80::1%%eth0]:%p%x"}),
            "tcp://[fe80::1%eth0]:%x",
        ),
    ],
)
def test_endpoint_is_the_connect_address_of_the_lead(bootstrap, uri):
    assert endpoint(bootstrap, "lead-0") == uri


def test_bootstrap_is_the_table():
    found = parse_bootstrap(
        table(
            {"host": "lead-0", "bind": "tcp://eth0:1", "connect": "tcp://a:1"},
            {"host": "burst-0-[0-1]", "parent": "lead-0"},
            default_port=8050,
            default_bind="tcp://eth0:%p",
            default_connect="tcp://%h:%p",
            enable_ipv6=True,
            curve_cert="/etc/cert",
        ),
        HOSTS,
    )
    assert found == Bootstrap(
        hosts=(
            HostEntry("lead-0", "tcp://eth0:1", "tcp://a:1"),
            HostEntry("burst-0-[0-1]", parent="lead-0"),
        ),
        default_port=8050,
        default_bind="tcp://eth0:%p",
        default_connect="tcp://%h:%p",
        enable_ipv6=True,
    )


@pytest.mark.parametrize(
    ("expiration", "config", "at"),
    [
        (0.0, {}, 0.0),
        (0.0, {"burst": {"scheduler": True}}, 0.0),
        (0.0, {"burst": {"ends": 7}}, 7.0),
        (5.0, {}, 5.0),
        (5.0, {"burst": {"ends": 7.0}}, 5.0),
        (0.0, {"burst": {"ends": "soon"}}, 0.0),
        (0.0, {"burst": 1}, 0.0),
    ],
)
def test_an_instance_that_is_a_job_knows_its_end(expiration, config, at):
    execution = {"R_lite": [], "expiration": expiration}
    r = resource_set({"version": 1, "execution": execution})
    assert parse_end(r, config) == at


@pytest.mark.parametrize(
    ("host", "label"),
    [
        ("lead-0", "lead-0"),
        ("Login1.cluster.example", "login1"),
        ("a_b", "a-b"),
        ("-x-", "x"),
        ("_", "lead"),
        ("abcdefghijklmnopqrs-uvwxyz", "abcdefghijklmnopqrs"),
    ],
)
def test_an_owner_is_a_dns_label(host, label):
    owner = propose_owner(host)
    assert re.fullmatch(rf"{label}-[0-9a-f]{{8}}", owner)
    assert owner != propose_owner(host)


@pytest.mark.parametrize(
    ("config", "access"),
    [
        ({}, GuestAccess()),
        ({"access": {}, "exec": {}}, GuestAccess()),
        ({"exec": {"imp": 3}, "access": {"allow-guest-user": 1}}, GuestAccess()),
        (
            {
                "access": {"allow-guest-user": True, "allow-root-owner": True},
                "exec": {"imp": "/usr/libexec/flux/flux-imp"},
                "ingest": {"frobnicator": {"plugins": ["a"]}},
            },
            GuestAccess(
                allow_guest_user=True,
                allow_root_owner=True,
                imp="/usr/libexec/flux/flux-imp",
                ingest={"frobnicator": {"plugins": ["a"]}},
            ),
        ),
    ],
)
def test_who_may_use_the_instance_is_read(
    config: dict[str, Any], access: GuestAccess
) -> None:
    assert parse_access(config) == access
