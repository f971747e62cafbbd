# SPDX-License-Identifier: MIT
"""Contract of `Lead.identity`."""

from __future__ import annotations

import re
from contextlib import closing
from pathlib import Path

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
)


class IdentityContract(WithInstance):
    def test_hosts_shapes_and_properties_are_in_rank_order(self, lead: Lead) -> None:
        identity = lead.identity()
        assert identity.hosts == HOSTS
        assert identity.shapes == (OWN_SHAPE,) * 2 + (BURST_SHAPE,) * 8
        entries = identity.bootstrap.hosts
        found = [host for entry in entries for host in parse_hostlist(entry.host)]
        assert tuple(found) == HOSTS
        ranks = {name: set(which) for name, which in identity.properties.items()}
        assert ranks["local"] == set(range(len(OWN)))
        assert ranks["burst"] == set(range(2, 10))
        assert ranks["burst-0"] == {HOSTS.index(host) for host in SLOT_0}
        assert ranks["burst-1"] == {HOSTS.index(host) for host in SLOT_1}

    def test_addresses_and_version_are_told_and_the_certificate_by_its_path(
        self, lead: Lead, instance: Instance
    ) -> None:
        identity = lead.identity()
        assert identity.uri == instance.uri
        assert re.fullmatch(r"tcp://127\.0\.0\.1:\d+", identity.endpoint)
        assert re.match(r"\d+\.\d+\.\d+", identity.version)
        assert not identity.statedir or Path(identity.statedir).is_dir()
        assert Path(identity.certificate).is_absolute()
        text = Path(identity.certificate).read_text()
        secret = re.search(r'secret-key\s*=\s*"(.+)"', text)
        assert secret
        assert secret[1] not in repr(identity)

    def test_owner_is_a_tag_and_the_same_for_each_client(
        self, lead: Lead, instance: Instance
    ) -> None:
        owner = lead.identity().owner
        assert re.fullmatch(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?", owner)
        assert len(owner) <= 63
        with closing(instance.lead()) as second:
            assert second.identity() == lead.identity()
