# SPDX-License-Identifier: MIT
"""The identity of an example lead, which does not run, and specs of bursts for it."""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec

from burst.kits import certificate
from burst.model.burst import BurstId
from burst.model.lead import Bootstrap, HostEntry, LeadIdentity
from burst.model.program import Program, command_jobspec
from burst.model.ranks import parse_hostlist
from burst.model.shape import Shape
from burst.provider import BurstSpec

_SLOTS = 8
_WIDTH = 4


def example_lead(
    directory: Path, owner: str = "owner", endpoint: str = "tcp://127.0.0.1:1"
) -> LeadIdentity:
    """Return a lead with eight rank slots of four hosts each, `burst-N-[0-3]`.

    By default nothing listens at its endpoint. The certificate in the directory is
    real; it is made if it does not exist.
    """
    path = directory / "burst.cert"
    if not path.exists():
        certificate.write(certificate.create("example"), path)
    slots = [HostEntry(f"burst-{n}-[0-{_WIDTH - 1}]") for n in range(_SLOTS)]
    hosts = ("lead-0", *(h for slot in slots for h in parse_hostlist(slot.host)))
    return LeadIdentity(
        kind="flux",
        version="0.88.0",
        uri="local:///run/flux/local",
        owner=owner,
        hosts=hosts,
        shapes=(Shape(1),) * len(hosts),
        properties={"burst": frozenset(range(1, len(hosts)))},
        bootstrap=Bootstrap(
            hosts=(HostEntry("lead-0", bind=endpoint, connect=endpoint), *slots)
        ),
        endpoint=endpoint,
        certificate=str(path),
    )


def example_spec(
    lead: LeadIdentity, number: int, offer: str, nodes: int = 2
) -> BurstSpec:
    """Return the spec of a burst on the lead's rank slot of this number.

    Equal arguments give equal specs; other numbers or owners give other burst ids.
    """
    hosts = parse_hostlist(f"burst-{number}-[0-{nodes - 1}]")
    ranks = tuple(lead.hosts.index(host) for host in hosts)
    tag = hashlib.sha256(f"{lead.owner} {number}".encode()).hexdigest()[:6]
    return BurstSpec(
        burst_id=BurstId(f"burst-{number}-{tag}"),
        owner=lead.owner,
        offer=offer,
        hosts=hosts,
        ranks=ranks,
        shape=lead.shapes[ranks[0]],
        lead=lead,
    )


def isolate(spec: BurstSpec, *command: str) -> BurstSpec:
    """Return this spec as that of an isolated burst that runs a command on each node.

    Its hosts have the names that the daemon would give them.
    """
    nodes = len(spec.hosts)
    hosts = tuple(f"{spec.burst_id}-{index}" for index in range(nodes))
    jobspec = command_jobspec(command or ("true",), nodes, 0.0)
    program = Program(kind="job", jobspec=jobspec)
    return msgspec.structs.replace(spec, hosts=hosts, ranks=(), program=program)
