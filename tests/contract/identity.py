# SPDX-License-Identifier: MIT
"""Contract of `Lead.identity`."""

from __future__ import annotations

import re
from contextlib import closing
from pathlib import Path

import pytest

from burst.lead import Lead
from burst.model.ranks import parse_hostlist
from tests.contract.base import WithInstance
from tests.contract.instance import (
    BURST_SHAPE,
    HOSTS,
    OWN,
    OWN_SHAPE,
    SLOT_0,
    SLOT_1,
    Instance,
    LastingInstance,
)


class IdentityContract(WithInstance):
    def test_hosts_and_shapes_are_in_rank_order(self, lead: Lead) -> None:
        identity = lead.identity()
        assert identity.hosts == HOSTS
        assert identity.shapes == (OWN_SHAPE,) * 2 + (BURST_SHAPE,) * 8

    def test_properties_name_ranks(self, lead: Lead) -> None:
        ranks = {name: set(which) for name, which in lead.identity().properties.items()}
        assert ranks["local"] == set(range(len(OWN)))
        assert ranks["burst"] == set(range(2, 10))
        assert ranks["burst-0"] == {HOSTS.index(host) for host in SLOT_0}
        assert ranks["burst-1"] == {HOSTS.index(host) for host in SLOT_1}

    def test_bootstrap_has_the_hosts_in_the_same_order(self, lead: Lead) -> None:
        entries = lead.identity().bootstrap.hosts
        found = [host for entry in entries for host in parse_hostlist(entry.host)]
        assert tuple(found) == HOSTS

    def test_endpoint_is_an_address_on_loopback(self, lead: Lead) -> None:
        assert re.fullmatch(r"tcp://127\.0\.0\.1:\d+", lead.identity().endpoint)

    def test_certificate_is_a_path_that_exists(self, lead: Lead) -> None:
        certificate = Path(lead.identity().certificate)
        assert certificate.is_absolute()
        assert certificate.is_file()

    def test_identity_does_not_show_the_secret_key(self, lead: Lead) -> None:
        identity = lead.identity()
        text = Path(identity.certificate).read_text()
        secret = re.search(r'secret-key\s*=\s*"(.+)"', text)
        assert secret
        assert secret[1] not in repr(identity)

    def test_version_is_three_numbers(self, lead: Lead) -> None:
        assert re.match(r"\d+\.\d+\.\d+", lead.identity().version)

    def test_uri_connects(self, lead: Lead, instance: Instance) -> None:
        assert lead.identity().uri == instance.uri

    def test_statedir_exists(self, lead: Lead) -> None:
        statedir = lead.identity().statedir
        assert not statedir or Path(statedir).is_dir()

    def test_owner_is_a_tag_and_the_same_for_each_client(
        self, lead: Lead, instance: Instance
    ) -> None:
        owner = lead.identity().owner
        assert re.fullmatch(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?", owner)
        assert len(owner) <= 63
        with closing(instance.lead()) as second:
            assert second.identity() == lead.identity()


class LastingIdentity(WithInstance):
    @pytest.mark.parametrize("end", ["stop", "kill"])
    def test_owner_survives_the_lead(self, end: str, instance: LastingInstance) -> None:
        with closing(instance.lead()) as before:
            owner = before.identity().owner
        instance.stop() if end == "stop" else instance.kill()
        instance.start()
        with closing(instance.lead()) as after:
            assert after.identity().owner == owner
