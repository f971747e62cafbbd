# SPDX-License-Identifier: MIT
"""Values for tests: a lead with two nodes of its own and rank slots, jobs, offers."""

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from burst.config import Seconds, Settings, parse
from burst.core.plan.slots import find_slots
from burst.core.world import ProviderView, World
from burst.model.fsd import parse_fsd
from burst.model.jobid import JobId
from burst.model.lead import (
    Bootstrap,
    HostEntry,
    JobState,
    JobView,
    LeadIdentity,
    LeadView,
)
from burst.model.ranks import parse_hostlist
from burst.model.request import BurstPreferences, ResourceRequest
from burst.model.shape import Shape
from burst.provider import BurstSpec, Offer

OWN = Shape(2)
NODE = Shape(4, 1)
T0 = 1_000_000.0
LENT = '{"properties":["burst"]}'
"""The constraint of a job for lent nodes alone."""
Value = TypeVar("Value", bound=msgspec.Struct)


def but(value: Value, **changes: Any) -> Value:
    """A value of which some fields are others."""
    return msgspec.structs.replace(value, **changes)


def identity(hosts="lead-[0-1],burst-0-[0-3],burst-1-[0-3]", **changes):
    """A lead whose `lead-*` hosts have 2 cores, all others 4 cores and a GPU."""
    names = parse_hostlist(hosts)
    own = {rank for rank, name in enumerate(names) if name.startswith("lead")}
    burst = frozenset(range(len(names))) - own
    found = LeadIdentity(
        kind="embedded",
        version="0.88.0",
        uri="embedded:///nowhere/lead",
        owner="lead-0-12345678",
        hosts=names,
        shapes=tuple(OWN if rank in own else NODE for rank in range(len(names))),
        properties={"local": frozenset(own), "burst": burst},
        bootstrap=Bootstrap(hosts=(HostEntry(host=hosts),)),
        endpoint="tcp://127.0.0.1:8050",
        certificate="/nowhere/burst.cert",
    )
    return but(found, **changes)


def whole(nodes, **changes):
    """`-N nodes`: whole nodes."""
    fields = {"slots": nodes, "cores_per_slot": 1, "exclusive": True, **changes}
    return ResourceRequest(nodes=nodes, **fields)


def slots(count, cores=1, gpus=0, **changes):
    """`-n count -c cores -g gpus`."""
    return ResourceRequest(
        nodes=0, slots=count, cores_per_slot=cores, gpus_per_slot=gpus, **changes
    )


def job(number, request, **changes):
    """A pending job, submitted as many seconds after T0 as its number."""
    fields = {
        "userid": 100,
        "state": JobState.SCHED,
        "urgency": 16,
        "t_submit": T0 + number,
        **changes,
    }
    fields.setdefault("priority", fields["urgency"])
    if isinstance(fields.get("preferences"), str):
        fields["preferences"] = BurstPreferences(fields["preferences"])
    return JobView(id=JobId(number), request=request, **fields)


def view(*jobs, online=(0, 1), busy=(), lead=None, **changes):
    """A picture in which `busy` ranks are wholly allocated."""
    lead = lead or identity()
    free = {
        rank: Shape(0) if rank in busy else shape
        for rank, shape in enumerate(lead.shapes)
    }
    fields = {"read_at": T0, "free": free, "allocated": frozenset(busy), **changes}
    return LeadView(
        jobs={entry.id: entry for entry in jobs}, online=frozenset(online), **fields
    )


def offer(name="small", shape=NODE, max_nodes=8, **changes):
    """An offer of nodes like those that the rank slots declare."""
    return Offer(name=name, shape=shape, max_nodes=max_nodes, **changes)


def burst_spec(name, *hosts):
    """What a provider is asked for: a burst of these hosts of the usual lead."""
    lead = identity()
    return BurstSpec(
        burst_id=name,
        owner=lead.owner,
        offer="nodes",
        hosts=hosts,
        ranks=tuple(map(lead.hosts.index, hosts)),
        shape=NODE,
        lead=lead,
    )


def world(lead_view, lead=None, **providers):
    """A world in which each keyword is a provider that sells the given offers."""
    lead = lead or identity()
    return World(
        identity=lead,
        slots=find_slots(lead),
        lead=lead_view,
        providers={
            name: ProviderView(offers=offers, read_at=T0)
            for name, offers in (providers or {"local": (offer(),)}).items()
        },
    )


def settings(**tables) -> Settings:
    """Settings with some tables given, as the file would give them.

    Constants that no file has may be given, too, as `deadlines={"rejoin": "5s"}`.
    """
    return parse_with_constants(tables, "test.toml")


def parse_with_constants(tables: Mapping[str, Any], where: str) -> Settings:
    """`parse`, of tables that may have constants that no file has."""
    left, constants = split_constants(tables)
    return with_constants(parse(left, where), constants)


def split_constants(
    tables: Mapping[str, Any],
) -> tuple[dict[str, Any], dict[str, dict[str, str]]]:
    """The tables without the constants that no file has, and those by their table."""
    left, constants = dict(tables), {}
    for name in ("deadlines", "intake"):
        kind = type(getattr(Settings(), name))
        known = kind.retired.keys() & set(kind.__struct_fields__)
        given = left.get(name, {})
        if taken := known & given.keys():
            left[name] = {key: given[key] for key in given if key not in taken}
            constants[name] = {key: given[key] for key in taken}
    return left, constants


def with_constants(
    found: Settings, constants: Mapping[str, Mapping[str, str]]
) -> Settings:
    """Settings with other constants."""
    for name, given in constants.items():
        values = {key: Seconds(parse_fsd(text)) for key, text in given.items()}
        found = but(found, **{name: but(getattr(found, name), **values)})
    return found
